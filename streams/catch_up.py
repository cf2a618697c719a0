"""Messages written while the bot was away, as the dispatches that it missed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from model.messages import Author, snowflake_at, snowflake_time
from services.discord import Dispatch
from services.discord.wire import OddPayload, message
from services.telemetry import number_of

T = TypeVar("T")

log = logging.getLogger(__name__)

PAGE = 100
"""Discord gives at most this many messages at once."""
LONGEST_SECONDS = 120.0
"""Places where something was missed wait for the catch-up."""


@dataclass(frozen=True, slots=True)
class CatchUpPlace:
    """A channel, thread or forum post to read, or a forum, which only has posts.

    Attributes:
        newest_id: the last message in it, if Discord names one.
    """

    id: int
    parent_id: int | None = None
    newest_id: int | None = None
    is_forum: bool = False


class MessagePages(Protocol):
    async def payloads(
        self, channel_id: int, *, limit: int = PAGE, after: int | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """The messages that follow `after`, oldest first. Raises `LookupFailed`."""
        ...


def starts(
    marks: Mapping[int, int], spots: Iterable[CatchUpPlace], *, since: float, otherwise: int | None = None
) -> dict[int, int]:
    """After which id to read, per place that may have new messages.

    `marks` gives per place the id below which every message has its outcome, `since` (seconds since 1970) how far to
    go back at most. A place without a mark is read from `otherwise` on, the mark of its guild. Without that either, it
    is left to the live stream ("a first start begins now"), except a thread that is younger than its channel's mark. A
    forum has no messages and so no mark: for its posts the smallest mark of all is used.
    """
    floor = snowflake_at(since)
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


Introduce = Callable[[Author, int], Awaitable[object]]
"""Looks up an author in a guild, before their first message comes. Raises `LookupFailed`."""


async def catch_up(
    after: Mapping[int, int],
    *,
    guild_id: int,
    history: MessagePages,
    introduce: Introduce | None = None,
    seconds: float = LONGEST_SECONDS,
) -> list[Dispatch]:
    """The messages after `after` (per place, see `starts`), of all places together in order of id.

    Each is a `MESSAGE_CREATE` whose `at` is when it was written, so that windows are judged by the messages' own times.
    REST sends no `guild_id`, which is added, and no `member`: roles are unknown, so the authors are introduced first.
    Never raises: places and authors that fail, or take longer than `seconds`, are logged and left out.
    """
    reads = {place_id: _read(place_id, start, history) for place_id, start in after.items()}
    pages = await _all(reads, "place", seconds)
    found = sorted((payload for page in pages.values() for payload in page), key=_id)
    written_by = {_id(payload): _author(payload) for payload in found}
    authors = {author.id: author for author in written_by.values() if author is not None}
    strangers = set[int]()
    if introduce is not None:
        met = await _all({author.id: introduce(author, guild_id) for author in authors.values()}, "author", seconds)
        strangers = authors.keys() - met.keys()
    return [
        Dispatch(at=snowflake_time(_id(payload)), t="MESSAGE_CREATE", d={**payload, "guild_id": str(guild_id)})
        for payload in found
        if (author := written_by[_id(payload)]) is None or author.id not in strangers
    ]


async def _all(work: Mapping[int, Awaitable[T]], what: str, seconds: float) -> dict[int, T]:
    """The results by id, of those that have one in time."""
    tasks = {asyncio.ensure_future(each): id_ for id_, each in work.items()}
    if not tasks:
        return {}
    try:
        done, late = await asyncio.wait(tasks, timeout=seconds)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if late:
        log.warning("catch-up: %s could not be read within %.0f s", number_of(len(late), what), seconds)
    results: dict[int, T] = {}
    for task in done:
        error = task.exception()
        if error is None:
            results[tasks[task]] = task.result()
        else:
            log.warning("catch-up: %s %d is left out: %s", what, tasks[task], error)
    return results


async def _read(place_id: int, after: int, history: MessagePages) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    while True:
        page = await history.payloads(place_id, limit=PAGE, after=after)
        found.extend(page)
        if len(page) < PAGE:
            return found
        after = _id(page[-1])


def _author(payload: Mapping[str, Any]) -> Author | None:
    """The author; None for a message that the decoder will report."""
    try:
        return message(payload).author
    except OddPayload:
        return None


def _id(payload: Mapping[str, Any]) -> int:
    return int(payload["id"])
