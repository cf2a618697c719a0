"""Lift an async function into a stream."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)


def log_failure(item: object, error: Exception) -> None:
    log.error("dropped %r", item, exc_info=error)


def log_overflow(item: object) -> None:
    log.warning("too many waiting, dropped %r", item)


def map_async(
    fn: Callable[[T], Coroutine[Any, Any, R]],
    *,
    max_concurrent: int,
    max_waiting: int = 10_000,
    ordered: bool = False,
    on_failure: Callable[[T, Exception], None] = log_failure,
    on_overflow: Callable[[T], None] = log_overflow,
) -> Callable[[Observable[T]], Observable[R]]:
    """Await `fn` for each item, at most `max_concurrent` at a time.

        --1--2--3--------|
        [ map_async(fn)  ]      fn(2) raises
        -----1-----3-----|

    A failing item goes to `on_failure` and the stream goes on. Beyond
    `max_waiting`, the oldest waiting item goes to `on_overflow`. Completion
    waits for the work in hand; dispose cancels it. Each call runs in the
    context of the item that caused it.
    """

    def operator(source: Observable[T]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            loop = asyncio.get_running_loop()
            waiting: deque[tuple[T, Context]] = deque()
            running: dict[asyncio.Task[R], T] = {}  # in order of arrival
            source_done = False

            def on_next(item: T) -> None:
                if len(running) >= max_concurrent and len(waiting) >= max_waiting:
                    on_overflow(waiting.popleft()[0])
                waiting.append((item, copy_context()))
                start_waiting()

            def start_waiting() -> None:
                while waiting and len(running) < max_concurrent:
                    item, context = waiting.popleft()
                    task = loop.create_task(fn(item), context=context)
                    running[task] = item
                    task.add_done_callback(finish, context=context)

            def finish(task: asyncio.Task[R]) -> None:
                if task not in running:  # disposed meanwhile, or already emitted in turn
                    return
                try:
                    if not ordered:
                        emit(task)
                    while ordered and running and (first := next(iter(running))).done():
                        emit(first)
                finally:  # a raising sink must not cost us the slot
                    start_waiting()
                    complete_when_idle()

            def emit(task: asyncio.Task[R]) -> None:
                item = running.pop(task)
                if task.cancelled():
                    on_failure(item, RuntimeError("cancelled from within"))
                    return
                error = task.exception()
                if error is None:
                    observer.on_next(task.result())
                elif isinstance(error, Exception):
                    on_failure(item, error)
                else:
                    raise error

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

            return CompositeDisposable(
                source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler),
                Disposable(cancel),
            )

        return Observable(subscribe)

    return operator
