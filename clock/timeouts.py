"""Limits of time that do not count a pause of the whole process, and the growing pauses between repeated attempts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

FIRST_SECONDS = 1.0
MOST_SECONDS = 300.0


class Backoff:
    """Pauses that double, from `first` to `most` seconds, until a success.

    Without jitter: one process asks one endpoint, one call at a time, and a replay waits as long each time.
    """

    def __init__(self, first: float = FIRST_SECONDS, most: float = MOST_SECONDS) -> None:
        self._first = first
        self._most = most
        self._next = first

    def pause(self, at_least: float = 0.0) -> float:
        """Seconds to wait after another failure; at least what the other side asked for, within bounds."""
        seconds = self._next
        self._next = min(self._most, 2 * seconds)
        return min(self._most, max(seconds, at_least))

    def reset(self) -> None:
        """After a success."""
        self._next = self._first


STOOD_STILL_SECONDS = 5.0
"""A limit that passes by so much more than it is was not noticed in time: this process stood still."""

TICK_SECONDS = 1.0

T = TypeVar("T")

log = logging.getLogger(__name__)


def loop_time() -> float:
    """Seconds on the clock of the running loop."""
    return asyncio.get_running_loop().time()


async def within(seconds: float, call: Callable[[], Awaitable[T]], now: Callable[[], float] = loop_time) -> T:
    """Await `call()` for at most `seconds`. If the time-out came late because this process was paused, call once more:
    the other side is not to blame. `now` is in seconds of the running loop. Raises TimeoutError, and whatever `call`
    raises.
    """
    began = now()
    try:
        async with asyncio.timeout(seconds):
            return await call()
    except TimeoutError:
        late = now() - began - seconds
        if late < STOOD_STILL_SECONDS:
            raise
    log.info("this process stood still for %.0f s; what it was waiting for is asked again", late)
    async with asyncio.timeout(seconds):
        return await call()


class RetryDeadline:
    """A deadline for repeated attempts: `is_over` is asked after each failure. A pause of the process counts for five
    seconds at most.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = loop_time) -> None:
        """`now`: in the seconds of the running loop."""
        self._left, self._now, self._last = seconds, now, now()

    def is_over(self) -> bool:
        at = self._now()
        self._left -= min(at - self._last, STOOD_STILL_SECONDS)
        self._last = at
        return self._left <= 0


@asynccontextmanager
async def timeout_ignoring_pauses(seconds: float) -> AsyncGenerator[None]:
    """Like `asyncio.timeout(seconds)`, but a pause of this process counts as one second only. Raises TimeoutError."""
    loop, left = asyncio.get_running_loop(), seconds
    async with asyncio.timeout(None) as limit:

        def tick() -> None:
            nonlocal left, ticking
            left -= TICK_SECONDS
            if left <= 0:
                limit.reschedule(loop.time())
            else:
                ticking = loop.call_later(min(left, TICK_SECONDS), tick)

        ticking = loop.call_later(min(left, TICK_SECONDS), tick)
        try:
            yield
        finally:
            ticking.cancel()
