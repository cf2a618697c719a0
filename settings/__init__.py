"""What the operator has configured: read from config.yaml, .env and the environment, checked once, then fixed.

loading            config.yaml + .env + environment → Settings, or one readable line
errors             that line: which key is meant, and what to do
root               all sections, and how their paths are resolved
bot  knowledge     the sections
kinds              the types of values
prompts            the default tasks for the LLM
reference          docs/configuration.md, the short table in README.md, and the commented config.yaml
"""

# pyright: reportUnusedImport=false
from settings.bot import (
    AnswerSettings,
    AppSettings,
    ChannelSettings,
    DiscordSettings,
    LimitSettings,
    LLMSettings,
    LogFileSettings,
    LoggingSettings,
    LogRotationSettings,
    MetricsSettings,
)
from settings.errors import SettingsError
from settings.knowledge import (
    DocumentCacheSettings,
    DocumentSettings,
    EmbeddingSettings,
    KnowledgeSettings,
    RankingSettings,
)
from settings.loading import load, usable_token
from settings.root import Settings
