"""`--llm-record FILE`: whatever is asked and answered, on disk before anybody acts on it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import clock
from services.llm.endpoint import Endpoint, Reply, Request
from services.llm.errors import LLMError
from services.llm.exchanges import render


class RecordingEndpoint:
    """Asks `inner`, and appends each exchange to `path` (services.llm.exchanges), failures included.

    On a virtual loop the lines stand in the order in which calls were made, and recording changes nothing of what
    the run does; on an ordinary loop in the order in which they ended.

    Raises:
        OSError: at once, if the file cannot be opened for appending.
    """

    def __init__(self, inner: Endpoint, path: Path) -> None:
        self._inner = inner
        self._turn = asyncio.Lock()
        self._file = path.open("ab")
        if not _ends_whole(path):
            self._file.write(b"\n")  # what a crash cut off stays one bad line and spoils no good one

    async def complete(self, request: Request) -> Reply:
        try:
            reply = await self._inner.complete(request)
        except LLMError as error:
            await self._append(render(request, error))
            raise
        await self._append(render(request, reply))
        return reply

    async def aclose(self) -> None:
        await self._inner.aclose()
        async with self._turn:
            self._file.close()

    async def _append(self, line: str) -> None:
        if isinstance(asyncio.get_running_loop(), clock.VirtualLoop):
            # On the spot: waiting for a thread would let other work overtake, and here nobody's heartbeat waits.
            self._write(line)
            return
        async with self._turn:
            await asyncio.to_thread(self._write, line)

    def _write(self, line: str) -> None:
        self._file.write(line.encode())
        self._file.flush()
        os.fsync(self._file.fileno())


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
