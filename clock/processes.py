"""Runs work on bytes from outside in other processes, which are limited, killed when they pass a limit, and replaced.

Each process has its own pipes, so that one that dies loses only the work that it was doing. (A pool whose processes
share one pipe and its locks, such as those of `pebble` and the standard library, is broken by one that is killed while
it writes.)
"""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeVar

from clock.threads import run_in_real_time
from clock.worker import LENGTH, OUT_OF_MEMORY

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

MAX_PROCESSES = 2
MEMORY_BYTES = 768 * 1024 * 1024
START_SECONDS = 60.0
"""The time within which a process has to be ready, also on a busy machine."""
IDLE_SECONDS = 60.0
"""The time without work after which a process ends, to free its memory."""

_BUFFER_BYTES = 1024 * 1024

_ROOT = Path(__file__).resolve().parent.parent
_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "TMPDIR")
"""The environment variables that a process gets: none that may hold a secret."""


class WorkStopped(Exception):
    """The work passed a limit, or its process died. The message says which; it can end a line."""


class _ProcessEnded(Exception):
    """The process ended by itself, or was killed from outside. The message is the signal or exit status."""


class WorkRunner(Protocol):
    """A function that does blocking work and returns its result."""

    async def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work`; its result or exception is passed on. Raises WorkStopped: the work passed a limit."""
        ...


class FairTurns:
    """Lets at most `max_running` pieces of work run at a time, one for each key, and the keys in turn."""

    def __init__(self, max_running: int = MAX_PROCESSES) -> None:
        self._free = max_running
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}  # the key whose turn is next comes first
        self._running: set[Hashable] = set()

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncGenerator[None]:
        """Wait for a turn of `key`, and hold it during the block."""
        start = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(start)
        self._start_next()
        try:
            await start
            yield
        finally:
            if not start.cancelled():
                self._free += 1
                self._running.discard(key)
                if key in self._waiting:
                    self._waiting[key] = self._waiting.pop(key)  # behind all others
                self._start_next()

    def _start_next(self) -> None:
        for key, queue in [*self._waiting.items()]:
            if self._free and key not in self._running:
                while queue and not self._start(key, queue.popleft()):
                    pass
                if not queue:
                    del self._waiting[key]

    def _start(self, key: Hashable, start: asyncio.Future[None]) -> bool:
        if start.cancelled():
            return False
        start.set_result(None)
        self._free -= 1
        self._running.add(key)
        return True


class Processes:
    """Runs work in other processes, which are started when they are needed.

    Work and results are pickled: functions of modules, with plain values. On a `VirtualLoop` the clock stops meanwhile.
    """

    def __init__(
        self,
        *,
        seconds: float,
        max_processes: int = MAX_PROCESSES,
        memory_bytes: int = MEMORY_BYTES,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """`seconds`: the limit of one piece of work, of real time and of CPU, once its process is ready.
        `memory_bytes`: its limit of memory, beyond what its process has at the start.
        """
        self._seconds = seconds
        self._memory = memory_bytes
        self._idle_seconds = idle_seconds
        self._slots = asyncio.Semaphore(max_processes)
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in a process and return its result, or raise its exception. Cancelling kills that process.

        Raises:
            WorkStopped: it took too long or too much memory, or the process was killed. Another process will follow.
        """
        return await run_in_real_time(partial(self._run, work, args, kwargs))

    async def close(self) -> None:
        """Kill all processes, even while they work."""
        await run_in_real_time(self._close)

    @property
    def alive(self) -> int:
        """How many processes there are."""
        return len(self._all)

    async def _run(self, work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        async with self._slots:
            cpu_seconds = int(self._seconds) + 1
            request = pickle.dumps((work, args, kwargs, cpu_seconds), pickle.HIGHEST_PROTOCOL)
            answer = await self._answer(request)
        succeeded, result = await asyncio.to_thread(_unpickle, answer)
        if succeeded:
            return result
        raise result

    async def _answer(self, request: bytes) -> list[bytes]:
        while self._idle:
            process = self._idle.pop()
            with suppress(_ProcessEnded):  # perhaps before it got the request
                return await self._ask(process, request)
        try:
            return await self._ask(await self._start_process(), request)
        except _ProcessEnded as error:
            raise WorkStopped(f"the process that read it ended ({error})") from None

    async def _ask(self, process: Process, request: bytes) -> list[bytes]:
        """Raises WorkStopped: a limit was passed. Raises _ProcessEnded: it ended for another reason."""
        whole = False
        try:
            async with asyncio.timeout(self._seconds):
                answer = await _exchange(process, request)
            whole = True
        except TimeoutError:
            raise WorkStopped(self._too_long) from None
        except (OSError, asyncio.IncompleteReadError):
            status = await process.wait()
            if status == OUT_OF_MEMORY:
                raise WorkStopped(f"it needs more than {self._memory // 1024**2} MiB of memory") from None
            if status == -signal.SIGXCPU:
                raise WorkStopped(self._too_long) from None
            raise _ProcessEnded(signal.Signals(-status).name if status < 0 else f"exit status {status}") from None
        finally:
            if whole:
                self._idle.append(process)
                self._expire_later()
            else:
                await self._kill(process)
        return answer

    @property
    def _too_long(self) -> str:
        return f"it takes longer than {self._seconds:g} s"

    async def _start_process(self) -> Process:
        if self._closed:
            raise _ProcessEnded("shutdown")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "clock.worker", str(self._memory)),
            stdin=PIPE,
            stdout=PIPE,
            limit=_BUFFER_BYTES,
            stderr=DEVNULL,  # what libraries say about hostile bytes
            cwd=_ROOT,
            env=_environment(),
            start_new_session=True,  # Ctrl-C in the terminal is for the parent
        )
        self._all.add(process)
        ready = False
        try:
            async with asyncio.timeout(START_SECONDS):
                await _next_number(process)
            ready = True
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            raise _ProcessEnded("before it was ready") from None
        finally:
            if not ready:
                await self._kill(process)
        return process

    async def _kill(self, process: Process) -> None:
        self._all.discard(process)
        with suppress(ProcessLookupError):
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.shield(process.wait())

    def _expire_later(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        self._expiry = asyncio.get_running_loop().call_later(self._idle_seconds, self._expire)

    def _expire(self) -> None:
        """End the idle processes: each reads the end of its input."""
        for process in self._idle:
            self._all.discard(process)
            if process.stdin is not None:
                process.stdin.close()
        self._idle.clear()

    async def _close(self) -> None:
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        self._idle.clear()
        await asyncio.gather(*(self._kill(process) for process in tuple(self._all)))


async def _exchange(process: Process, request: bytes) -> list[bytes]:
    assert process.stdin is not None  # noqa: S101 (tells the type checker)
    process.stdin.write(LENGTH.pack(len(request)))
    process.stdin.write(request)
    await process.stdin.drain()
    return [await _read(process, await _next_number(process)) for _ in range(await _next_number(process))]


async def _next_number(process: Process) -> int:
    return int(LENGTH.unpack(await _read(process, LENGTH.size))[0])


async def _read(process: Process, count: int) -> bytes:
    assert process.stdout is not None  # noqa: S101 (likewise)
    return await process.stdout.readexactly(count)


def _environment() -> dict[str, str]:
    inherited = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {**inherited, "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"}  # it may write no files


def _unpickle(answer: list[bytes]) -> tuple[bool, Any]:
    return pickle.loads(answer[0], buffers=answer[1:])  # noqa: S301 (from our own process)
