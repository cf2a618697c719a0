"""Deletes collections whose thread is gone, also where no event said so (DOCUMENT_QA 8.3)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import Any

from clock import now
from model.messages import Place
from services.discord import LookupFailed
from services.documents import is_closed
from services.documents.store import DocumentStore, StoreUnavailable, naming
from services.telemetry import number_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """What Discord says of threads. Each raises LookupFailed where the answer would be incomplete.

    Attributes:
        guilds: the servers that the bot is in.
        active: the threads of a server that are not archived.
        find: a thread; None: it is gone.
    """

    guilds: Callable[[], Collection[int]]
    active: Callable[[int], Awaitable[Collection[int]]]
    find: Callable[[int], Awaitable[Place | None]]


def sweep(
    store: DocumentStore,
    threads: Threads,
    discard: Callable[[int], Awaitable[None]],
    *,
    solved_tags: frozenset[str],
    grace_seconds: float,
) -> Callable[[object], Coroutine[Any, Any, int]]:
    """Delete the files of threads that are gone, closed, or archived for longer than the grace; gives their number.

    A thread is deleted only if the sweep before found it over as well. If anything cannot be asked about, the threads
    of a server or a single one, nothing at all is deleted.
    """
    suspects: set[int] = set()

    async def swept(_: object) -> int:
        nonlocal suspects
        try:
            over = await threads_over()
        except (LookupFailed, StoreUnavailable) as error:
            log.warning("evidence: nothing is swept: %s", error)
            return 0
        again = sorted(over & suspects)
        for case_id in again:
            await discard(case_id)
        suspects = over - set(again)
        gone = number_of(len(again), "thread")
        log.info("evidence: swept: %s deleted, %d seen for the first time", gone, len(suspects))
        return len(again)

    async def threads_over() -> set[int]:
        cases = await threads_with_files()
        guilds: set[int | None] = set(threads.guilds())
        if cases and not guilds:
            raise LookupFailed("no server has arrived yet")
        active: set[int] = set()
        for guild_id in sorted(each for each in guilds & set(cases.values()) if each is not None):
            active.update(await threads.active(guild_id))
        return {
            case_id
            for case_id, guild_id in sorted(cases.items())
            if case_id not in active
            # Discord does not say anything about threads of a server that the bot has left.
            and ((guild_id is not None and guild_id not in guilds) or is_over(await threads.find(case_id)))
        }

    async def threads_with_files() -> dict[int, int | None]:
        """With their servers."""
        described = [await store.describe(name) for name in await store.list_collections(naming.CASE_PREFIX)]
        found = [each.collection for each in described if each is not None]
        return {int(each.name.removeprefix(naming.CASE_PREFIX)): each.guild_id for each in found}

    def is_over(place: Place | None) -> bool:
        if place is None or is_closed(place, solved_tags):
            return True
        return place.archived and place.archived_at is not None and place.archived_at + grace_seconds <= now()

    return swept
