"""Virtual-clock asyncio loop: time jumps to the next timer instead of waiting."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import selectors
from asyncio.events import TimerHandle
from collections.abc import Callable, Generator
from typing import Any


class Deadlock(RuntimeError):
    """Nothing is ready, nothing is scheduled, nothing real is pending."""


class _FifoTimer(TimerHandle):
    """Ties at one instant fire in the order they were set (heapq alone does not)."""

    __slots__ = ("_seq",)

    def __init__(self, seq: int, when: float, *rest: Any) -> None:
        super().__init__(when, *rest)
        self._seq = seq

    def __lt__(self, other: Any) -> bool:
        return (self._when, self._seq) < (other._when, other._seq)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


class _JumpSelector(selectors.BaseSelector):
    """Polls the real selector, and turns every wait into a clock jump."""

    def __init__(self, jump: Callable[[], bool], real: selectors.BaseSelector) -> None:
        self._jump, self._real = jump, real

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            return self._real.select(0)
        if self._jump():  # moved the clock (no real work pending)
            return []
        return self._real.select(0.05 if timeout is None else min(timeout, 0.05))

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> Any:
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> Any:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Any:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    _scheduled: list[TimerHandle]

    def __init__(self, start: float = 0.0) -> None:
        self._vnow = start
        self._holds = 0
        self._ties = itertools.count()
        super().__init__(_JumpSelector(self._jump, selectors.DefaultSelector()))

    def time(self) -> float:
        return self._vnow

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> TimerHandle:
        timer = _FifoTimer(next(self._ties), when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def _jump(self) -> bool:
        if self._holds:
            return False  # a thread is working for us: wait for real
        if not self._scheduled:
            raise Deadlock("virtual loop: nothing left to run, yet something still awaits")
        self._vnow = max(self._vnow, self._scheduled[0].when())  # exact, no float drift
        return True

    @contextlib.contextmanager
    def hold(self) -> Generator[None]:
        """Freeze the clock while real work (a thread, a socket) is under way."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:
        future = super().run_in_executor(executor, func, *args)
        self._holds += 1
        future.add_done_callback(lambda _: setattr(self, "_holds", self._holds - 1))
        return future
