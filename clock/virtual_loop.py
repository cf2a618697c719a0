"""An event loop on which time jumps to the next timer instead of passing."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import selectors
from asyncio.events import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_OutsideWork = deque[tuple[asyncio.Future[Any], asyncio.Future[Any]]]
"""Work outside the loop, in order of its start, each with the future that gets its result in turn."""

POLL_SECONDS = 0.05
"""The longest real wait while the clock is stopped; a completion ends it sooner."""
TURNS_PER_POLL = 64
"""A busy loop polls sockets and signals once in so many turns, because the system call takes a large part of a turn.
Results of threads need no poll, as they are in the loop's own queue. Where there are sockets, the loop also polls
before the clock jumps.
"""


class Deadlock(RuntimeError):
    """Something still waits, but nothing is ready, scheduled or running outside that could wake it."""


class _Timer(TimerHandle):
    """A timer. Timers of one instant fire in the order they were set, which asyncio's heap alone does not promise."""

    __slots__ = ("order",)

    order: int
    """The number of timers that were set before it."""
    _when: float  # asyncio's own: the heap compares ten times as often as it is pushed to, and a call each would cost

    def __lt__(self, other: Any) -> bool:
        when: float = self._when
        others: float = other._when
        return when < others or (when == others and self.order < other.order)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


class _Selector(selectors.BaseSelector):
    """Asks the loop what to do whenever it would wait."""

    def __init__(self, idle: Callable[[], float]) -> None:
        self._idle = idle
        self._real = selectors.DefaultSelector()
        self._turns = 0
        self._registered = 0  # the loop's own pipe, to which threads and signals write, and sockets

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        is_idle = timeout is None or timeout > 0
        wait = self._idle() if is_idle else 0.0
        self._turns += 1
        must_poll = wait > 0 or (is_idle and self._registered > 1) or self._turns % TURNS_PER_POLL == 0
        return self._real.select(wait) if must_poll else []

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self._registered += 1
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        self._registered -= 1
        return self._real.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop whose `time()` is virtual: seconds since 1970, UTC, from `start` on.

    When nothing is ready, the clock jumps to the next timer. Work outside the loop (`stop_clock_for`; threads of
    `run_in_executor`) stops the clock. Its results come back one at a time, when the loop has nothing else to do at
    this instant, in the order in which the work was started. The results of threads come before those of servers, so
    that a question's search does not wait for the model that answers another question. A run depends on the answers
    from outside, but not on their speed.

    With `speed`, a jump takes real time as well: 1 is real time, 60 is a minute a second.

    `run_until_complete` raises `Deadlock` when nothing is left that could wake a waiting task.
    """

    # Private to asyncio, and the same in 3.11, 3.12 and 3.13: the queue of ready handles, the heap of timers, which is
    # replaced now and then, and how much earlier than its time a timer may fire.
    _ready: deque[Handle]
    _debug: bool
    _scheduled: list[TimerHandle]
    _clock_resolution: float
    _check_closed: Callable[[], None]

    def __init__(self, start: float = 0.0, *, speed: float | None = None) -> None:
        self._speed = speed
        self._order = itertools.count()
        self._in_threads: _OutsideWork = deque()
        self._at_servers: _OutsideWork = deque()
        super().__init__(_Selector(self._idle))
        self._set_time(start)

    def time(self) -> float:
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> TimerHandle:
        self._check_closed()
        timer = _Timer(when, callback, args, self, context)
        timer.order = next(self._order)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # noqa: SLF001 (asyncio's own mark of what is on the heap)
        return timer

    def call_soon(
        self,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> Handle:
        if self._debug:
            return super().call_soon(callback, *args, context=context)
        self._check_closed()
        handle = Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def stop_clock_for(self, work: asyncio.Future[T], *, at_server: bool = False) -> asyncio.Future[T]:
        """Stop the clock until `work`, which runs outside this loop, is finished. `at_server`: outside this process.

        Returns a future that gets the result of the work in turn. Cancelling this future cancels the work.
        """
        due: asyncio.Future[T] = self.create_future()
        (self._at_servers if at_server else self._in_threads).append((work, due))
        due.add_done_callback(lambda _: work.cancel() if due.cancelled() else None)
        # A callback wakes the selector; reading the error keeps asyncio from reporting it when `due` was cancelled.
        work.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return due

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        return self.stop_clock_for(super().run_in_executor(executor, func, *args))

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 (asyncio's own)
        # asyncio joins the threads in a thread that run_in_executor does not see: stop the clock for it, too.
        joined: asyncio.Future[None] = self.create_future()
        due = self.stop_clock_for(joined)
        try:
            # 3.12 made the time-out an argument; our threads are few and short: wait for them.
            _ = timeout
            await super().shutdown_default_executor()
        finally:
            joined.set_result(None)
            due.cancel()

    def _idle(self) -> float:
        """Pass on a result from outside, or jump, as nothing is ready. Returns the real seconds to wait."""
        while outside := self._in_threads or self._at_servers:
            work, due = outside[0]
            if due.cancelled():
                outside.popleft()
                continue
            if not work.done():
                return POLL_SECONDS
            outside.popleft()
            _copy_result(work, due)
            return 0.0
        timers = self._scheduled
        if not timers:
            raise Deadlock("virtual loop: nothing left to run, yet something still waits")
        when = timers[0].when()
        if self._speed is not None and when > self._now:
            return self._pass_time(when)
        self._set_time(max(self._now, when))
        return 0.0

    def _pass_time(self, when: float) -> float:
        assert self._speed is not None  # noqa: S101 (tells the type checker)
        step = min(when - self._now, POLL_SECONDS * self._speed)
        # The wait itself happens in select(); signals and sockets cut it short and lose at most one step.
        self._set_time(when if when - self._now <= step else self._now + step)
        return step / self._speed

    def _set_time(self, seconds: float) -> None:
        self._now = seconds
        # asyncio fires timers that are due before now + resolution. Its own nanosecond is lost when it is added to a
        # time of today: a timer due now would never be due. One ulp is never lost, and fires no timer early.
        self._clock_resolution = math.ulp(seconds)


def _copy_result(work: asyncio.Future[T], due: asyncio.Future[T]) -> None:
    if work.cancelled():
        due.cancel()
        return
    error = work.exception()
    if error is None:
        due.set_result(work.result())
    else:
        due.set_exception(error)
