"""Opens the team's library, and makes its curator and describers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from clock import utc_clock
from dataflow.metering import Gauge
from operators.capturing import summarise_images
from services.assistant import (
    CURATING_RULES,
    ConfiguredTasks,
    Curator,
    Describer,
    ModelCurator,
    ModelDescriber,
    description_key,
)
from services.assistant.extractive import ExtractiveCurator, ExtractiveTopicDescriber
from services.llm import Asker, ImageSource, StructuredLLM, Usage
from services.storage import DataFolder, in_thread
from services.team import Action, Actor, CapturedMessage, Decision, PendingFolder, TeamLibrary, TeamPaths, open_library
from settings import Settings
from sinks.team import RawArchive
from streams.captures import ImageServices
from streams.curation import CurationResult, CurationRules, CurationServices

log = logging.getLogger(__name__)


def team_paths(settings: Settings) -> TeamPaths:
    kb = settings.kb
    return TeamPaths(
        raw=kb.team_raw_dir,
        decisions=DataFolder(settings.app.data_dir).decisions,
        topics=kb.team_topics_dir,
        index=kb.team_index_path,
        cache=kb.team_index_cache_path,
        state=kb.team_state_path,
    )


def open_team(
    settings: Settings, describer: Describer | None = None, clock: Callable[[], float] = time.time
) -> TeamLibrary:
    """Open the team library. Blocking; the caller must hold the data folder's lock.

    `describer`: describes topics; None for a command that describes none. `clock`: seconds since 1970, from any thread.
    Raises as `open_library`.
    """
    return open_library(
        team_paths(settings),
        configured_cursor=settings.kb.qa_raw_last_processed_id,
        max_topic_chars=settings.kb.max_topic_chars,
        describer_key="" if describer is None else describer.key,
        time=clock,
    )


def curation_parts(
    settings: Settings, asker: StructuredLLM | None, usage: Usage, gauge: Gauge | None = None
) -> CurationServices:
    """Open the library, with its curator and describer. Blocking, on the running loop. Raises as `open_team`."""
    describer = topic_describer_of(settings, asker, usage)
    library = open_team(settings, describer, utc_clock(asyncio.get_running_loop()))
    return CurationServices(library, curator_of(settings, asker, library), describer, usage, gauge)


def curation_rules(settings: Settings, *, finish_all: bool) -> CurationRules:
    return CurationRules(
        tick_seconds=settings.kb.runtime_refresh_tick_seconds,
        # One call with its retries, as for an answer.
        describe_seconds=settings.ai_response.graph_timeout_seconds,
        settle_seconds=60 * settings.kb.settle_minutes,
        finish_all=finish_all,
    )


@dataclass(slots=True)
class FailedCurations:
    """Counts the pairs whose curation failed in one run."""

    failed: int = 0

    def add(self, each: CurationResult) -> None:
        self.failed += isinstance(each, Decision) and each.action is Action.FAILED

    async def all_of(self, parts: CurationServices | None) -> bool:
        """Return True if every pair in the archive has a decision and none failed. Logs the first undecided pair."""
        undecided = None if parts is None else await in_thread(parts.library.oldest_undecided)
        if undecided is not None:
            log.warning("team knowledge: %s and what was captured after it are not sorted yet", undecided.id)
        return undecided is None and not self.failed


def image_services(
    settings: Settings,
    parts: CurationServices,
    source: ImageSource | None,
    archive: RawArchive,
    withheld: Callable[[CapturedMessage], bool],
    redact: Callable[[str], str],
) -> ImageServices | None:
    """Make the services that describe images of captures; None without a model or without access to images."""
    if source is None or parts.curator.actor is Actor.EXTRACTIVE:
        return None
    pending = PendingFolder(DataFolder(settings.app.data_dir).pending)
    summarise = summarise_images(parts.curator, source, pending, parts.usage, redact=redact)
    return ImageServices(summarise, pending, archive.store_late, withheld, settings.kb.runtime_refresh_tick_seconds)


def curator_of(settings: Settings, asker: Asker | None, library: TeamLibrary) -> Curator:
    """Make the curator: the model's, or the extractive one if there is no model."""
    if asker is None:
        return ExtractiveCurator(lambda: {name: topic.pairs for name, topic in library.topics.items()})
    entries = settings.ai_response.max_index_entries
    return ModelCurator(asker, curating_tasks(settings), max_entries=entries, corrections=library.corrections)


def topic_describer_of(settings: Settings, asker: Asker | None, usage: Usage) -> Describer:
    """Make the describer of topics: the model's, or the extractive one if there is no model."""
    if asker is None:
        return ExtractiveTopicDescriber()
    return ModelDescriber(
        asker,
        model=model_of(settings),
        task=settings.kb.team_summarization_prompt,
        project_introduction=settings.ai_response.project_introduction,
        usage=usage,
    )


def curating_tasks(settings: Settings) -> ConfiguredTasks:
    return ConfiguredTasks(settings.kb.tasks, settings.ai_response.project_introduction)


def curating_key(settings: Settings, *, by_model: bool) -> str:
    """Return a key that changes with all that decisions depend on besides the pairs: prompts, model, limits."""
    limits = f"{settings.kb.max_topic_chars} {settings.ai_response.max_index_entries}"
    if not by_model:
        return description_key("extractive", limits)
    tasks = curating_tasks(settings)
    return description_key(
        model_of(settings),
        limits,
        tasks.by_step["classify"],
        tasks.by_step["integrate"],
        tasks.project_introduction,
        *CURATING_RULES,
    )


def model_of(settings: Settings) -> str:
    llm = settings.kb.llm or settings.ai_response.llm
    return "" if llm is None else llm.model
