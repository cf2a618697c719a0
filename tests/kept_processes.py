"""Processes that read files go from one test to the next, as from one file to the next: to start one takes a second of
the processor. For tests on virtual loops.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections import defaultdict
from collections.abc import Iterator

import pytest

from clock.processes import Processes
from clock.threads import _real_loop, wait_in_real_time

_kept: defaultdict[int, list[Process]] = defaultdict(list)
"""By how much memory they may take. All belong to the loop of `clock.real_time`, which outlives each test's own."""
_start, _close = Processes._started, Processes._close


async def _start_or_take(self: Processes) -> Process:
    kept = _kept[self._memory]
    while kept and not self._closed and asyncio.get_running_loop() is _real_loop():
        process = kept.pop()
        if process.returncode is None:
            self._all.add(process)
            return process
    return await _start(self)


async def _close_but_keep(self: Processes) -> None:
    """Only those at work are killed."""
    if asyncio.get_running_loop() is _real_loop():
        _kept[self._memory] += self._idle
        self._all.difference_update(self._idle)
    await _close(self)


@pytest.fixture(scope="session")
def kept() -> Iterator[None]:
    """What is kept ends with the last test."""
    yield

    async def end() -> None:
        for process in [process for processes in _kept.values() for process in processes]:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()

    wait_in_real_time(end)


@pytest.fixture(autouse=True)
def kept_processes(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "_started", _start_or_take)
    monkeypatch.setattr(Processes, "_close", _close_but_keep)
