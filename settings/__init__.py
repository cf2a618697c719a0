"""What the operator has configured: read from config.yaml, .env and the environment, checked once, then fixed.

loading     config.yaml + .env + environment → Settings, or one readable line
errors      that line: which key is meant, and what to do
sections    the sections, and how their paths are resolved
serving     what several keys say together of what is served
kinds       the types of values
prompts     the default tasks for the LLM
reference   docs/configuration.md, the short table in README.md, and the commented config.yaml
"""

# pyright: reportUnusedImport=false
from settings.errors import SettingsError
from settings.loading import load, usable_token
from settings.sections import (
    AnswerSettings,
    ChannelSettings,
    DashboardSettings,
    DiscordSettings,
    DocumentSettings,
    EmbeddingSettings,
    KnowledgeSettings,
    LLMSettings,
    MetricsSettings,
    Settings,
)
