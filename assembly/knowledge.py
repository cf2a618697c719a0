"""Keeps the knowledge base and its search current, beside the graph."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

import reactivex as rx
from reactivex import operators as ops

from assembly.running import Meters
from assembly.sources import source_kinds, web_for
from assembly.team import model_of
from dataflow import Overflow, map_async, supervise
from model.servers import Servers
from services.assistant import Describer, ModelDescriber
from services.assistant.extractive import ExtractiveDescriber
from services.knowledge import LibrarySearch, SourceRecords
from services.llm import StructuredLLM, Usage
from services.redaction import Redactor
from services.search.text import read
from settings import Settings
from sinks.knowledge import CacheAndIndex, KnowledgeLog
from streams.knowledge import KnowledgeParts, knowledge
from streams.ticks import file_changes, ticks

log = logging.getLogger(__name__)


NO_METERS = Meters()


@asynccontextmanager
async def knowledge_parts(
    settings: Settings,
    asker: StructuredLLM | None,
    usage: Usage,
    *,
    meters: Meters = NO_METERS,
    by_hand: bool = False,
) -> AsyncGenerator[KnowledgeParts]:
    """Open the parts of one knowledge update (records, describer, files) until the end of the block. `by_hand`: a
    person waits, so everything due is fetched now.
    """
    kb = settings.kb
    async with web_for(kb) as web:
        kinds = source_kinds(kb, web, meters.fetched, by_hand=by_hand)
        source_records = SourceRecords(kb.index_cache_path, kinds)
        yield KnowledgeParts(
            source_records=source_records,
            describer=describer_of(settings, asker, usage),
            files=CacheAndIndex(source_records, kb.index_path),
            descriptions_at_once=kb.summarization_concurrency,
            # A call with its retries, as an answer has them.
            describe_seconds=settings.ai_response.graph_timeout_seconds,
            gauge=meters.gauge,
        )


def describer_of(settings: Settings, asker: StructuredLLM | None, usage: Usage) -> Describer:
    """Make the describer: the model's, or the extractive one if there is no model."""
    if asker is None:
        return ExtractiveDescriber()
    return ModelDescriber(
        asker,
        model=model_of(settings),
        task=settings.kb.summarization_prompt,
        project_introduction=settings.ai_response.project_introduction,
        read=read,
        redact=Redactor(settings.secrets).documentation_text,
        usage=usage,
    )


@asynccontextmanager
async def keep_knowledge_current(
    settings: Settings,
    asker: StructuredLLM | None,
    usage: Usage,
    *,
    meters: Meters,
    guild_id: int | None,
) -> AsyncGenerator[None]:
    """Keep the knowledge base up to date, in the background, for as long as the block runs. `guild_id`: of its server;
    None: of all that have none of their own.

    At the end, running work is cut off, and its results so far are written.
    """
    kb = settings.kb
    async with knowledge_parts(settings, asker, usage, meters=meters) as parts, AsyncExitStack() as stack:
        triggers = rx.merge(
            ticks(kb.runtime_refresh_tick_seconds),
            file_changes(kb.document_folders, kb.links_file_path, kb.file_watch_debounce_seconds),
        )
        reporting = KnowledgeLog()
        updates = knowledge(triggers, parts).pipe(supervise("knowledge"))
        if meters.health is not None:
            watch = await stack.enter_async_context(meters.health.watching_updates(guild_id, kb, parts.source_records))
            updates = updates.pipe(ops.do_action(watch.on_event))
        subscription = updates.subscribe(
            reporting.report, lambda error: log.critical("knowledge updates have ended", exc_info=error)
        )
        try:
            yield
        finally:
            subscription.dispose()
            for trouble in await parts.files.save():
                reporting.report(trouble)


@asynccontextmanager
async def keep_all_knowledge_current(
    settings: Settings, asker: StructuredLLM | None, usages: Servers[Usage], meters: Meters
) -> AsyncGenerator[None]:
    """Keep the knowledge base that servers share, and that of each server, current for as long as the block runs."""
    without_gauge = replace(meters, gauge=None)  # a gauge takes each operator name once: from the shared knowledge
    async with AsyncExitStack() as stack:
        for guild_id, server in settings.servers.items():
            its_meters = meters if guild_id is None else without_gauge
            await stack.enter_async_context(
                keep_knowledge_current(server, asker, usages[guild_id], meters=its_meters, guild_id=guild_id)
            )
        yield


@asynccontextmanager
async def keep_search_current(searches: Sequence[LibrarySearch], tick_seconds: float) -> AsyncGenerator[None]:
    """Keep passages and their vectors up to date for as long as the block runs: at once, and at each tick."""

    async def up_to_date(_: object) -> None:
        for search in searches:
            await search.refresh()
            await search.embed()

    updates = ticks(tick_seconds).pipe(
        map_async(up_to_date, on_failure=search_failed, max_concurrent=1, max_waiting=1), supervise("searchable")
    )
    with updates.subscribe(on_error=lambda error: log.critical("knowledge is searchable as it is now", exc_info=error)):
        yield


def search_failed(_: object, error: Exception) -> None:
    if not isinstance(error, Overflow):  # the last update still runs, and sees what this one would have seen
        log.error("search was not brought up to date", exc_info=error)
