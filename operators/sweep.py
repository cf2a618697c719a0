"""Collections whose thread is gone, found without being told (DOCUMENT_QA 8.3)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any

from clock import now
from model.messages import Place
from services.discord import LookupFailed
from services.documents import is_closed
from services.documents.store import CollectionSummary, DocumentStore, StoreUnavailable, naming
from services.telemetry import number_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Threads:
    """Whom the sweep asks. What cannot be answered completely raises `LookupFailed`."""

    guilds: Callable[[], Collection[int]]
    """The guilds that the bot is in and that are there."""
    active: Callable[[int], Awaitable[Collection[int]]]
    """The threads of a guild that are not archived."""
    find: Callable[[int], Awaitable[Place | None]]
    """A thread, asked of Discord itself; None: it is gone."""


def sweep(
    store: DocumentStore,
    threads: Threads,
    discard: Callable[[int], Awaitable[None]],
    *,
    solved_tags: frozenset[str],
    grace_seconds: float,
) -> Callable[[object], Coroutine[Any, Any, int]]:
    """Delete the files of threads that are gone, closed, or archived for longer than the grace; gives how many.

    One that was not seen to be so in the sweep before is left for the next. When anything cannot be asked about, the
    threads of a guild or a single one, nothing at all is deleted.
    """
    suspects: set[int] = set()

    async def swept(_: object) -> int:
        nonlocal suspects
        try:
            orphans = await orphaned()
        except (LookupFailed, StoreUnavailable) as error:
            log.warning("evidence: nothing is swept: %s", error)
            return 0
        again = sorted(orphans & suspects)
        for case_id in again:
            await discard(case_id)
        suspects = orphans - set(again)
        gone = number_of(len(again), "thread")
        log.info("evidence: swept: %s deleted, %d seen for the first time", gone, len(suspects))
        return len(again)

    async def orphaned() -> set[int]:
        cases = await described()
        guilds: set[int | None] = set(threads.guilds())
        if cases and not guilds:
            raise LookupFailed("no server has arrived yet")
        there: set[int] = set()
        for guild_id in sorted(each for each in guilds & set(cases.values()) if each is not None):
            there.update(await threads.active(guild_id))
        gone: set[int] = set()
        for case_id, guild_id in sorted(cases.items()):
            if case_id in there:
                continue
            # Without its guild there is nobody to ask.
            if guild_id is not None and guild_id not in guilds:
                gone.add(case_id)
                continue
            if is_over(await threads.find(case_id)):
                gone.add(case_id)
        return gone

    async def described() -> dict[int, int | None]:
        """The threads that have collections, with their guilds."""
        found: dict[int, int | None] = {}
        for name in await store.list_collections(naming.CASE_PREFIX):
            one: CollectionSummary | None = await store.describe(name)
            if one is not None:
                found[int(name.removeprefix(naming.CASE_PREFIX))] = one.collection.guild_id
        return found

    def is_over(place: Place | None) -> bool:
        if place is None or is_closed(place, solved_tags):
            return True
        return place.archived and place.archived_at is not None and place.archived_at + grace_seconds <= now()

    return swept
