"""Recordings and exports → dispatches, each at its time.

at 10:00:00   at 10:00:07   at 10:00:07
────┼─────────────┼┼──────────►  the recording
────D─────────────DD──────────►  what comes out, on the running loop's clock
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import clock
from services.discord import Dispatch, recordings


async def dispatches(*paths: Path, delay: float = 0.0) -> AsyncGenerator[Dispatch, None]:
    """Play files (see `services.discord.recordings.read`) on the running loop's clock.

    On a `VirtualLoop` that starts at `first_time`, each comes exactly at its `at`; `delay` seconds are added
    (`clock.now() - first_time(path)` plays it as if it began now). Time never goes back: a dispatch with an earlier
    time than now comes now.

    Raises:
        BadRecording: a file cannot be read, or holds nothing valid.
    """
    for dispatch in recordings.read(*paths):
        await _until(dispatch.at + delay)
        yield dispatch


async def _until(due: float) -> None:
    """Wait for `due`, at least for one turn of the loop."""
    loop = asyncio.get_running_loop()
    wait = due - clock.now()
    if wait <= 0:
        await asyncio.sleep(0)
        return
    # Virtual time is UTC itself: set the timer to the very instant, since now + (due - now) may round to another.
    when = due if isinstance(loop, clock.VirtualLoop) else loop.time() + wait
    reached: asyncio.Future[None] = loop.create_future()
    timer = loop.call_at(when, _reach, reached)
    try:
        await reached
    finally:
        timer.cancel()


def _reach(reached: asyncio.Future[None]) -> None:
    if not reached.done():  # cancelled in the same turn
        reached.set_result(None)


def first_time(*paths: Path) -> float:
    """When the first dispatch was received: where a virtual clock has to start.

    Raises:
        BadRecording: a file cannot be read, or holds nothing valid.
    """
    return next(recordings.read(*paths)).at
