"""Work on bytes from outside, in processes of its own: limited, killed when it goes past its limits, replaced.

Each process has its own pipes, so that one that dies, however it dies, costs nobody but the work that it was doing.
(A pool whose processes share one pipe and its locks, as `pebble`'s and the standard library's do, is broken by one that
is killed while it writes.)
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

from clock.threads import real_time
from clock.worker import LENGTH, OUT_OF_MEMORY

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

AT_ONCE = 2
MEMORY_BYTES = 768 * 1024 * 1024
IDLE_SECONDS = 60.0
"""After so long without work a process ends, and its memory is free again."""

_READ_AT_ONCE = 1024 * 1024

_ROOT = Path(__file__).resolve().parent.parent
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "TMPDIR")
"""Variables that a process gets: none that may hold a secret."""


class WorkStopped(Exception):
    """The work went past a limit, or its process died; the message says which, fit for the end of a line."""


class _Ended(Exception):
    """The process ended by itself, or was killed from outside."""


class Run(Protocol):
    """A function that does blocking work and returns its result."""

    async def __call__(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `work` returns, or raise what it raises. Raises WorkStopped: the work was cut off at a limit."""
        ...


class FairTurns:
    """Lets work begin: `at_once` pieces at a time, one for each key, and the keys in turn."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = at_once
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}  # whose turn is next comes first
        self._at_work: set[Hashable] = set()

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncGenerator[None]:
        """Wait for a turn of `key`, and hold it during the block."""
        begins = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(begins)
        self._begin_next()
        try:
            await begins
            yield
        finally:
            if not begins.cancelled():
                self._free += 1
                self._at_work.discard(key)
                if key in self._waiting:
                    self._waiting[key] = self._waiting.pop(key)  # behind all others
                self._begin_next()

    def _begin_next(self) -> None:
        for key, queue in [*self._waiting.items()]:
            if self._free and key not in self._at_work:
                while queue and not self._begun(key, queue.popleft()):
                    pass
                if not queue:
                    del self._waiting[key]

    def _begun(self, key: Hashable, begins: asyncio.Future[None]) -> bool:
        if begins.cancelled():
            return False
        begins.set_result(None)
        self._free -= 1
        self._at_work.add(key)
        return True


class Processes:
    """Does work in processes that are started when they are needed.

    Work and results are pickled: functions of modules, with plain values. On a `VirtualLoop` the clock stops meanwhile.
    """

    def __init__(
        self,
        *,
        seconds: float,
        at_once: int = AT_ONCE,
        memory_bytes: int = MEMORY_BYTES,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """`seconds`: what one piece of work may take, of real time and of CPU, from when it begins. `at_once`: how many
        processes there are at most. `memory_bytes`: what a piece may take beyond what its process has before.
        """
        self._seconds = seconds
        self._memory = memory_bytes
        self._idle_seconds = idle_seconds
        self._turns = asyncio.Semaphore(at_once)
        self._idle: list[Process] = []
        self._all: set[Process] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._closed = False

    async def run(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work` in a process and return its result, or raise its exception. Cancelling kills that process.

        Raises:
            WorkStopped: it took too long or too much memory, or the process was killed. The next piece has another.
        """
        return await real_time(partial(self._run, work, args, kwargs))

    async def close(self) -> None:
        """Kill all processes, also those at work."""
        await real_time(self._close)

    @property
    def alive(self) -> int:
        """How many processes there are."""
        return len(self._all)

    async def _run(self, work: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        async with self._turns:
            request = pickle.dumps((work, args, kwargs, int(self._seconds) + 1), pickle.HIGHEST_PROTOCOL)
            answer = await self._answer(request)
        succeeded, outcome = await asyncio.to_thread(_unpickled, answer)
        if succeeded:
            return outcome
        raise outcome

    async def _answer(self, request: bytes) -> list[bytes]:
        while self._idle:
            process = self._idle.pop()
            with suppress(_Ended):  # perhaps before it got this
                return await self._asked(process, request)
        try:
            return await self._asked(await self._started(), request)
        except _Ended as error:
            raise WorkStopped(f"the process that read it ended ({error})") from None

    async def _asked(self, process: Process, request: bytes) -> list[bytes]:
        """Raises WorkStopped: a limit was passed. Raises _Ended: it was something else."""
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
            raise _Ended(signal.Signals(-status).name if status < 0 else f"exit status {status}") from None
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

    async def _started(self) -> Process:
        if self._closed:
            raise _Ended("shutdown")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "clock.worker", str(self._memory)),
            stdin=PIPE,
            stdout=PIPE,
            limit=_READ_AT_ONCE,
            stderr=DEVNULL,  # what libraries say about hostile bytes
            cwd=_ROOT,
            env=_environment(),
            start_new_session=True,  # Ctrl-C in the terminal is for the parent
        )
        self._all.add(process)
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
        """End the idle ones: each reads the end of its input."""
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
    assert process.stdout is not None  # noqa: S101 (likewise)
    process.stdin.write(LENGTH.pack(len(request)))
    process.stdin.write(request)
    await process.stdin.drain()
    count = await _number(process.stdout)
    return [await process.stdout.readexactly(await _number(process.stdout)) for _ in range(count)]


async def _number(stream: asyncio.StreamReader) -> int:
    return int(LENGTH.unpack(await stream.readexactly(LENGTH.size))[0])


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": str(_ROOT), "PYTHONDONTWRITEBYTECODE": "1"}  # it may write no files


def _unpickled(answer: list[bytes]) -> tuple[bool, Any]:
    return pickle.loads(answer[0], buffers=answer[1:])  # noqa: S301 (from our own process)
