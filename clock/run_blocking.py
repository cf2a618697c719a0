"""Short blocking work, off the event loop and seen through."""

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
    """Do in a thread what takes milliseconds, such as a durable write; a `VirtualLoop` stands still meanwhile.

    Cancelling waits until the work is over, so that a shutdown leaves nothing behind that still goes on; what it gave
    or raised is dropped then. Takes two thirds of the CPU of `asyncio.to_thread`, which is for longer work: that is
    left alone when it is cancelled.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def job() -> Callable[[], None]:
        try:
            result = context.run(work, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001 (whoever waits is told, whatever it is)
            return partial(_tell, loop, done.set_exception, error)
        return partial(_tell, loop, done.set_result, result)

    worker = _idle.pop() if _idle else _Worker()
    worker.jobs.put(job)
    due = loop.hold(done) if isinstance(loop, VirtualLoop) else done
    try:
        return await asyncio.shield(due)
    except asyncio.CancelledError:
        while not due.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([due])
        due.exception()  # looked at, or asyncio would report that nobody did
        raise


class _Worker(threading.Thread):
    """Does one job after another. Idle ones are taken last in, first out, so that there are no more than were needed
    at one time, and the one whose data is in the processor's cache goes first.
    """

    def __init__(self) -> None:
        super().__init__(name="briefly", daemon=True)
        self.jobs: SimpleQueue[Callable[[], Callable[[], None]]] = SimpleQueue()
        """Each gives what tells its waiter of it."""
        self.start()

    def run(self) -> None:
        while True:
            tell = self.jobs.get()()
            _idle.append(self)  # first: whoever is told may have more to do
            tell()
            del tell  # and with it the result


def _tell(loop: asyncio.AbstractEventLoop, tell: Callable[[Any], None], what: object) -> None:
    with suppress(RuntimeError):  # the loop was closed without waiting for anybody
        loop.call_soon_threadsafe(tell, what)


_idle: list[_Worker] = []
os.register_at_fork(after_in_child=_idle.clear)  # threads stay with the parent
