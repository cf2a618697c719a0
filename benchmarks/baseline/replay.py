"""A recorded message stream, played back at the loop's own pace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from benchmarks.baseline.model import Message


async def replay(recording: Iterable[Message]) -> AsyncIterator[Message]:
    """Yield each message at its recorded distance from the first one."""
    loop = asyncio.get_running_loop()
    offset: float | None = None
    for message in recording:
        offset = loop.time() - message.at if offset is None else offset
        await asyncio.sleep(max(0.0, offset + message.at - loop.time()))
        yield message
