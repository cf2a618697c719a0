"""Threads that hang (in a parser, or in a look-up of a name) do not keep a loop, or the process, from ending."""

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


class ImpatientThreads(ThreadPoolExecutor):
    """As its base; its end waits `patience` seconds at the most."""

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._patience = patience

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            join(self._threads, self._patience)


def patient_to_a_point(loop: L) -> L:
    """The loop, whose end does not wait for threads that hang."""
    loop.set_default_executor(ImpatientThreads())
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
    """End the process, as `sys.exit` does; also where a thread hangs, which Python itself would wait for."""
    others = [each for each in threading.enumerate() if not each.daemon and each is not threading.current_thread()]
    if not join(others, patience):
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)
