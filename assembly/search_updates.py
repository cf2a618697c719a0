"""Keeps search and the documents' index of documentation and topics current."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager

from assembly.documents import Documents
from assembly.graph_parts import ServerParts
from clock import now
from dataflow import Overflow, map_async, supervised
from model.servers import Servers
from services.documents import index_global, index_team
from services.documents.store import DocumentStore, StoreUnavailable
from services.knowledge import Library
from services.search.embedding import Embedder
from settings import Settings
from streams.ticks import ticks

log = logging.getLogger(__name__)


@asynccontextmanager
async def search_kept_current(
    settings: Settings,
    documents: Documents | None,
    servers: Servers[ServerParts],
    guild_ids: Callable[[], Collection[int]],
) -> AsyncGenerator[None]:
    """Keep the search index and the documents' index of documentation and topics current for as long as the block
    runs: at once, and at each tick. `guild_ids`: servers that the bot is in.
    """

    async def up_to_date(_: object) -> None:
        for each in servers.values():
            await each.search.refresh()
            await each.search.embed()
        if documents is not None:
            turn = documents.indexing_topics
            where = documents.store, documents.embedder
            others = set(guild_ids()) - servers.own.keys()
            await index_shared(settings, servers.default.library, *where, others, turn)
            for guild_id, server in servers.own.items():
                await index_own(settings, server.library, *where, guild_id, turn)

    subscription = (
        ticks(settings.kb.runtime_refresh_tick_seconds)
        .pipe(map_async(up_to_date, on_failure=failed, max_concurrent=1, max_waiting=1), supervised("searchable"))
        .subscribe(on_error=lambda error: log.critical("knowledge is searchable as it is now", exc_info=error))
    )
    try:
        yield
    finally:
        subscription.dispose()


class IndexOnDemand:
    """Indexes documentation and topics for a replay when an answer is about to look something up, at most as often as
    the bot would. A replay that looks nothing up costs nothing, and its results depend on the recording alone.
    """

    def __init__(
        self, settings: Settings, libraries: Servers[Library], store: DocumentStore, embedder: Embedder | None
    ) -> None:
        self._settings = settings
        self._libraries = libraries
        self._store = store
        self._embedder = embedder
        self._done: dict[int | None, float] = {}  # when it was done last, by server
        self._turn = asyncio.Lock()

    async def __call__(self, guild_id: int | None) -> None:
        async with self._turn:
            last = self._done.get(guild_id)
            if last is not None and now() - last < self._settings.kb.runtime_refresh_tick_seconds:
                return
            library = self._libraries[guild_id]
            if guild_id is not None and guild_id in self._libraries:
                await index_own(self._settings, library, self._store, self._embedder, guild_id)
            else:
                guild_ids = [] if guild_id is None else [guild_id]
                await index_shared(self._settings, library, self._store, self._embedder, guild_ids)
            self._done[guild_id] = now()


async def index_shared(
    settings: Settings,
    library: Library,
    store: DocumentStore,
    embedder: Embedder | None,
    guild_ids: Collection[int],
    turn: asyncio.Lock | None = None,
) -> None:
    """Index changed documentation and team topics for all servers without their own. Without a `team_name` each
    server's topics get a collection of their own.
    """
    kb, team_name = settings.kb, settings.documents.team_name.strip()
    teams = {team_name: None} if team_name else {str(guild_id): guild_id for guild_id in sorted(guild_ids)}
    try:
        await index_global(store, embedder, library, max_source_bytes=kb.max_source_bytes)
        for team_id, guild_id in teams.items():
            await index_team(
                store,
                embedder,
                kb.team_topics_dir,
                team_id=team_id,
                guild_id=guild_id,
                internal=kb.internal_topics,
                turn=turn,
            )
    except StoreUnavailable as error:
        log.warning("documents: %s; what is searchable stays as it is", error)


async def index_own(
    settings: Settings,
    library: Library,
    store: DocumentStore,
    embedder: Embedder | None,
    guild_id: int,
    turn: asyncio.Lock | None = None,
) -> None:
    """Index the documentation and topics of one server into collections that only this server reads."""
    kb, own = settings.kb, settings.servers[guild_id].kb
    try:
        await index_global(store, embedder, library, max_source_bytes=kb.max_source_bytes, guild_id=guild_id)
        await index_team(
            store,
            embedder,
            own.team_topics_dir,
            shared_dir=kb.team_topics_dir,
            team_id=str(guild_id),
            guild_id=guild_id,
            internal=kb.internal_topics | own.internal_topics,
            turn=turn,
        )
    except StoreUnavailable as error:
        log.warning("documents: %s; what is searchable in server %d stays as it is", error, guild_id)


def failed(_: object, error: Exception) -> None:
    if not isinstance(error, Overflow):  # the last update still runs, and sees what this one would have seen
        log.error("documents: what is searchable was not brought up to date", exc_info=error)
