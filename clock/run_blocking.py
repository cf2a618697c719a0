"""Short blocking work in a thread, always completed."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

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
    try:
        return await asyncio.shield(due)
    except asyncio.CancelledError:
        while not due.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([due])
        due.exception()  # retrieved, or asyncio would report it as never retrieved
        raise


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
