"""Identical requests that are made at the same time share one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


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
