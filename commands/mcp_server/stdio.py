"""The protocol over stdin and stdout, for an assistant that starts the program itself."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys
import threading
from collections.abc import Generator
from typing import Any, TextIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from assembly.running import stop_signal


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until stdin ends, or a signal."""
    with stop_signal() as stopped, own_stdout() as stdout:
        serving = asyncio.create_task(_serve(server, stdout))
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            serving.cancel()
        # What is written to a client that has gone cannot be helped.
        with contextlib.suppress(asyncio.CancelledError, BrokenPipeError):
            await serving


async def _serve(server: Server[Any], stdout: TextIO) -> None:
    lines = cast("anyio.AsyncFile[str]", InputLines(asyncio.get_running_loop()))  # it is only iterated
    async with stdio_server(lines, anyio.wrap_file(stdout)) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


class InputLines:
    """The lines of stdin. They are read in a thread that nobody waits for: the package's own reader, which waits for a
    line, could not be stopped.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(maxsize=1)
        threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()

    def __aiter__(self) -> InputLines:
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self) -> None:
        # A RuntimeError or a cancelled call: the loop has ended.
        with contextlib.suppress(RuntimeError, asyncio.CancelledError, OSError, ValueError):
            for line in sys.stdin.buffer:
                self._put(line.decode("utf-8", "replace"))
            self._put(None)

    def _put(self, line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


@contextlib.contextmanager
def own_stdout() -> Generator[TextIO]:
    """The protocol's stdout. What anything else prints goes to stderr for as long as the block runs."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        # Closed by nobody while a thread may still write to it.
        yield io.TextIOWrapper(os.fdopen(kept, "wb", closefd=False), encoding="utf-8", newline="\n")
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
