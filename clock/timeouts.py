"""Time limits that ignore a pause of the whole process, and growing pauses between repeated attempts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 300.0


class Backoff:
    """The pauses between attempts, which double from `first` to `longest` seconds.

    Without jitter: one process asks one endpoint, one call at a time, and a replay waits as long each time.
    """

    def __init__(self, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def pause(self, at_least: float = 0.0) -> float:
        """Return the seconds to wait after a failure: not less than `at_least`, but at most the longest pause."""
        seconds = self._next
        self._next = min(self._longest, 2 * seconds)
        return min(self._longest, max(seconds, at_least))

    def reset(self) -> None:
        """Begin with the first pause again, after a success."""
        self._next = self._first


PAUSE_SECONDS = 5.0
"""If a time-out comes later than this after its time, the process was paused."""

TICK_SECONDS = 1.0

T = TypeVar("T")

log = logging.getLogger(__name__)


def loop_time() -> float:
    """Return the time of the running loop, in seconds."""
    return asyncio.get_running_loop().time()


async def with_timeout(seconds: float, call: Callable[[], Awaitable[T]], now: Callable[[], float] = loop_time) -> T:
    """Await `call()` for at most `seconds`. If the time-out came late because this process was paused, call once more.
    `now`: gives the time of the running loop.

    Raises:
        TimeoutError: it took too long. Exceptions of `call` are passed on.
    """
    start = now()
    try:
        async with asyncio.timeout(seconds):
            return await call()
    except TimeoutError:
        late = now() - start - seconds
        if late < PAUSE_SECONDS:
            raise
    log.info("this process stood still for %.0f s; what it was waiting for is asked again", late)
    async with asyncio.timeout(seconds):
        return await call()


class RetryDeadline:
    """A deadline for repeated attempts. The time between two calls of `is_over` counts as at most five seconds."""

    def __init__(self, seconds: float, now: Callable[[], float] = loop_time) -> None:
        """`now`: gives the time of the running loop."""
        self._left, self._now, self._last = seconds, now, now()

    def is_over(self) -> bool:
        """Return True if the time is used up. Call it after each failure."""
        now = self._now()
        self._left -= min(now - self._last, PAUSE_SECONDS)
        self._last = now
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
