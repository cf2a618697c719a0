"""The configuration: read from files and the environment, checked once, then fixed.

loading     config.yaml + config.local.yaml + .env + environment → Settings, or one readable line
editing     edits of config.local.yaml and .env that leave the rest as it is; imported by name, as only --init edits
errors      that line: the key that is wrong, and the remedy
sections    the sections, and how their paths are resolved; the two with tasks for the LLM are `answering`, `knowledge`
kinds       the types of values
reference   the commented config.yaml, and the short table in README.md
"""

# pyright: reportUnusedImport=false
from settings.answering import AnswerSettings, LLMSettings
from settings.errors import SettingMissing, SettingsError, dotted, find_key, variable_name
from settings.kinds import EMBEDDED
from settings.knowledge import KnowledgeSettings
from settings.loading import (
    config_files,
    discord_token,
    load,
    local_file,
    names_of_variables,
    partial_models,
    read_dotenv,
    read_yaml,
)
from settings.sections import (
    AlertSettings,
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
