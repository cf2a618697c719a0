"""Work outside of the event loop: short blocking work in a thread, coroutines that need real time, and a shutdown that
does not wait for threads that hang.
"""

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

from clock.virtual_loop import VirtualLoop

P = ParamSpec("P")
T = TypeVar("T")


async def run_blocking(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work of milliseconds, such as a durable write, in a thread; a `VirtualLoop` stops its clock meanwhile.

    On a `VirtualLoop` such work is done piece after piece, in the order in which it was asked for: two pieces that
    are due at one instant would else see each other's effects or not, as it happens.

    Cancellation waits for the end of the work and drops its result: a shutdown leaves nothing running. Takes two
    thirds of the CPU of `asyncio.to_thread`, which is for longer work and does not wait when it is cancelled.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def job() -> Callable[[], None]:
        try:
            result = context.run(work, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (the waiting task gets it)
            return partial(_tell, loop, done.set_exception, error)
        return partial(_tell, loop, done.set_result, result)

    virtual = isinstance(loop, VirtualLoop)
    worker = _in_order() if virtual else _idle.pop() if _idle else _Worker()
    worker.jobs.put(job)
    due = loop.hold(done) if virtual else done
    _outstanding.add(due)
    due.add_done_callback(_outstanding.discard)
    try:
        return await asyncio.shield(due)
    except asyncio.CancelledError:
        while not due.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([due])
        due.exception()  # retrieved, or asyncio would report it as never retrieved
        raise


async def blocking_work_ended() -> None:
    """Wait for the end of what `run_blocking` does on this loop, also for tasks that were cancelled and are awaited by
    nobody.
    """
    loop = asyncio.get_running_loop()
    while left := [each for each in _outstanding if each.get_loop() is loop]:
        await asyncio.wait(left)


_outstanding: set[asyncio.Future[Any]] = set()
"""The results of `run_blocking`, of all loops, that are not there yet."""


class _Worker(threading.Thread):
    """Runs one job after another. Idle workers are reused last in, first out: no more exist than were needed at once,
    and the one with a warm cache is next.
    """

    def __init__(self) -> None:
        super().__init__(name="run_blocking", daemon=True)
        self.jobs: SimpleQueue[Callable[[], Callable[[], None]]] = SimpleQueue()
        """Each returns a function that hands over its result."""
        self.start()

    def run(self) -> None:
        while True:
            tell = self.jobs.get()()
            if self not in _ordered:
                _idle.append(self)  # first: the waiting task may have more work
            tell()
            del tell  # and with it the result


def _tell(loop: asyncio.AbstractEventLoop, tell: Callable[[Any], None], what: object) -> None:
    with suppress(RuntimeError):  # the loop was closed without waiting for anybody
        loop.call_soon_threadsafe(tell, what)


def _in_order() -> _Worker:
    """The one worker of all virtual loops."""
    with _starting:
        if not _ordered:
            _ordered.append(_Worker())
        return _ordered[0]


_idle: list[_Worker] = []
_ordered: list[_Worker] = []
_starting = threading.Lock()
# threads stay with the parent
os.register_at_fork(after_in_child=_idle.clear)
os.register_at_fork(after_in_child=_ordered.clear)


async def real_time(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Await `call()` in real time.

    On an ordinary loop this is an await. On a `VirtualLoop` the call runs on an ordinary loop in another thread, so
    that its time-outs and pauses are real; the virtual clock stops until it ends, and calls outstanding at one instant
    resume in the order in which they were made, after the threads of that instant.
    """
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        return await call()
    work = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), _real_loop()), loop=loop)
    return await loop.hold(work, at_server=True)


def wait_in_real_time(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `call()` on an ordinary loop in another thread and return its result. Blocking; not for an event loop."""
    return asyncio.run_coroutine_threadsafe(call(), _real_loop()).result()


_lock = threading.Lock()
_started: list[asyncio.AbstractEventLoop] = []


def _real_loop() -> asyncio.AbstractEventLoop:
    """The ordinary loop, in a daemon thread, started at the first call."""
    with _lock:
        if not _started:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="real_time", daemon=True).start()
            _started.append(loop)
        return _started[0]


L = TypeVar("L", bound=asyncio.AbstractEventLoop)

PATIENCE_SECONDS = 5.0
"""How long threads are waited for when everything else has ended: a write to a disk takes less."""


class BoundedShutdownExecutor(ThreadPoolExecutor):
    """A ThreadPoolExecutor whose shutdown waits `patience` seconds at most."""

    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self._patience = patience

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        if wait:
            join(self._threads, self._patience)


def with_bounded_shutdown(loop: L) -> L:
    """Give the loop an executor whose shutdown waits a bounded time for threads that hang; return the loop."""
    loop.set_default_executor(BoundedShutdownExecutor())
    return loop


def join(threads: Iterable[threading.Thread], seconds: float) -> bool:
    """Wait for threads, all together so long. Whether all have ended. Blocking."""
    until = time.monotonic() + seconds
    ended = True
    for thread in list(threads):
        thread.join(max(0.0, until - time.monotonic()))
        ended = ended and not thread.is_alive()
    return ended


def leave(code: int, patience: float = PATIENCE_SECONDS) -> NoReturn:
    """End the process with an exit code, like `sys.exit`, also where a thread hangs that Python waits for."""
    others = [each for each in threading.enumerate() if not each.daemon and each is not threading.current_thread()]
    if not join(others, patience):
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)
