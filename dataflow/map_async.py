"""An operator that awaits an async function for each item."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Protocol, TypeVar

from reactivex import Observable, abc

from clock.cancellation import CancelToken
from dataflow.basics import Handlers, make_operator

T = TypeVar("T")
R = TypeVar("R")


class Overflow(Exception):
    """Too many items wait; the oldest was dropped."""


class UnexpectedCancellation(Exception):
    """The function was cancelled neither by its token nor by the subscriber."""


class Watch(Protocol):
    """Observes the items of one operator. Its methods are called for each item, and must not raise."""

    def on_waiting(self, count: int) -> object:
        """Called with the number of waiting items whenever it may have changed."""
        ...

    def on_begin(self) -> Callable[[Exception | None], object]:
        """Called when an item begins. Returns a function to call at its end, with the exception or None."""
        ...


def map_async(
    fn: Callable[[T], Coroutine[Any, Any, R]],
    *,
    on_failure: Callable[[T, Exception], R],
    max_concurrent: int,
    max_waiting: int | None = None,
    ordered: bool = False,
    token: Callable[[T], CancelToken | None] | None = None,
    gauge: Callable[[int], object] | None = None,
    watch: Watch | None = None,
) -> Callable[[Observable[T]], Observable[R]]:
    """Await `fn` for each item, at most `max_concurrent` at a time.

        --1--2--3------|
        [ map_async(fn) ]        fn takes a second, fn(2) raises
        ---1--x--3-----|         x = on_failure(2, error)

        -31----|
        [ ordered=True ]         fn(n) takes n seconds
        ----(3 1)--|             in order of arrival; without it, results leave as calls finish

    Failure is data: an exception of `fn` comes out as `on_failure(item, error)`. So does `Overflow` for the oldest
    waiting item when more than `max_waiting` wait (None: no limit), at once even with `ordered`. So does the error of
    an item's cancel `token`: a waiting item is then not started, a running one is cancelled. Completion waits for
    running calls, dispose cancels them. Each call, and the emission of its result, runs in the context of its item.
    `gauge` gets the number of running calls whenever it has changed, `watch` each waiting, beginning and ending item.
    (`flat_map` of futures has no limit, no order and no context.)
    """

    def make_handlers(observer: abc.ObserverBase[R]) -> Handlers[T]:
        loop = asyncio.get_running_loop()
        waiting: deque[tuple[T, Context]] = deque()
        running: dict[int, asyncio.Task[None]] = {}  # in order of arrival
        turns: dict[int, asyncio.Event] = {}  # of finished calls that wait for earlier ones
        numbers = itertools.count()
        source_done = False

        def on_next(item: T) -> None:
            waiting.append((item, copy_context()))
            start_waiting()
            if max_waiting is not None and len(waiting) > max_waiting:
                oldest, context = waiting.popleft()
                error = Overflow(f"more than {max_waiting} were waiting")
                observer.on_next(context.run(on_failure, oldest, error))
            report_waiting()

        def start_waiting() -> None:
            while waiting and len(running) < max_concurrent:
                item, context = waiting.popleft()
                number = next(numbers)
                running[number] = loop.create_task(work(number, item), context=context)
                report()

        async def work(number: int, item: T) -> None:
            # The result leaves from within the task: a callback would cost each item another turn of the loop.
            try:
                result = await call(number, item)
                if ordered:
                    await wait_for_turn(number)
                if running.pop(number, None) is not None:  # else it was disposed of meanwhile
                    observer.on_next(result)
            except Exception as error:  # noqa: BLE001 (a raising subscriber must not cost us the slot)
                running.pop(number, None)
                loop.call_exception_handler({"message": "a subscriber of map_async raised", "exception": error})
            start_waiting()
            report()
            report_waiting()
            if ordered:
                end_first_wait()
            complete_when_idle()

        async def call(number: int, item: T) -> R:
            cancel_token = None if token is None else token(item)
            on_end = None if watch is None else watch.on_begin()
            failure: Exception | None = None
            try:
                if cancel_token is not None:
                    cancel_token.attach(running[number].cancel)
                return await fn(item)
            except asyncio.CancelledError:
                if number not in running:  # it was disposed of
                    raise
                failure = (None if cancel_token is None else cancel_token.error) or UnexpectedCancellation(
                    "cancelled from within"
                )
                return on_failure(item, failure)
            except Exception as error:  # noqa: BLE001 (any exception is this item's failure)
                failure = (None if cancel_token is None else cancel_token.error) or error
                return on_failure(item, failure)
            finally:
                if cancel_token is not None:
                    cancel_token.detach()
                if on_end is not None:
                    on_end(failure)

        async def wait_for_turn(number: int) -> None:
            if number != next(iter(running), None):
                turns[number] = asyncio.Event()
                await turns[number].wait()

        def end_first_wait() -> None:
            turn = turns.pop(next(iter(running), -1), None)
            if turn is not None:
                turn.set()

        def report() -> None:
            if gauge is not None:
                gauge(len(running))

        def report_waiting() -> None:
            if watch is not None:
                watch.on_waiting(len(waiting))

        def on_completed() -> None:
            nonlocal source_done
            source_done = True
            complete_when_idle()

        def complete_when_idle() -> None:
            if source_done and not running and not waiting:
                observer.on_completed()

        def cancel() -> None:
            waiting.clear()
            tasks = list(running.values())
            running.clear()
            for task in tasks:
                task.cancel()
            if tasks:
                report()
            report_waiting()

        return Handlers(on_next, on_completed, cancel)

    return make_operator(make_handlers)
