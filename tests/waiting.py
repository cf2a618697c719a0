"""Waiting for what nothing announces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def wait_until(condition: Callable[[], object], seconds: float) -> None:
    """Wait until `condition()` holds. What takes long to come, or to look at, is looked at less often: whoever is
    waited for needs the processor.

    Raises:
        TimeoutError: it never did, within `seconds` of the loop.
    """
    pause = 0.001
    async with asyncio.timeout(seconds):
        while True:
            began = time.thread_time()
            if condition():
                return
            pause = max(min(pause * 1.1, 0.03), 10 * (time.thread_time() - began))
            await asyncio.sleep(pause)
