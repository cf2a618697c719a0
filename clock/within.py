"""Limits of time that a pause of the whole process does not use up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

STOOD_STILL_SECONDS = 5.0
"""A limit that passes by so much more than it is was not noticed in time: this process stood still."""

TICK_SECONDS = 1.0

T = TypeVar("T")

log = logging.getLogger(__name__)


def loop_time() -> float:
    """Seconds on the clock of the running loop."""
    return asyncio.get_running_loop().time()


async def within(seconds: float, call: Callable[[], Awaitable[T]], now: Callable[[], float] = loop_time) -> T:
    """What `call` gives. It is made once more where this process was paused meanwhile: whoever was called is not to
    blame. `now`: in the seconds of the running loop. Raises as `call`, and TimeoutError.
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


class Patience:
    """How long something is tried again after failures. `is_over`: asked after each."""

    def __init__(self, seconds: float, now: Callable[[], float] = loop_time) -> None:
        """`now`: in the seconds of the running loop."""
        self._left, self._now, self._last = seconds, now, now()

    def is_over(self) -> bool:
        at = self._now()
        self._left -= min(at - self._last, STOOD_STILL_SECONDS)
        self._last = at
        return self._left <= 0


@asynccontextmanager
async def running_for(seconds: float) -> AsyncGenerator[None]:
    """As `asyncio.timeout`; of a pause of this process one second counts. Raises TimeoutError."""
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
