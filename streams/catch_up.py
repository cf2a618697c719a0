"""What was written while the bot was away, fetched as if it had been dispatched then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from model.messages import DISCORD_EPOCH_MS, snowflake_time
from services.dispatches import Dispatch

log = logging.getLogger(__name__)

PAGE = 100
"""Discord gives at most this many messages at once."""
LONGEST_SECONDS = 120.0
"""The live stream waits for the catch-up, so that one has to come to an end."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A channel, thread or forum post to look at, or a forum, which only has posts."""

    id: int
    parent_id: int | None = None
    newest_id: int | None = None
    """Discord's word on the last message in it, where there is one."""
    is_forum: bool = False


class History(Protocol):
    async def payloads(
        self, channel_id: int, *, limit: int = PAGE, after: int | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """The messages that follow `after`, oldest first. Raises `LookupFailed`."""
        ...


def starts(
    marks: Mapping[int, int], spots: Iterable[Spot], *, since: float, otherwise: int | None = None
) -> dict[int, int]:
    """After which id to read, per place that may have something new.

    `marks` gives per place the id below which every message has its outcome, `since` (seconds since 1970) how far to
    go back at most. A place without a mark is one that nothing was heard of: it is read from `otherwise` on, the mark
    of its guild. Without that either, it is left to the live stream ("a first start begins now"), except a thread that
    was opened when its channel had already been read that far. A forum itself has no messages and so no mark: for its
    posts the smallest mark of all stands in.
    """
    floor = max(0, int(since * 1000) - DISCORD_EPOCH_MS) << 22
    spots = list(spots)
    forums = {spot.id for spot in spots if spot.is_forum}
    smallest = min((below for place_id, below in marks.items() if place_id > 0), default=None)
    result: dict[int, int] = {}
    for spot in spots:
        if spot.is_forum:
            continue
        mark = marks.get(spot.id)
        if mark is None and spot.parent_id is not None:
            known = marks.get(spot.parent_id, smallest if spot.parent_id in forums else None)
            # The first message of a post has the post's own id.
            mark = spot.id - 1 if known is not None and spot.id > known else None
        if mark is None:
            mark = otherwise
        if mark is None:
            continue
        after = max(mark, floor - 1)
        if spot.newest_id is None or spot.newest_id > after:
            result[spot.id] = after
    return result


async def catch_up(
    after: Mapping[int, int], *, guild_id: int, history: History, seconds: float = LONGEST_SECONDS
) -> list[Dispatch]:
    """The messages behind `after` (per place, see `starts`), of all places together in order of id.

    Each is a `MESSAGE_CREATE` whose `at` is when it was written, so that windows are judged by the messages' own times.
    REST sends no `guild_id` along, which is added, and no `member`: roles are unknown. Never raises: a place that
    cannot be read, or not within `seconds`, is logged and left out.
    """
    reads = {asyncio.create_task(_read(place_id, start, history)): place_id for place_id, start in after.items()}
    if not reads:
        return []
    try:
        done, late = await asyncio.wait(reads, timeout=seconds)
    finally:
        for task in reads:
            task.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
    if late:
        log.warning("catch-up: %d places could not be read within %.0f s", len(late), seconds)
    found: list[Mapping[str, Any]] = []
    for task in done:
        error = task.exception()
        if error is None:
            found.extend(task.result())
        else:
            log.warning("catch-up: place %d is left out: %s", reads[task], error)
    found.sort(key=_id)
    return [
        Dispatch(at=snowflake_time(_id(payload)), t="MESSAGE_CREATE", d={**payload, "guild_id": str(guild_id)})
        for payload in found
    ]


async def _read(place_id: int, after: int, history: History) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    while True:
        page = await history.payloads(place_id, limit=PAGE, after=after)
        found.extend(page)
        if len(page) < PAGE:
            return found
        after = _id(page[-1])


def _id(payload: Mapping[str, Any]) -> int:
    return int(payload["id"])
