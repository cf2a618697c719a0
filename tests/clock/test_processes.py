"""Pitfall 64: bytes from outside are read in processes that are limited, killed and replaced."""

from __future__ import annotations

import asyncio
import errno
import json
import operator
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import clock
from clock import Processes, VirtualLoop, WorkStopped

pytestmark = pytest.mark.real_time

ROOT = Path(clock.__file__).parent.parent
LONG = 30.0
"""Seconds that nothing here takes."""


@asynccontextmanager
async def opened(
    seconds: float = LONG, at_once: int = 2, memory_bytes: int = 200_000_000, idle_seconds: float = LONG
) -> AsyncGenerator[Processes]:
    processes = Processes(seconds=seconds, max_processes=at_once, memory_bytes=memory_bytes, idle_seconds=idle_seconds)
    try:
        yield processes
    finally:
        await processes.close()
        assert processes.alive == 0


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


async def until(true: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    async with asyncio.timeout(LONG):
        while not true():  # noqa: ASYNC110 (no event comes from there)
            await asyncio.sleep(0.01)


async def test_what_the_work_gives_comes_back_and_it_was_done_elsewhere() -> None:
    async with opened() as processes:
        pid = await processes.run(os.getpid)
        assert pid != os.getpid()
        assert await processes.run(int, "z", base=36) == 35
        assert await processes.run(os.getpid) == pid  # one at a time needs no second


async def test_what_the_work_raises_comes_back() -> None:
    async with opened() as processes:
        with pytest.raises(ValueError, match="no number"):
            await processes.run(int, "no number")
        with pytest.raises(json.JSONDecodeError):
            await processes.run(json.loads, "{")
        assert processes.alive == 1


async def test_what_cannot_be_pickled_is_an_error_that_says_so() -> None:
    async with opened() as processes:
        with pytest.raises(TypeError, match="lock cannot leave its process"):
            await processes.run(threading.Lock)
        assert await processes.run(int, "7") == 7


@dataclass
class Noticing:
    """Bytes that tell when they are pickled."""

    pickled: list[str]
    name: str

    def __reduce__(self) -> tuple[type[float], tuple[str]]:
        self.pickled.append(self.name)
        return float, ("0.2",)


def _pause(seconds: Any) -> None:
    time.sleep(seconds)


async def test_work_that_waits_is_not_pickled_before_its_turn() -> None:
    pickled: list[str] = []
    async with opened(at_once=1) as processes:
        first = asyncio.create_task(processes.run(_pause, Noticing(pickled, "first")))
        second = asyncio.create_task(processes.run(_pause, Noticing(pickled, "second")))
        await until(lambda: bool(pickled))
        assert pickled == ["first"]
        await asyncio.gather(first, second)
    assert pickled == ["first", "second"]


async def test_large_arguments_and_results_pass() -> None:
    async with opened() as processes:
        data = os.urandom(5_000_000)
        assert await processes.run(operator.concat, data, b"!") == data + b"!"


def test_a_virtual_clock_stands_still_meanwhile() -> None:
    async def passed() -> float:
        async with opened() as processes:
            begun = clock.now()
            await processes.run(time.sleep, 0.05)
            return clock.now() - begun

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert runner.run(passed()) == 0


async def test_no_more_processes_than_work_at_once() -> None:
    async with opened() as processes:
        assert 1 <= len(set(await asyncio.gather(*(processes.run(os.getpid) for _ in range(5))))) <= 2


async def test_work_that_takes_too_long_is_killed_and_the_next_has_another_process() -> None:
    async with opened(seconds=0.5, at_once=1) as processes:
        pid = await processes.run(os.getpid)
        with pytest.raises(WorkStopped, match=r"^it takes longer than 0\.5 s$"):
            await processes.run(time.sleep, 3600)
        assert not is_there(pid)
        with pytest.raises(WorkStopped, match="longer"):  # no signal handler runs in there
            await processes.run(re.fullmatch, "(a+)+b", "a" * 60)
        assert await processes.run(os.getpid) != pid


async def test_the_limit_begins_when_the_work_does() -> None:
    async with opened(seconds=2, at_once=1) as processes:
        await asyncio.gather(*(processes.run(time.sleep, 0.6) for _ in range(5)))


async def test_the_start_of_a_process_counts_for_no_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import time\ntime.sleep(0.7)")
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    monkeypatch.setattr("clock.processes._environment", lambda: environment)
    async with opened(seconds=0.5) as processes:
        assert await processes.run(int, "7") == 7


async def test_hostile_files_keep_an_honest_one_waiting_no_longer_than_the_limit() -> None:
    async with opened(seconds=1, at_once=2) as processes:
        begun = time.monotonic()
        hostile = [asyncio.ensure_future(processes.run(time.sleep, 3600)) for _ in range(2)]
        await asyncio.sleep(0)
        assert await processes.run(int, "7") == 7
        assert time.monotonic() - begun < LONG  # the limit, and the starts of three processes
        assert all(isinstance(each, WorkStopped) for each in await asyncio.gather(*hostile, return_exceptions=True))


async def test_work_that_needs_too_much_memory_is_stopped() -> None:
    async with opened(memory_bytes=100_000_000) as processes:
        with pytest.raises(WorkStopped, match=r"^it needs more than 95 MiB of memory$"):
            await processes.run(bytearray, 130_000_000)
        with pytest.raises(WorkStopped, match="memory"):  # in small pieces
            await processes.run(list, range(10**9))
        assert len(await processes.run(bytearray, 30_000_000)) == 30_000_000
        assert len(await processes.run(bytearray, 30_000_000)) == 30_000_000  # what the one before took is no matter


async def test_cpu_time_is_limited_by_the_system_as_well() -> None:
    """Should the parent stand still, or be gone."""
    async with opened(seconds=1) as processes:
        soft = (await processes.run(_limits))["RLIMIT_CPU"][0]
        assert 2 <= soft <= 10


def _limits() -> dict[str, tuple[int, int]]:
    import resource  # noqa: PLC0415 (not on Windows)

    return {name: resource.getrlimit(getattr(resource, name)) for name in ("RLIMIT_CPU", "RLIMIT_CORE")}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
async def test_a_process_that_is_killed_from_outside_costs_its_own_work_only(number: signal.Signals) -> None:
    async with opened() as processes:
        pid = await processes.run(os.getpid)
        other = asyncio.ensure_future(processes.run(time.sleep, 0.3))
        await asyncio.sleep(0)
        with pytest.raises(WorkStopped, match=f"^the process that read it ended \\({number.name}\\)$"):
            await processes.run(signal.raise_signal, number)
        await other
        os.kill(await processes.run(os.getpid), signal.SIGKILL)  # an idle one
        assert await processes.run(os.getpid) not in {pid, None}


async def test_work_that_ends_its_process_is_stopped_work() -> None:
    async with opened() as processes:
        with pytest.raises(WorkStopped, match=r"ended \(exit status 3\)"):
            await processes.run(os._exit, 3)
        assert await processes.run(int, "7") == 7


async def test_cancelling_kills_the_process() -> None:
    async with opened(at_once=1) as processes:
        pid = await processes.run(os.getpid)
        work = asyncio.ensure_future(processes.run(time.sleep, 3600))
        await asyncio.sleep(0.1)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await until(lambda: not is_there(pid))
        assert await processes.run(int, "7") == 7


async def test_closing_kills_all_of_them() -> None:
    processes = Processes(seconds=LONG)
    pids = await asyncio.gather(*(processes.run(_slow_pid) for _ in range(2)))
    work = asyncio.ensure_future(processes.run(time.sleep, 3600))
    await asyncio.sleep(0.1)
    await processes.close()
    with pytest.raises(WorkStopped, match="shutdown"):
        await work
    assert len(set(pids)) == 2
    await until(lambda: not any(map(is_there, pids)))


def _slow_pid() -> int:
    time.sleep(0.2)
    return os.getpid()


async def test_idle_processes_end() -> None:
    async with opened(idle_seconds=0.05) as processes:
        pid = await processes.run(os.getpid)
        await until(lambda: not is_there(pid))
        assert processes.alive == 0
        assert await processes.run(os.getpid) != pid


async def test_a_process_knows_no_secret_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP__DISCORD__TOKEN", "canary")
    async with opened() as processes:
        assert "canary" not in (await processes.run(_environment)).values()


def _environment() -> dict[str, str]:
    return dict(os.environ)


async def test_a_process_writes_no_files_and_no_cores(tmp_path: Path) -> None:
    async with opened() as processes:
        with pytest.raises(OSError, match="too large") as caught:
            await processes.run((tmp_path / "x").write_text, "x")
        assert caught.value.errno == errno.EFBIG
        assert (await processes.run(_limits))["RLIMIT_CORE"] == (0, 0)


async def test_what_the_work_prints_is_no_answer() -> None:
    async with opened() as processes:
        assert await processes.run(print, "a lie") is None
        assert await processes.run(subprocess.call, ["echo", "a lie"]) == 0
        assert await processes.run(int, "7") == 7


def test_a_process_ends_with_a_parent_that_is_killed() -> None:
    script = """
import asyncio, os, time
from clock import Processes
async def main():
    processes = Processes(seconds=30)
    print(await processes.run(os.getpid), flush=True)
    time.sleep(3600)
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_there(pid)
        parent.kill()
    asyncio.run(until(lambda: not is_there(pid)))


async def test_an_interrupt_in_the_terminal_is_for_the_parent() -> None:
    async with opened() as processes:
        pid = await processes.run(os.getpid)
        assert os.getpgid(pid) != os.getpgid(0)
        with suppress(ProcessLookupError):
            os.killpg(os.getpgid(pid), 0)
