"""Cancel tasks and wait for their end."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_SECONDS = 0.5


async def cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended; exceptions that they raise are dropped.

    Again and again: before Python 3.12 `wait_for` forgets a cancellation that comes at the moment when what it waits
    for is done, and a task that goes on for ever would go on.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
        await asyncio.gather(*done, return_exceptions=True)
