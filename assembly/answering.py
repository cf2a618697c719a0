"""What answers single questions, in the graph and outside of it: the library, and the limits."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from assembly.llm import assistant_of, open_llm
from assembly.redaction import redactor_of
from assembly.searching import open_embedder, open_search, point_rules
from assembly.sources import SourceSetup, source_kinds
from services.knowledge import DiskLibrary
from settings import Settings
from streams.answer_rules import AnswerRules
from streams.answers import Answerer


def library_of(settings: Settings, *, for_team: bool = False) -> DiskLibrary:
    """The sources that everybody may be answered from; `for_team`: internal topics as well.

    Internal topics are kept from public answers here, and nowhere else.
    """
    kb = settings.kb
    return DiskLibrary(
        index_path=kb.index_path,
        kinds=source_kinds(SourceSetup(kb)),
        team_index_path=kb.team_index_path,
        team_topics_dir=kb.team_topics_dir,
        max_source_bytes=kb.max_source_bytes,
        left_out=() if for_team else kb.internal_topics,
        redact=redactor_of(settings).documentation_text,
    )


def answer_rules(settings: Settings) -> AnswerRules:
    answering = settings.ai_response
    return AnswerRules(
        chain_seconds=answering.graph_timeout_seconds,
        max_concurrent=answering.max_concurrent_answers,
        max_waiting=answering.max_waiting_answers,
        max_sources=answering.max_sources,
        max_index_entries=answering.max_index_entries,
        max_source_chars=answering.max_source_chars,
        max_answer_chars=answering.max_answer_chars,
        require_citations=answering.require_citations,
        enable_verification=answering.enable_verification,
        speculate=answering.speculate,
        thread_reuse_seconds=settings.discord.thread_reuse_minutes * 60,
        pointing=point_rules(settings),
    )


@asynccontextmanager
async def open_answerer(
    settings: Settings, *, record: Path | None = None, replay: Path | None = None
) -> AsyncGenerator[Answerer]:
    """What answers single questions from the knowledge base, for as long as the block lasts. Raises as `open_llm`."""
    library = library_of(settings)
    async with (
        open_llm(settings, settings.ai_response.llm, record=record, replay=replay) as llm,
        open_embedder(settings.search.embeddings) as embedder,
        open_search(settings, library, embedder) as search,
    ):
        yield Answerer(assistant_of(settings, search, llm), library, search, answer_rules(settings))
