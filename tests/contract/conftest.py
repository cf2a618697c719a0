"""Processes that read files are kept from test to test: each imports what it reads with anew."""

from __future__ import annotations

from asyncio.subprocess import Process
from collections.abc import Iterator

import pytest

from clock import Processes
from clock.threads import wait_in_real_time


@pytest.fixture(scope="session")
def idle_readers() -> Iterator[list[Process]]:
    """The processes that no test uses at the moment."""
    idle: list[Process] = []
    yield idle

    async def end() -> None:
        for process in idle:
            process.kill()
            await process.wait()

    wait_in_real_time(end)


@pytest.fixture(autouse=True)
def kept_readers(idle_readers: list[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    # `Processes` offers no way to hand its processes on: nothing but tests needs one.
    start, close = Processes._start_process, Processes._close  # pyright: ignore[reportPrivateUsage]

    async def start_or_take(processes: Processes) -> Process:
        while idle_readers:
            process = idle_readers.pop()
            if process.returncode is None:
                processes._all.add(process)  # pyright: ignore[reportPrivateUsage]
                return process
        return await start(processes)

    async def keep_idle_and_close(processes: Processes) -> None:
        idle_readers.extend(processes._idle)  # pyright: ignore[reportPrivateUsage]
        processes._all.difference_update(processes._idle)  # pyright: ignore[reportPrivateUsage]
        await close(processes)

    monkeypatch.setattr(Processes, "_start_process", start_or_take)
    monkeypatch.setattr(Processes, "_close", keep_idle_and_close)
