"""`--llm-record FILE`: whatever is asked and answered, on disk before anybody acts on it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import clock
from services.llm.endpoint import Endpoint, Reply, Request
from services.llm.errors import LLMError
from services.llm.exchanges import render
from services.storage import files


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
        self._path = path
        # What a crash cut off stays one bad line and spoils no good one.
        with path.open("ab") as file:
            if not _ends_whole(path):
                file.write(b"\n")

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
        async with self._turn:  # until what is being written is
            pass

    async def _append(self, line: str) -> None:
        if isinstance(asyncio.get_running_loop(), clock.VirtualLoop):
            # On the spot: waiting for a thread would let other work overtake, and here nobody's heartbeat waits.
            self._write(line)
            return
        async with self._turn:
            await clock.run_blocking(self._write, line)

    def _write(self, line: str) -> None:
        # Opened each time: somebody's exchanges may have been taken out of it meanwhile, in a new file.
        files.append(self._path, line.encode())


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
