"""Lift an async function into a stream."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

from clock.cancel_token import CancelToken

T = TypeVar("T")
R = TypeVar("R")


class Overflow(Exception):
    """More items wait than may; the oldest of them was given up."""


class CancelledWithin(Exception):
    """The function cancelled itself, which nobody had asked for."""


def map_async(
    fn: Callable[[T], Coroutine[Any, Any, R]],
    *,
    on_failure: Callable[[T, Exception], R],
    max_concurrent: int,
    max_waiting: int | None = None,
    ordered: bool = False,
    token: Callable[[T], CancelToken | None] | None = None,
    gauge: Callable[[int], object] | None = None,
) -> Callable[[Observable[T]], Observable[R]]:
    """Await `fn` for each item, at most `max_concurrent` at a time.

        --1--2--3------|
        [ map_async(fn) ]        fn takes a second, fn(2) raises
        ---1--x--3-----|         x = on_failure(2, error)

        -31----|
        [ ordered=True ]         fn(n) takes n seconds
        ----(3 1)--|             in order of arrival; the others leave as they finish

    Failure is data: whatever `fn` raises, and `Overflow` for the oldest of more than `max_waiting` waiting items
    (None: all may wait), comes out as `on_failure(item, error)`. So does the error of an item's cancel `token`:
    an item called off while waiting is not begun, one at work is cancelled. What overflows leaves at once, also where
    the others leave in order. Completion waits for the work in hand; dispose cancels it. Each call runs, and its
    result leaves, in the context of the item that caused it. `gauge` is told how many are at work whenever that has
    changed.
    """

    def operator(source: Observable[T]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            loop = asyncio.get_running_loop()
            waiting: deque[tuple[T, Context]] = deque()
            running: dict[int, asyncio.Task[None]] = {}  # in order of arrival
            turns: dict[int, asyncio.Event] = {}  # of those that are through, and wait for earlier ones
            numbers = itertools.count()
            source_done = False

            def on_next(item: T) -> None:
                waiting.append((item, copy_context()))
                start_waiting()
                if max_waiting is not None and len(waiting) > max_waiting:
                    oldest, context = waiting.popleft()
                    error = Overflow(f"more than {max_waiting} were waiting")
                    observer.on_next(context.run(on_failure, oldest, error))

            def start_waiting() -> None:
                while waiting and len(running) < max_concurrent:
                    item, context = waiting.popleft()
                    number = next(numbers)
                    running[number] = loop.create_task(work(number, item), context=context)
                    report()

            async def work(number: int, item: T) -> None:
                # The result leaves from within the task: a callback would cost each item another turn of the loop.
                try:
                    result = await result_of(number, item)
                    if ordered:
                        await turn_of(number)
                    if running.pop(number, None) is not None:  # else a subscriber has left meanwhile
                        observer.on_next(result)
                except Exception as error:  # noqa: BLE001 (a raising subscriber must not cost us the slot)
                    running.pop(number, None)
                    loop.call_exception_handler({"message": "a subscriber of map_async raised", "exception": error})
                start_waiting()
                report()
                if ordered:
                    give_turn()
                complete_when_idle()

            async def result_of(number: int, item: T) -> R:
                fate = None if token is None else token(item)
                try:
                    if fate is not None:
                        fate.attach(running[number].cancel)
                    return await fn(item)
                except asyncio.CancelledError:
                    if number not in running:  # the subscriber has left
                        raise
                    called_off = None if fate is None else fate.error
                    return on_failure(item, called_off or CancelledWithin("cancelled from within"))
                except Exception as error:  # noqa: BLE001 (whatever it is, it is this item's)
                    called_off = None if fate is None else fate.error
                    return on_failure(item, called_off or error)
                finally:
                    if fate is not None:
                        fate.detach()

            async def turn_of(number: int) -> None:
                if number != next(iter(running), None):
                    turns[number] = asyncio.Event()
                    await turns[number].wait()

            def give_turn() -> None:
                turn = turns.pop(next(iter(running), -1), None)
                if turn is not None:
                    turn.set()

            def report() -> None:
                if gauge is not None:
                    gauge(len(running))

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

            return CompositeDisposable(
                source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler),
                Disposable(cancel),
            )

        return Observable(subscribe)

    return operator
