"""What the operator has configured: read from config.yaml, .env and the environment, checked once, then fixed.

loading            config.yaml + .env + environment → Settings, or one readable line
root               all sections, and where their paths lead
bot  answers  knowledge  documents      the sections
kinds              the kinds of value that keys take
prompts            the default tasks for the LLM
reference          the table in README.md and the commented config.yaml
"""

from settings.answers import AnswerSettings, LLMSettings
from settings.bot import (
    AppSettings,
    ChannelSettings,
    DiscordSettings,
    LimitSettings,
    LogFileSettings,
    LoggingSettings,
    LogRotationSettings,
    MetricsSettings,
)
from settings.documents import DocumentCacheSettings, DocumentSettings, EmbeddingSettings, RankingSettings
from settings.errors import SettingsError
from settings.knowledge import KnowledgeSettings
from settings.loading import load
from settings.root import Settings, usable_token

__all__ = [
    "AnswerSettings",
    "AppSettings",
    "ChannelSettings",
    "DiscordSettings",
    "DocumentCacheSettings",
    "DocumentSettings",
    "EmbeddingSettings",
    "KnowledgeSettings",
    "LLMSettings",
    "LimitSettings",
    "LogFileSettings",
    "LogRotationSettings",
    "LoggingSettings",
    "MetricsSettings",
    "RankingSettings",
    "Settings",
    "SettingsError",
    "load",
    "usable_token",
]
