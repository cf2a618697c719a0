"""Calls that leave the process (an LLM endpoint), during which a virtual clock stops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from clock.virtual_loop import VirtualLoop

T = TypeVar("T")


async def real_time(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await `call()` in real time.

    On an ordinary loop this is an await. On a `VirtualLoop` the call runs on an ordinary loop in another thread, so
    that its time-outs and pauses are real; the virtual clock stops until it ends, and calls outstanding at one instant
    resume in the order in which they were made, after the threads of that instant.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        return await call()
    work = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), _real_loop()), loop=loop)
    return await loop.hold(work, at_server=True)


_lock = threading.Lock()
_started: list[asyncio.AbstractEventLoop] = []


def _real_loop() -> asyncio.AbstractEventLoop:
    """The ordinary loop, in a daemon thread, started at the first call."""
    with _lock:
        if not _started:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="real_time", daemon=True).start()
            _started.append(loop)
        return _started[0]
