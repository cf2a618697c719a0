"""Seconds since 1970, UTC, as the running event loop sees them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

from clock.virtual_loop import VirtualLoop

JUMP_SECONDS = 5.0  # a wall clock that goes back by more was set; by less, it was corrected


class SteadyClock:
    """The wall clock, except that it never jumps back: after a jump, an open window would stay open for as long as the
    jump was.

    When the wall clock is set back, time goes on as it was, and follows the wall clock again from a jump ahead, or when
    the program is started anew.
    """

    def __init__(self) -> None:
        self._wall = self._since = 0.0  # the time when it was last right, and then on the monotonic clock

    def __call__(self) -> float:
        wall, since = time.time(), time.monotonic()
        steady = self._wall + (since - self._since)
        if steady - wall > JUMP_SECONDS:
            return steady
        self._wall, self._since = wall, since
        return wall


_steady = SteadyClock()


def utc_clock(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """The function that tells the time on `loop`, for callers that ask often."""
    return loop.time if isinstance(loop, VirtualLoop) else _steady


def now() -> float:
    """The time on the running loop, in seconds since 1970, UTC.

    Raises:
        RuntimeError: outside an event loop, where there is no clock to agree on.
    """
    loop = asyncio.get_running_loop()
    return loop.time() if isinstance(loop, VirtualLoop) else _steady()


def rfc3339(seconds: float, *, digits: int = 3) -> str:
    """`1567637086.0` → `2019-09-04T22:44:46.000Z`, with `digits` (3 or 6) digits of fraction, cut and not rounded."""
    # Through whole microseconds: a float such as 0.123 must not print as .122.
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{f'{micros:06d}'[:digits]}Z"


@lru_cache(maxsize=16)  # most of what is written at a time is of the same second
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).isoformat(timespec="seconds").removesuffix("+00:00")


def from_rfc3339(text: str) -> float:
    """Seconds since 1970 of an RFC 3339 time stamp.

    Raises:
        ValueError: `text` is no time stamp, or names no time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone; write it as 2026-02-01T03:10:56Z")
    return moment.timestamp()
