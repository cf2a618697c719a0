"""Runs short blocking work in threads, and coroutines in real time; shuts down without waiting for hanging threads."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, NoReturn, ParamSpec, TypeVar

from clock.cancellation import finish_even_if_cancelled
from clock.virtual_loop import VirtualLoop

P = ParamSpec("P")
T = TypeVar("T")


async def run_blocking(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work of milliseconds, such as a durable write, in a thread.

    A `VirtualLoop` stops its clock meanwhile, and runs one piece of work after another, in the order of the calls: two
    pieces of one instant would else see each other's effects or not, as it happens.

    Cancellation waits for the end of the work and drops its result, so that a shutdown leaves nothing running. Takes
    two thirds of the CPU of `asyncio.to_thread`, which is for longer work and does not wait when it is cancelled.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def job() -> Callable[[], None]:
        try:
            result = context.run(work, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (the waiting task gets it)
            return partial(_call_in_loop, loop, done.set_exception, error)
        return partial(_call_in_loop, loop, done.set_result, result)

    virtual = isinstance(loop, VirtualLoop)
    worker = _virtual_worker() if virtual else _idle.pop() if _idle else _Worker()
    worker.jobs.put(job)
    due = loop.stop_clock_for(done) if virtual else done
    _outstanding.add(due)
    due.add_done_callback(_outstanding.discard)
    return await finish_even_if_cancelled(due)


async def wait_for_blocking_work() -> None:
    """Wait for the end of all work of `run_blocking` on this loop, even if its tasks were cancelled."""
    loop = asyncio.get_running_loop()
    while left := [each for each in _outstanding if each.get_loop() is loop]:
        await asyncio.wait(left)


_outstanding: set[asyncio.Future[Any]] = set()
"""The pending results of `run_blocking`, of all loops."""


class _Worker(threading.Thread):
    """Runs one job after another. Idle workers are reused last in, first out, as the last one has a warm cache."""

    def __init__(self) -> None:
        super().__init__(name="run_blocking", daemon=True)
        self.jobs: SimpleQueue[Callable[[], Callable[[], None]]] = SimpleQueue()
        """Each job returns a function that hands over its result."""
        self.start()

    def run(self) -> None:
        while True:
            hand_over = self.jobs.get()()
            if self not in _virtual:
                _idle.append(self)  # first: the waiting task may have more work
            hand_over()
            del hand_over  # and with it the result


def _call_in_loop(loop: asyncio.AbstractEventLoop, call: Callable[[Any], None], argument: object) -> None:
    with suppress(RuntimeError):  # the loop was closed without waiting for the work
        loop.call_soon_threadsafe(call, argument)


def _virtual_worker() -> _Worker:
    """Return the one worker of all virtual loops."""
    with _starting:
        if not _virtual:
            _virtual.append(_Worker())
        return _virtual[0]


_idle: list[_Worker] = []
_virtual: list[_Worker] = []
_starting = threading.Lock()
# threads stay with the parent
os.register_at_fork(after_in_child=_idle.clear)
os.register_at_fork(after_in_child=_virtual.clear)


async def run_in_real_time(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await `call()` in real time.

    On an ordinary loop this is an await. On a `VirtualLoop` the call runs on an ordinary loop in another thread, so
    that its time-outs and pauses are real. The virtual clock stops until it ends. Pending calls of one instant resume
    in the order in which they were made, after the threads of that instant.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        return await call()
    work = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), _real_loop()), loop=loop)
    return await loop.stop_clock_for(work, at_server=True)


def wait_in_real_time(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `call()` on an ordinary loop in another thread and return its result. Blocking; not for an event loop."""
    return asyncio.run_coroutine_threadsafe(call(), _real_loop()).result()


_real_loops: list[asyncio.AbstractEventLoop] = []


def _real_loop() -> asyncio.AbstractEventLoop:
    """Return the ordinary loop, in a daemon thread, started at the first call."""
    with _starting:
        if not _real_loops:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="real_time", daemon=True).start()
            _real_loops.append(loop)
        return _real_loops[0]


L = TypeVar("L", bound=asyncio.AbstractEventLoop)

PATIENCE_SECONDS = 5.0
"""The longest wait for threads when everything else has ended: a write to a disk takes less."""


class BoundedShutdownExecutor(ThreadPoolExecutor):
    """A ThreadPoolExecutor whose shutdown waits for at most `PATIENCE_SECONDS`."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            join_threads(self._threads, PATIENCE_SECONDS)


def with_bounded_shutdown(loop: L) -> L:
    """Give the loop an executor whose shutdown waits a bounded time for hanging threads; return the loop."""
    loop.set_default_executor(BoundedShutdownExecutor(thread_name_prefix="asyncio"))
    return loop


def join_threads(threads: Iterable[threading.Thread], seconds: float) -> bool:
    """Wait for threads, for at most `seconds` in total. Return True if all have ended. Blocking."""
    until = time.monotonic() + seconds
    ended = True
    for thread in list(threads):
        thread.join(max(0.0, until - time.monotonic()))
        ended = ended and not thread.is_alive()
    return ended


def exit_process(code: int) -> NoReturn:
    """End the process like `sys.exit`, but wait for hanging threads for at most `PATIENCE_SECONDS`."""
    others = [each for each in threading.enumerate() if not each.daemon and each is not threading.current_thread()]
    if not join_threads(others, PATIENCE_SECONDS):
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)
