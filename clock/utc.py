"""The time of the running event loop, in seconds since 1970, UTC."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache

from clock.virtual_loop import VirtualLoop

MINUTE, HOUR, DAY = 60, 3_600, 86_400  # in seconds

JUMP_SECONDS = 5.0  # a wall clock that goes back by more has been set; by less, it has been corrected


class SteadyClock:
    """The wall clock, except that it never jumps back: a jump would hold quiet windows open until the old time returns.

    When the wall clock is set back, time goes on as before. It follows the wall clock again once that jumps ahead, or
    when the program is restarted.
    """

    def __init__(self) -> None:
        self._wall = self._monotonic = 0.0  # both clocks when the wall clock was last right

    def __call__(self) -> float:
        wall, monotonic = time.time(), time.monotonic()
        steady = self._wall + (monotonic - self._monotonic)
        if steady - wall > JUMP_SECONDS:
            return steady
        self._wall, self._monotonic = wall, monotonic
        return wall


_steady = SteadyClock()


def utc_clock(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the function that gives the time on `loop`, for frequent callers."""
    return loop.time if isinstance(loop, VirtualLoop) else _steady


def now() -> float:
    """Return the time on the running loop, in seconds since 1970, UTC. Raises RuntimeError: no loop is running."""
    loop = asyncio.get_running_loop()
    return loop.time() if isinstance(loop, VirtualLoop) else _steady()


def rfc3339(seconds: float, *, digits: int = 3) -> str:
    """Format a time: `1567637086.0` → `2019-09-04T22:44:46.000Z`. `digits`: of the fraction, 3 or 6; it is cut off."""
    # Through whole microseconds: a float such as 0.123 must not print as .122.
    whole, micros = divmod(round(seconds * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{f'{micros:06d}'[:digits]}Z"


def utc_minute(seconds: float) -> str:
    """Format a time for people: `1567637086.0` → `2019-09-04 22:44 UTC`."""
    return f"{rfc3339(seconds)[:16].replace('T', ' ')} UTC"


@lru_cache(maxsize=16)  # most times that are written together are of the same second
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).isoformat(timespec="seconds").removesuffix("+00:00")


def from_rfc3339(text: str) -> float:
    """Parse an RFC 3339 time stamp. Returns seconds since 1970. Raises ValueError: `text` is no time stamp, or names no
    time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} names no time zone; write it as 2026-02-01T03:10:56Z")
    return moment.timestamp()
