"""Cancels one item while it waits or is processed (`CancelToken`); cancels tasks and waits for their end (`cancelled`);
holds tasks that nobody waits for (`BackgroundTasks`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any


class CancelToken:
    """One item's cancellation: the first error stays, and stops the step that processes the item.

    May be created without a running loop; used from the loop's thread only.
    """

    __slots__ = ("_committed", "_late", "_stop", "_timer", "error")

    def __init__(self) -> None:
        self.error: Exception | None = None
        """Why the item was cancelled; None while it is not."""
        self._committed = False
        self._stop: Callable[[], object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._late: Exception | None = None

    def cancel(self, error: Exception) -> None:
        """Cancel the item. A second call changes nothing, nor does one after `commit`."""
        if self.error is not None or self._committed:
            return
        self.error = error
        self.close()
        if self._stop is not None:
            self._stop()

    def expire_in(self, seconds: float, error: Exception) -> None:
        """Cancel with `error` after `seconds` of the loop's time, unless closed before; only the first call counts."""
        if self._timer is None and self.error is None:
            self._late = error
            self._timer = asyncio.get_running_loop().call_later(seconds, self.cancel, error)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the expiry while the block runs; afterwards the rest of its time begins."""
        timer, late, loop = self._timer, self._late, asyncio.get_running_loop()
        if timer is None or late is None:
            yield
            return
        left = timer.when() - loop.time()
        timer.cancel()
        try:
            yield
        finally:
            if self._timer is timer:  # else the item was cancelled or finished meanwhile
                self._timer = loop.call_later(left, self.cancel, late)

    def attach(self, stop: Callable[[], object]) -> None:
        """Call `stop` when the token is cancelled; one step processes an item at a time.

        Raises:
            Exception: the error of an item that is already cancelled.
        """
        if self.error is not None:
            raise self.error
        self._stop = stop

    def detach(self) -> None:
        self._stop = None

    def commit(self) -> None:
        """From here on the item can no longer be cancelled, nor expire."""
        self._committed = True
        self.close()

    def close(self) -> None:
        """The item is finished: stop the expiry."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


AGAIN_SECONDS = 0.5


async def cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until they have ended; exceptions that they raise are dropped.

    Again and again: before Python 3.12 `wait_for` forgets a cancellation that comes at the moment when what it waits
    for is done, and a task that goes on for ever would go on.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
        await asyncio.gather(*done, return_exceptions=True)


class BackgroundTasks:
    """Tasks that nobody waits for, held until they end: an event loop alone would let them go in the middle."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str | None = None) -> None:
        """Run `work` as a task of the running loop."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel those that still run, and wait until they have ended."""
        await cancelled(*self._tasks)
