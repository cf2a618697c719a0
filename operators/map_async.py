"""Lift an async function into a stream."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

from operators.cancel_token import CancelToken

T = TypeVar("T")
R = TypeVar("R")


class Overflow(Exception):
    """More items wait than may; the oldest of them was given up."""


class CancelledWithin(Exception):
    """The function cancelled itself, which nobody had asked for."""


class _Begun(NamedTuple, Generic[T]):
    """An item at work, the context of whoever brought it, and what may call it off."""

    item: T
    context: Context
    fate: CancelToken | None


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
            running: dict[asyncio.Task[R], _Begun[T]] = {}  # in order of arrival
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
                    fate = None if token is None else token(item)
                    task = loop.create_task(context.run(begin, item, fate), context=context)
                    running[task] = _Begun(item, context, fate)
                    if fate is not None:
                        fate.attach(task.cancel)
                    task.add_done_callback(finish, context=context)
                    report()

            def begin(item: T, fate: CancelToken | None) -> Coroutine[Any, Any, R]:
                if fate is not None and fate.error is not None:
                    return fail(fate.error)
                try:
                    return fn(item)
                except Exception as error:  # noqa: BLE001 (not all that gives a coroutine is `async def`)
                    return fail(error)

            def finish(task: asyncio.Task[R]) -> None:
                if task not in running:  # disposed meanwhile, or already emitted in turn
                    return
                if ordered and task is not first():
                    return
                try:
                    emit(task)
                finally:  # a raising subscriber must not cost us the slot, nor the next in line its turn
                    start_waiting()
                    report()
                    if ordered and running and first().done():
                        loop.call_soon(finish, first(), context=running[first()].context)
                    complete_when_idle()

            def first() -> asyncio.Task[R]:
                return next(iter(running))

            def emit(task: asyncio.Task[R]) -> None:
                item, _, fate = running.pop(task)
                if fate is not None:
                    fate.detach()
                error = CancelledWithin("cancelled from within") if task.cancelled() else task.exception()
                if error is None:
                    observer.on_next(task.result())
                elif isinstance(error, Exception):
                    called_off = None if fate is None else fate.error
                    observer.on_next(on_failure(item, called_off or error))
                else:  # KeyboardInterrupt, SystemExit: not an item's failure
                    raise error

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
                tasks = list(running)
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


async def fail(error: Exception) -> NoReturn:
    """Work that is over before it has begun."""
    raise error
