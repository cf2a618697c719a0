"""Cancels one item while it waits or is processed (`CancelToken`), and tasks (`cancel_and_wait`); holds tasks that
nobody awaits (`BackgroundTasks`), finishes those that must not be cut off (`finish_even_if_cancelled`), and shares one
among identical requests (`SharedCalls`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Hashable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar


class CancelToken:
    """Cancels one item: keeps the first error, and stops the step that processes the item.

    May be created without a running loop; used from the loop's thread only.
    """

    __slots__ = ("_committed", "_expiry_error", "_stop", "_timer", "error")

    def __init__(self) -> None:
        self.error: Exception | None = None
        """Why the item was cancelled; None while it is not."""
        self._committed = False
        self._stop: Callable[[], object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._expiry_error: Exception | None = None

    def cancel(self, error: Exception) -> None:
        """Cancel the item. A second call does nothing, nor does one after `commit`."""
        if self.error is not None or self._committed:
            return
        self.error = error
        self.close()
        if self._stop is not None:
            self._stop()

    def expire_in(self, seconds: float, error: Exception) -> None:
        """Cancel with `error` after `seconds` of the loop's time, unless closed before; later calls do nothing."""
        if self._timer is None and self.error is None:
            self._expiry_error = error
            self._timer = asyncio.get_running_loop().call_later(seconds, self.cancel, error)

    @contextmanager
    def pause_expiry(self) -> Generator[None]:
        """Stop the time until expiry while the block runs."""
        timer, error, loop = self._timer, self._expiry_error, asyncio.get_running_loop()
        if timer is None or error is None:
            yield
            return
        left = timer.when() - loop.time()
        timer.cancel()
        try:
            yield
        finally:
            if self._timer is timer:  # else the item was cancelled or finished meanwhile
                self._timer = loop.call_later(left, self.cancel, error)

    def attach(self, stop: Callable[[], object]) -> None:
        """Call `stop` when the token is cancelled. One step at a time processes an item.

        Raises:
            Exception: the error of an item that is already cancelled.
        """
        if self.error is not None:
            raise self.error
        self._stop = stop

    def detach(self) -> None:
        self._stop = None

    def commit(self) -> None:
        """Let the item neither be cancelled nor expire from now on."""
        self._committed = True
        self.close()

    def close(self) -> None:
        """Stop the expiry, as the item is finished."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


T = TypeVar("T")

RECANCEL_SECONDS = 0.5


async def cancel_and_wait(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended; their exceptions are dropped.

    Cancels repeatedly: before Python 3.12 `wait_for` forgets a cancellation that comes at the moment when the awaited
    future is done, and an endless task would go on.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=RECANCEL_SECONDS)
        await asyncio.gather(*done, return_exceptions=True)


async def finish_even_if_cancelled(work: asyncio.Future[T] | Coroutine[Any, Any, T]) -> T:
    """Await `work`; if cancelled meanwhile, wait for its end first, drop its result, and then raise CancelledError."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would report it as never retrieved
        raise


class BackgroundTasks:
    """Holds tasks that nobody awaits until they end: an event loop alone would let them be collected half-way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str | None = None) -> None:
        """Run `work` as a task of the running loop."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel the tasks that still run, and wait until they have ended."""
        await cancel_and_wait(*self._tasks)


@dataclass(slots=True)
class _Call:
    task: asyncio.Task[Any]
    waiting: int = 0


class SharedCalls:
    """Runs one call for each key at a time. Further requests for the key wait for it, and get its result or exception.

    Nothing is kept after a call. A call without a waiting request is cancelled.
    """

    def __init__(self) -> None:
        self._calls: dict[Hashable, _Call] = {}

    async def share(self, key: Hashable, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of `start()`, or of the running call with the same `key`."""
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _Call(asyncio.create_task(start()))
        call.waiting += 1
        try:
            # Shielded: the cancellation of one request must not cancel the others'.
            return await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            if call.task.done() or not call.waiting:
                call.task.cancel()
                if self._calls.get(key) is call:
                    del self._calls[key]
