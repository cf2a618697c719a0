"""All sections together, and where their paths lead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Self, TypeVar

from pydantic import Field

from settings.bot import AnswerSettings, AppSettings, DiscordSettings, LimitSettings, LoggingSettings, MetricsSettings
from settings.kinds import FollowsData, Section
from settings.knowledge import DocumentSettings, KnowledgeSettings

S = TypeVar("S", bound=Section)


def section(model: type[S]) -> S:
    """A section that may be left out; its description is the model's docstring."""
    return Field(default_factory=model, description=(model.__doc__ or "").strip())


class Settings(Section):
    """The whole configuration. `Settings()` holds the defaults, with paths relative to wherever it is used."""

    app: AppSettings = section(AppSettings)
    logging: LoggingSettings = section(LoggingSettings)
    discord: DiscordSettings = section(DiscordSettings)
    ai_response: AnswerSettings = section(AnswerSettings)
    kb: KnowledgeSettings = section(KnowledgeSettings)
    limits: LimitSettings = section(LimitSettings)
    documents: DocumentSettings = section(DocumentSettings)
    metrics: MetricsSettings = section(MetricsSettings)

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
