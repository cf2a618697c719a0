"""Team knowledge, where the settings say that it lies, and who sorts it."""

from __future__ import annotations

import time
from collections.abc import Callable

from services.assistant import Curator, Describer, ModelCurator, ModelDescriber, key_of, prompts
from services.assistant.extractive import ExtractiveCurator, ExtractiveTopicDescriber
from services.llm import StructuredLLM, Usage
from services.storage import DataFolder
from services.team import TeamLibrary, TeamPlaces, open_library
from settings import Settings


def team_places(settings: Settings) -> TeamPlaces:
    kb = settings.kb
    return TeamPlaces(
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
    """The team library. Blocking, and for the holder of the data folder's lock.

    `describer`: who describes topics; None for a command that describes none. `clock`: seconds since 1970, from any
    thread.

    Raises:
        LibraryUnusable: a cursor or a file cannot be what it should be; nothing was changed.
        OSError: something cannot be read or written.
    """
    return open_library(
        team_places(settings),
        configured_cursor=settings.kb.qa_raw_last_processed_id,
        max_topic_chars=settings.kb.max_topic_chars,
        describer_key="" if describer is None else describer.key,
        time=clock,
    )


def curator_of(settings: Settings, asker: StructuredLLM | None, library: TeamLibrary) -> Curator:
    """The model's, or the extractive one where there is no model."""
    if asker is None:
        return ExtractiveCurator(lambda: {name: topic.pairs for name, topic in library.topics.items()})
    return ModelCurator(asker, curating_tasks(settings), max_index_chars=settings.ai_response.max_index_chars)


def topic_describer_of(settings: Settings, asker: StructuredLLM | None, usage: Usage) -> Describer:
    """As `curator_of`, for the descriptions of topics."""
    if asker is None:
        return ExtractiveTopicDescriber()
    return ModelDescriber(
        asker,
        model=model_of(settings),
        task=settings.kb.team_summarization_prompt,
        project_introduction=settings.ai_response.project_introduction,
        usage=usage,
    )


def curating_tasks(settings: Settings) -> prompts.Tasks:
    kb = settings.kb
    return prompts.Tasks(
        classify=kb.team_classification_prompt,
        integrate=kb.team_integration_prompt,
        summarise_images=kb.team_image_summary_prompt,
        project_introduction=settings.ai_response.project_introduction,
    )


def curating_key(settings: Settings, *, by_model: bool) -> str:
    """Changes with whatever decisions depend on besides the pairs: prompts, model, limits."""
    kb = settings.kb
    limits = f"{kb.max_topic_chars} {settings.ai_response.max_index_chars}"
    if not by_model:
        return key_of("extractive", limits)
    tasks = curating_tasks(settings)
    rules = prompts.CLASSIFY_RULES, prompts.INTEGRATE_RULES
    return key_of(model_of(settings), limits, tasks.classify, tasks.integrate, tasks.project_introduction, *rules)


def model_of(settings: Settings) -> str:
    llm = settings.kb.llm or settings.ai_response.llm
    return "" if llm is None else llm.model
