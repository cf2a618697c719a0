"""The knowledge that all share, kept searchable for the document tools: beside the bot, or when a replay asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager

from assembly.documents import Documents
from clock import now
from operators import Overflow, map_async, supervised
from services.documents import index_global, index_team
from services.documents.store import StoreUnavailable
from services.knowledge import Library
from settings import Settings
from streams.ticks import ticks

log = logging.getLogger(__name__)


@asynccontextmanager
async def kept_searchable(
    settings: Settings, documents: Documents | None, library: Library, guild_ids: Callable[[], Collection[int]]
) -> AsyncGenerator[None]:
    """Bring documentation and team topics up to date at once, and whenever the knowledge base may have changed, for as
    long as the block runs. Holds nobody up. `guild_ids`: the servers that the bot is in by then.
    """
    if documents is None:
        yield
        return

    async def up_to_date(_: object) -> None:
        await index_shared(settings, documents, library, guild_ids())

    subscription = (
        ticks(settings.kb.runtime_refresh_tick_seconds)
        .pipe(map_async(up_to_date, on_failure=failed, max_concurrent=1, max_waiting=1), supervised("searchable"))
        .subscribe(on_error=lambda error: log.critical("knowledge is searchable as it is now", exc_info=error))
    )
    try:
        yield
    finally:
        subscription.dispose()


class SearchableWhenAsked:
    """For replays, in place of `kept_searchable`: the work is done when an answer is about to look something up, and
    no more often than the bot would do it. So a replay in which nobody does costs nothing, and what is found, vectors
    included, depends on the recording alone: on a virtual clock the work takes no time, and is waited for.
    """

    def __init__(self, settings: Settings, documents: Documents, library: Library) -> None:
        self._settings = settings
        self._documents = documents
        self._library = library
        self._done: dict[int | None, float] = {}
        """When it was done last, by server."""
        self._turn = asyncio.Lock()

    async def __call__(self, guild_id: int | None) -> None:
        async with self._turn:
            last = self._done.get(guild_id)
            if last is not None and now() - last < self._settings.kb.runtime_refresh_tick_seconds:
                return
            guild_ids = [] if guild_id is None else [guild_id]
            await index_shared(self._settings, self._documents, self._library, guild_ids)
            self._done[guild_id] = now()


async def index_shared(settings: Settings, documents: Documents, library: Library, guild_ids: Collection[int]) -> None:
    """Take in what has changed. Where the team has no name, each server's team is its own."""
    kb, store, embedder = settings.kb, documents.store, documents.embedder
    team_name = settings.documents.team_name.strip()
    try:
        await index_global(store, embedder, library, max_source_bytes=kb.max_source_bytes)
        if team_name:
            await index_team(
                store,
                embedder,
                kb.team_topics_dir,
                team_id=team_name,
                team_name=team_name,
                internal=kb.internal_topics,
            )
        else:
            for guild_id in sorted(guild_ids):
                await index_team(
                    store,
                    embedder,
                    kb.team_topics_dir,
                    team_id=str(guild_id),
                    guild_id=guild_id,
                    internal=kb.internal_topics,
                )
    except StoreUnavailable as error:
        log.warning("documents: %s; what is searchable stays as it is", error)


def failed(_: object, error: Exception) -> None:
    if not isinstance(error, Overflow):  # the last update still runs, and sees what this one would have seen
        log.error("documents: what is searchable was not brought up to date", exc_info=error)
