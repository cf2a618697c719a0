"""Worked example of docs/extending.md: a source of events. It plays the log of an IRC channel through the same graph.

10:00:05 <anna> How do I install it?
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator

from reactivex import Observable

from clock import now
from dataflow import unfold
from model.events import Event, PlaceSeen, Posted, Ready
from model.messages import DISCORD_EPOCH_MS, Author, Message, Place

LINE = re.compile(r"(\d\d):(\d\d):(\d\d) <([^>]+)> (.+)")


def irc_log(lines: Iterable[str], *, midnight: float, channel: Place, bot: Author) -> Observable[Event]:
    """The messages of one day, each at its time on the running loop's clock.

    r-p--m---m-|      r = Ready, p = PlaceSeen, m = Posted

    `midnight`: when the day begins, in seconds since 1970, UTC. A line of another form is left out.
    """
    events = said(lines, midnight, channel, bot)

    async def next_event() -> Event | None:
        event = next(events, None)
        if event is not None:
            await asyncio.sleep(max(0.0, event.at - now()))
        return event

    return unfold(next_event)


def said(lines: Iterable[str], midnight: float, channel: Place, bot: Author) -> Iterator[Event]:
    yield Ready(midnight, bot.id, bot.name)
    yield PlaceSeen(midnight, channel)
    for number, line in enumerate(lines):
        if match := LINE.fullmatch(line.strip()):
            hours, minutes, seconds, name, text = match.groups()
            at = midnight + 3600 * int(hours) + 60 * int(minutes) + int(seconds)
            # Ids come from content, so that two runs give the same: the time, as in Discord's, and the line.
            message_id = (round(at * 1000) - DISCORD_EPOCH_MS) << 22 | number
            yield Posted(at, Message(message_id, channel.id, person(name), text, at))


def person(name: str) -> Author:
    return Author(int(hashlib.sha256(name.encode()).hexdigest()[:12], 16), name)
