"""All sections together, and where their paths lead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Self

from pydantic import Field

from settings.bot import AnswerSettings, AppSettings, DiscordSettings, LimitSettings, LoggingSettings, MetricsSettings
from settings.kinds import FollowsData, Section
from settings.knowledge import DocumentSettings, KnowledgeSettings


class Settings(Section):
    """The whole configuration. `Settings()` holds the defaults, with paths relative to wherever it is used."""

    app: AppSettings = Field(default_factory=AppSettings, description="The program as a whole.")
    logging: LoggingSettings = Field(default_factory=LoggingSettings, description="What is logged, and where to.")
    discord: DiscordSettings = Field(
        default_factory=DiscordSettings, description="Where the bot listens and when it speaks."
    )
    ai_response: AnswerSettings = Field(default_factory=AnswerSettings, description="How questions are answered.")
    kb: KnowledgeSettings = Field(default_factory=KnowledgeSettings, description="Where knowledge comes from.")
    limits: LimitSettings = Field(default_factory=LimitSettings, description="Budgets.")
    documents: DocumentSettings = Field(default_factory=DocumentSettings, description="Questions about uploaded files.")
    metrics: MetricsSettings = Field(
        default_factory=MetricsSettings, description="Prometheus metrics and the health check."
    )

    def placed(self, folder: Path) -> Self:
        """With every path resting on `folder`, and those that were not set below `app.data_dir`."""
        data = folder / self.app.data_dir
        app = self.app.model_copy(update={"data_dir": data})

        def place(name: str, path: Path, _: FollowsData) -> Path:
            return folder / path if name in self.kb.model_fields_set else data / _below_data(name)

        log = self.logging.file
        file = log.model_copy(update={"path": None if log.path is None else folder / log.path})
        logging = self.logging.model_copy(update={"file": file})
        return self.model_copy(update={"app": app, "logging": logging, "kb": _with_paths(self.kb, place)})

    def rehearsed_in(self, data: Path) -> Self:
        """For a replay: what the bot learns and keeps goes to `data`; the configured documents stay where they are.

        Call it on settings that are `placed`.
        """
        app = self.app.model_copy(update={"data_dir": data})

        def move(name: str, path: Path, follows: FollowsData) -> Path:
            return data / _below_data(name) if follows.learned else path

        return self.model_copy(update={"app": app, "kb": _with_paths(self.kb, move)})


def _below_data(name: str) -> Path:
    """Where the default of a path in `kb` lies below the data folder."""
    default: Path = KnowledgeSettings.model_fields[name].default
    return default.relative_to("data")


def _with_paths(kb: KnowledgeSettings, change: Callable[[str, Path, FollowsData], Path]) -> KnowledgeSettings:
    changed: dict[str, Path] = {}
    for name, field in KnowledgeSettings.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, FollowsData):
                changed[name] = change(name, getattr(kb, name), mark)
    return kb.model_copy(update=changed)
