"""What the operator has configured: read from files and the environment, checked once, then fixed.

loading     config.yaml + config.local.yaml + .env + environment → Settings, or one readable line; and keys put into
            config.local.yaml and .env, where the rest stays as it is
errors      that line: which key is meant, and what to do
sections    the sections, and how their paths are resolved; the two with tasks for the LLM are `answering`, `knowledge`
kinds       the types of values
reference   docs/configuration.md, the short table in README.md, and the commented config.yaml
"""

# pyright: reportUnusedImport=false
from settings.answering import AnswerSettings, LLMSettings
from settings.errors import SettingsError, dotted, find
from settings.kinds import EMBEDDED
from settings.knowledge import KnowledgeSettings
from settings.loading import (
    begun_model,
    files_of,
    from_dotenv,
    load,
    local_file,
    read_yaml,
    usable_token,
    variables_of,
    with_values,
    with_variables,
)
from settings.sections import (
    ChannelSettings,
    DashboardSettings,
    DiscordSettings,
    DocumentSettings,
    EmbeddingSettings,
    GuildLimitSettings,
    LimitSettings,
    McpSettings,
    MetricsSettings,
    NatsSettings,
    Settings,
)
