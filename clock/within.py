"""Limits of time that a pause of the whole process does not use up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

STOOD_STILL_SECONDS = 5.0
"""A limit that passes by so much more than it is was not noticed in time: this process stood still."""

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
