"""Writes state soon after it changed, not each time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

SECONDS = 2.0
"""What a crash may lose: that much catch-up is done twice, and what was answered is told from the threads."""

log = logging.getLogger(__name__)


@asynccontextmanager
async def saved_soon(wanted: asyncio.Event, save: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
    """Saves soon after `wanted` is set, however often within a moment; and once more at the end.

    A write that fails is an error line, and tried again at the next change: the bot goes on.
    """

    async def keep_saving() -> None:
        while True:
            await wanted.wait()
            await asyncio.sleep(SECONDS)
            wanted.clear()
            await attempt()

    async def attempt() -> None:
        try:
            await save()
        except OSError as error:
            log.error("state was not saved: %s", error)  # noqa: TRY400 (one line for the operator)

    task = asyncio.create_task(keep_saving())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await attempt()
