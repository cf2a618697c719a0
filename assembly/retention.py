"""Beside the graph: files whose thread is gone are deleted, and files whose reading was cut off are read again."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager

import discord
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject

from assembly.documents import Documents, solved_tags
from model.messages import Message
from operators import map_async, supervised
from operators.evidence import Closing, Threads, chunk, discard, sweep
from services.discord import LookupFailed
from services.discord.live import RestFetcher
from services.documents import PLACE_ID, candidates_in
from services.documents.store import Document, State, StoreUnavailable, naming, unfinished
from settings import DocumentSettings
from streams.ticks import ticks

log = logging.getLogger(__name__)


@asynccontextmanager
async def kept_tidy(
    chosen: DocumentSettings,
    documents: Documents | None,
    client: discord.Client,
    fetcher: RestFetcher,
    withheld: Callable[[Message], bool],
) -> AsyncGenerator[Subject[None]]:
    """Sweep when the first server has arrived, and every `documents.sweep_hours`, for as long as the block runs.

    Gives a subject to be called as each server arrives: before that, it is unknown which threads there are.
    """
    arrivals: Subject[None] = Subject()
    if documents is None:
        yield arrivals
        return
    remove = discard(documents.store, documents.cases, documents.answers.purge)

    async def gone(case_id: int) -> None:
        documents.cases.close(case_id)
        await remove(Closing(case_id, may_reopen=True))

    sweeping = sweep(
        documents.store,
        threads_of(client, fetcher),
        gone,
        solved_tags=solved_tags(chosen),
        grace_seconds=chosen.evidence_grace_hours * 3600,
    )
    subscription = (
        arrivals.pipe(ops.take(1), ops.flat_map(lambda _: rx.merge(ticks(chosen.sweep_hours * 3600), rx.never())))
        .pipe(map_async(sweeping, on_failure=failed, max_concurrent=1), supervised("sweep"))
        .subscribe(on_error=lambda error: log.critical("nothing is swept any more", exc_info=error))
    )
    documents.background.start(resume(documents, fetcher, withheld))
    try:
        yield arrivals
    finally:
        subscription.dispose()


def failed(_: object, error: Exception) -> int:
    log.error("evidence: the sweep broke off", exc_info=error)
    return 0


def threads_of(client: discord.Client, fetcher: RestFetcher) -> Threads:
    """What Discord says of threads. While a server is away, the answer is incomplete."""

    def guilds() -> Collection[int]:
        away = [guild.id for guild in client.guilds if guild.unavailable]
        if away or not client.guilds:
            raise LookupFailed(f"servers {away} are away" if away else "no server has arrived yet")
        return {guild.id for guild in client.guilds}

    async def active(guild_id: int) -> Collection[int]:
        return {int(thread["id"]) for thread in await fetcher.active_threads(guild_id)}

    return Threads(guilds=guilds, active=active, find=fetcher.place)


async def resume(documents: Documents, fetcher: RestFetcher, withheld: Callable[[Message], bool]) -> None:
    """Finish what a crash has left half done: files that were announced, and those that lack vectors."""
    try:
        for name, doc in await unfinished(documents.store):
            if doc.state is State.LEXICAL:
                documents.background.embed_soon(name, doc.doc_id)
            elif name.startswith(naming.CASE_PREFIX):
                await read_again(documents, fetcher, withheld, name, doc)
    except (StoreUnavailable, LookupFailed) as error:
        log.warning("evidence: files whose reading was cut off stay unread: %s", error)


async def read_again(
    documents: Documents, fetcher: RestFetcher, withheld: Callable[[Message], bool], name: str, doc: Document
) -> None:
    """Read a file whose reading was cut off, from its message, which has fresh addresses."""
    case_id = int(name.removeprefix(naming.CASE_PREFIX))
    place_id = int(doc.origin.extra.get(PLACE_ID, case_id))
    message = None if doc.origin.message_id is None else await fetcher.message(place_id, doc.origin.message_id)
    block_lines = documents.settings.code_block_min_lines if documents.settings.code_blocks else None
    files = () if message is None or withheld(message) else candidates_in(message, case_id, block_lines=block_lines)
    candidate = next((candidate for candidate in files if candidate.is_in(doc)), None)
    if candidate is None:
        await documents.store.delete_document(name, doc.doc_id)
        return
    job = documents.cases.begin(candidate)
    if job is None:
        return
    try:
        result = await chunk(documents.intake)(job)
    finally:
        documents.cases.settle(job)
    if result.document is not None:
        documents.background.embed_soon(name, result.document.doc_id)
