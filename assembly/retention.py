"""Beside the graph of the running bot: files whose thread is gone are swept up, and files half read are read again."""

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
from operators.chunk import PLACE_ID, chunk, is_of
from operators.discard import Closing, discard
from operators.sweep import Threads, sweep
from services.discord import LookupFailed
from services.discord.live import RestFetcher
from services.documents import IngestJob, offers_of
from services.documents.store import Document, State, StoreUnavailable, naming
from services.documents.tools import Toolbox
from settings import DocumentSettings
from streams.ticks import ticks

log = logging.getLogger(__name__)


class Tidy:
    """Told of each server as it arrives: before that, nobody knows which threads there are."""

    def __init__(self) -> None:
        self.arrivals: Subject[None] = Subject()

    def arrived(self) -> None:
        self.arrivals.on_next(None)


@asynccontextmanager
async def kept_tidy(
    chosen: DocumentSettings,
    documents: Documents | None,
    toolbox: Toolbox | None,
    client: discord.Client,
    fetcher: RestFetcher,
    withheld: Callable[[Message], bool],
) -> AsyncGenerator[Tidy]:
    """Sweep when the first server has arrived, and every `documents.sweep_hours`, for as long as the block runs."""
    tidy = Tidy()
    if documents is None or toolbox is None:
        yield tidy
        return
    remove = discard(documents.store, documents.cases, toolbox.forget)

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
        tidy.arrivals.pipe(ops.take(1), ops.flat_map(lambda _: rx.merge(ticks(chosen.sweep_hours * 3600), rx.never())))
        .pipe(map_async(sweeping, on_failure=failed, max_concurrent=1), supervised("sweep"))
        .subscribe(on_error=lambda error: log.critical("nothing is swept any more", exc_info=error))
    )
    documents.beside(resume(documents, fetcher, withheld))
    try:
        yield tidy
    finally:
        subscription.dispose()


def failed(_: object, error: Exception) -> int:
    log.error("evidence: the sweep broke off", exc_info=error)
    return 0


def threads_of(client: discord.Client, fetcher: RestFetcher) -> Threads:
    """What Discord says of threads. A server that is away makes what is known of them incomplete."""

    def guilds() -> Collection[int]:
        away = [guild.id for guild in client.guilds if guild.unavailable]
        if away or not client.guilds:
            raise LookupFailed(f"servers {away} are away" if away else "no server has arrived yet")
        return {guild.id for guild in client.guilds}

    async def active(guild_id: int) -> Collection[int]:
        return {int(thread["id"]) for thread in await fetcher.active_threads(guild_id)}

    return Threads(guilds, active, fetcher.place)


async def resume(documents: Documents, fetcher: RestFetcher, withheld: Callable[[Message], bool]) -> None:
    """Take up what a crash has left half done: files that were announced, and such as lack vectors."""
    try:
        for name, doc in await documents.store.unfinished():
            if doc.state is State.LEXICAL:
                documents.embed_soon(name, doc.doc_id)
            elif name.startswith(naming.CASE_PREFIX):
                await read_again(documents, fetcher, withheld, name, doc)
    except (StoreUnavailable, LookupFailed) as error:
        log.warning("evidence: files that were half read stay so: %s", error)


async def read_again(
    documents: Documents, fetcher: RestFetcher, withheld: Callable[[Message], bool], name: str, doc: Document
) -> None:
    """Read a file whose reading was cut off, from its message, whose addresses are signed anew."""
    case_id = int(name.removeprefix(naming.CASE_PREFIX))
    place_id = int(doc.origin.extra.get(PLACE_ID, case_id))
    message = None if doc.origin.message_id is None else await fetcher.message(place_id, doc.origin.message_id)
    block_lines = documents.settings.code_block_min_lines if documents.settings.code_blocks else None
    offered = () if message is None or withheld(message) else offers_of(message, case_id, block_lines=block_lines)
    candidate = next((candidate for candidate in offered if is_of(doc, candidate)), None)
    filing: IngestJob | None = None if candidate is None else documents.cases.begin(candidate)
    if filing is None:
        if candidate is None:
            await documents.store.delete_document(name, doc.doc_id)
        return
    try:
        filed = await chunk(documents.intake)(filing)
    finally:
        documents.cases.settle(filing)
    if filed.document is not None:
        documents.embed_soon(name, filed.document.doc_id)
