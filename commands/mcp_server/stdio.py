"""The protocol over stdin and stdout, for an assistant that starts the program itself."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import sys
import threading
from collections.abc import Generator, Iterator
from typing import Any, TextIO, cast

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

LONGEST = 1024 * 1024
"""Bytes of a message: arguments are short."""
AT_ONCE = 64 * 1024


async def serve_stdio(server: Server[Any], stopped: asyncio.Future[None]) -> None:
    """Serve until stdin ends, or `stopped` is done."""
    with protocol_streams() as (given, stdout):
        serving = asyncio.create_task(_serve(server, given, stdout))
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        serving.cancel()
        try:
            await serving
        except* (asyncio.CancelledError, BrokenPipeError):
            pass  # it was stopped, or its client has gone
        with contextlib.suppress(BrokenPipeError):
            stdout.close()  # else the collector does, and tells of what such a client left unread


async def _serve(server: Server[Any], given: int, stdout: TextIO) -> None:
    lines = cast("anyio.AsyncFile[str]", InputLines(given, asyncio.get_running_loop()))  # it is only iterated
    async with stdio_server(lines, anyio.wrap_file(stdout)) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


class InputLines:
    """The lines of a file. They are read in a thread that nobody waits for: the package's own reader, which waits for a
    line, could not be stopped.
    """

    def __init__(self, file: int, loop: asyncio.AbstractEventLoop) -> None:
        self._file = file
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
        with contextlib.suppress(RuntimeError, asyncio.CancelledError):
            for line in _lines_in(self._file):
                self._put(line.decode("utf-8", "replace"))
            self._put(None)

    def _put(self, line: str | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


def _lines_in(file: int) -> Iterator[bytes]:
    """Without a buffer of Python, whose lock a thread that is left behind would hold for ever. Of a line that is too
    long its beginning, which is no message. Blocking.
    """
    rest = b""
    while True:
        try:
            read = os.read(file, AT_ONCE)
        except OSError:  # a terminal that has gone
            read = b""
        if not read:
            break
        *whole, rest = (rest + read).split(b"\n")
        yield from whole
        rest = rest[:LONGEST]
    if rest:
        yield rest


@contextlib.contextmanager
def protocol_streams() -> Generator[tuple[int, TextIO]]:
    """The protocol's stdin, as a file descriptor, and its stdout. For as long as the block runs nothing else reads the
    one, and what anything else prints goes to stderr.
    """
    sys.stdout.flush()
    given, kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        # Neither is closed here: a thread may still use it.
        yield given, io.TextIOWrapper(os.fdopen(kept, "wb", closefd=False), encoding="utf-8", newline="\n")
    finally:
        sys.stdout.flush()
        os.dup2(given, 0)
        os.dup2(kept, 1)
