"""Processes that read files and pages are kept from test to test: each imports what it reads with anew."""

# pyright: reportPrivateUsage=false
# `Processes` offers no way to hand its processes on, as nothing but tests needs one.

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from itertools import chain
from typing import TypeVar

import pytest

from clock import Processes, VirtualLoop, processes
from clock.threads import (
    _real_loop,
    run_in_real_time,
    wait_in_real_time,
)

T = TypeVar("T")
Idle = defaultdict[int, list[Process]]


@pytest.fixture(scope="session")
def idle_readers() -> Iterator[Idle]:
    """The processes that no test uses at the moment, by their limit of memory."""
    idle: Idle = defaultdict(list)
    yield idle

    async def end() -> None:
        for process in chain(*idle.values()):
            process.kill()
            await process.wait()

    wait_in_real_time(end)


async def on_one_loop(call: Callable[[], Coroutine[object, object, T]]) -> T:
    """As `run_in_real_time`, also on an ordinary loop: no process is kept longer than the loop that started it."""
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        return await run_in_real_time(call)
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), _real_loop()))


@pytest.fixture(autouse=True)
def kept_readers(idle_readers: Idle, monkeypatch: pytest.MonkeyPatch) -> None:
    start, close = Processes._start_process, Processes._close

    async def start_or_take(some: Processes) -> Process:
        idle = idle_readers[some._memory]
        while idle:
            process = idle.pop()
            if process.returncode is None:
                some._all.add(process)
                return process
        return await start(some)

    async def keep_idle_and_close(some: Processes) -> None:
        idle_readers[some._memory].extend(some._idle)
        some._all.difference_update(some._idle)
        await close(some)

    monkeypatch.setattr(processes, "run_in_real_time", on_one_loop)
    monkeypatch.setattr(Processes, "_start_process", start_or_take)
    monkeypatch.setattr(Processes, "_close", keep_idle_and_close)
