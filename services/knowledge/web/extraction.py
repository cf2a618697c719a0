"""Reading text out of bodies, off the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import clock
from services.knowledge.pages import FetchFailed
from services.knowledge.web.contents import read
from services.knowledge.web.text import PageText

THREADS = 2


class Extraction:
    """Reads bodies in threads of its own, so that a page which takes for ever delays no work with files.

    Pitfall 38: parsing a page takes up to seconds, in which the gateway's heartbeat would be late.
    """

    def __init__(self, *, max_bytes: int, timeout_seconds: float) -> None:
        self._max_bytes = max_bytes
        self._timeout = timeout_seconds
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="web-text")

    async def text(self, body: bytes, content_type: str) -> PageText:
        """As `contents.read`; takes no virtual time.

        Raises:
            FetchFailed: as there, or it took too long. The thread is not given back before it is through.
        """
        return await clock.real_time(partial(self._text, body, content_type))

    def close(self) -> None:
        """Drop what has not begun."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _text(self, body: bytes, content_type: str) -> PageText:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout):
                return await loop.run_in_executor(self._threads, read, body, content_type, self._max_bytes)
        except TimeoutError:
            raise FetchFailed(f"reading its text takes longer than {self._timeout:g} s") from None
