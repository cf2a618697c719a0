"""Processes that read files go from one test to the next, as from one file to the next: to start one takes a second of
the processor.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, cast

import pytest

from clock.processes import _READ_AT_ONCE, _ROOT, Processes, _Ended, _environment

_kept: defaultdict[int, list[Popen[bytes]]] = defaultdict(list)
"""Those that are idle, by how much memory they may take."""
_close = Processes._close


class _Connected:
    """A process, as asyncio's own, for the loop that it is connected to at the time."""

    def __init__(self, process: Popen[bytes]) -> None:
        self.process = process
        self.stdout = asyncio.StreamReader(limit=_READ_AT_ONCE)
        self._ends: list[asyncio.BaseTransport] = []

    async def connect(self) -> _Connected:
        loop = asyncio.get_running_loop()
        answers = asyncio.StreamReaderProtocol(self.stdout)
        requests = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        reading, _ = await loop.connect_read_pipe(lambda: answers, _doubled(self.process.stdout, "rb"))
        writing, _ = await loop.connect_write_pipe(lambda: requests, _doubled(self.process.stdin, "wb"))
        self.stdin = asyncio.StreamWriter(writing, requests, None, loop)
        self._ends = [reading, writing]
        return self

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.poll()

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()

    async def wait(self) -> int:
        while (code := self.process.poll()) is None:  # noqa: ASYNC110 (what ends is a process)
            await asyncio.sleep(0.002)
        self.disconnect()
        _let_go(self.process)
        return code

    def disconnect(self) -> None:
        for end in self._ends:
            end.close()


def _doubled(pipe: IO[bytes] | None, mode: str) -> IO[bytes]:
    assert pipe is not None
    return os.fdopen(os.dup(pipe.fileno()), mode, buffering=0)


def _let_go(process: Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.close()


async def _start_or_take(self: Processes) -> Process:
    if self._closed:
        raise _Ended("shutdown")
    process = _taken(self._memory) or _started(self._memory)
    connected = cast("Process", await _Connected(process).connect())
    self._all.add(connected)
    return connected


def _started(memory: int) -> Popen[bytes]:
    return Popen(
        [sys.executable, "-m", "clock.worker", str(memory)],
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        cwd=_ROOT,
        env=_environment(),
        start_new_session=True,
    )


def _taken(memory: int) -> Popen[bytes] | None:
    while _kept[memory]:
        process = _kept[memory].pop()
        if process.poll() is None:
            return process
        _let_go(process)
    return None


def _keep(self: Processes) -> None:
    """Take leave of those that are idle."""
    for each in cast("list[_Connected]", self._idle):
        each.disconnect()
        _kept[self._memory].append(each.process)
    self._all.difference_update(self._idle)
    self._idle.clear()


async def _close_but_keep(self: Processes) -> None:
    """Only those at work are killed."""
    _keep(self)
    await _close(self)
    await asyncio.sleep(0.001)  # what was closed is


@pytest.fixture(scope="session")
def kept() -> Iterator[None]:
    """What is kept ends with the last test."""
    yield
    for process in [process for processes in _kept.values() for process in processes]:
        _let_go(process)
        process.wait()


@pytest.fixture(autouse=True)
def kept_processes(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "_started", _start_or_take)
    monkeypatch.setattr(Processes, "_expire", _keep)
    monkeypatch.setattr(Processes, "_close", _close_but_keep)
