"""A loop and a process that can end although a thread hangs (in a parser, or in a name look-up)."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn, TypeVar

L = TypeVar("L", bound=asyncio.AbstractEventLoop)

PATIENCE_SECONDS = 5.0
"""How long threads are waited for when everything else has ended: a write to a disk takes less."""


class BoundedShutdownExecutor(ThreadPoolExecutor):
    """A ThreadPoolExecutor whose shutdown waits `patience` seconds at most."""

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._patience = patience

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            join(self._threads, self._patience)


def with_bounded_shutdown(loop: L) -> L:
    """Give the loop an executor whose shutdown waits a bounded time for threads that hang; return the loop."""
    loop.set_default_executor(BoundedShutdownExecutor())
    return loop


def join(threads: Iterable[threading.Thread], seconds: float) -> bool:
    """Wait for threads, all together so long. Whether all have ended. Blocking."""
    until = time.monotonic() + seconds
    ended = True
    for thread in list(threads):
        thread.join(max(0.0, until - time.monotonic()))
        ended = ended and not thread.is_alive()
    return ended


def leave(code: int, patience: float = PATIENCE_SECONDS) -> NoReturn:
    """End the process with an exit code, like `sys.exit`, also where a thread hangs that Python itself would wait for."""
    others = [each for each in threading.enumerate() if not each.daemon and each is not threading.current_thread()]
    if not join(others, patience):
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)
