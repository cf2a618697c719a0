"""Operators for triggers: coalesce them into one run at a time, delay them, turn them into checkpoints. And sources:
`unfold` asks for one item after another, `from_coroutine` emits what a coroutine gives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

from dataflow.basics import Handlers, make_operator

T = TypeVar("T")
R = TypeVar("R")


def coalesce(run: Callable[[T], Observable[R]]) -> Callable[[Observable[T]], Observable[R]]:
    """Run an observable for a trigger, never two at once; triggers meanwhile cause one more run, for the latest.

    (`concat_map` would run once for each, `switch_map` would cancel, `exhaust_map` would lose the last trigger.)

        --1-----2-3-4--------------|
        [ coalesce(n → --n-n--|)   ]
        ----1-1---2-2---4-4--------|      3 and 4 came during 2's run: one more, for the latest

    Completes when the source and the last run have completed. An error of a run ends the stream.
    """

    def make_handlers(observer: abc.ObserverBase[R]) -> Handlers[T]:
        current = SerialDisposable()
        waiting: list[T] = []
        running = False
        source_done = False

        def on_next(trigger: T) -> None:
            waiting[:] = [trigger]
            run_next()

        def run_next() -> None:
            nonlocal running
            if running:
                return
            if waiting:
                running = True
                try:
                    inner = run(waiting.pop())
                except Exception as error:  # noqa: BLE001 (Rx's rule: a raising selector ends the stream)
                    observer.on_error(error)
                    return
                # The slot is current before the run is subscribed: a run that completes at once starts the next one
                # within `subscribe`, and the slot of that one must stay current.
                slot = SerialDisposable()
                current.disposable = slot
                slot.disposable = inner.subscribe(observer.on_next, observer.on_error, run_completed)
            elif source_done:
                observer.on_completed()

        def run_completed() -> None:
            nonlocal running
            running = False
            run_next()

        def on_completed() -> None:
            nonlocal source_done
            source_done = True
            run_next()

        return Handlers(on_next, on_completed, current.dispose)

    return make_operator(make_handlers)


def unfold(ask: Callable[[], Awaitable[T | None]]) -> Observable[T]:
    """Emit the results of `ask`, called one after another, until it returns None.

    --1--2--|      ask takes two seconds, and gives two items

    Nothing is requested ahead: subscribers have handled an item before the next call. An exception of `ask` ends the
    stream; dispose cancels the running call.
    """

    async def ask_all(observer: abc.ObserverBase[T]) -> None:
        try:
            while (item := await ask()) is not None:
                observer.on_next(item)
        except Exception as error:  # noqa: BLE001 (Rx's rule: a raising source ends the stream)
            observer.on_error(error)
        else:
            observer.on_completed()

    return from_coroutine(ask_all)


def from_coroutine(feed: Callable[[abc.ObserverBase[T]], Coroutine[Any, Any, None]]) -> Observable[T]:
    """Emit what `feed` gives the observer. It is a task from subscription to disposal, and ends the stream itself."""

    def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        _ = scheduler  # the loop is the only clock
        task = asyncio.get_running_loop().create_task(feed(observer))

        def cancel() -> None:
            task.cancel()

        return Disposable(cancel)

    return Observable(subscribe)


def checkpoint(
    weigh: Callable[[T], float], *, enough: float, seconds: float, pause: float
) -> Callable[[Observable[T]], Observable[None]]:
    """Emit when items that weigh `enough` have come, or `seconds` after the first; and once at the end.

        --1-1-1-1-------------1----------|
        [ checkpoint(enough=3, seconds=5) ]
        ------•------•---------------•---•

    Two signals are at least `pause` seconds apart, except for the one at the end. (`buffer_with_time_or_count` and
    `debounce` know no weights; and they emit without items, or only after silence.)
    """

    def make_handlers(observer: abc.ObserverBase[None]) -> Handlers[T]:
        loop = asyncio.get_running_loop()
        weight = 0.0
        earliest = loop.time()
        timer: asyncio.TimerHandle | None = None

        def on_next(item: T) -> None:
            nonlocal weight, timer
            try:
                before, weight = weight, weight + weigh(item)
            except Exception as error:  # noqa: BLE001 (Rx's rule: a raising selector ends the stream)
                observer.on_error(error)
                return
            if timer is None:
                timer = loop.call_at(max(earliest, loop.time() + (0 if weight >= enough else seconds)), fire)
            elif before < enough <= weight:
                timer.cancel()
                timer = loop.call_at(max(earliest, loop.time()), fire)

        def fire() -> None:
            nonlocal weight, earliest, timer
            weight, earliest, timer = 0.0, loop.time() + pause, None
            observer.on_next(None)

        def on_completed() -> None:
            stop_timer()
            observer.on_next(None)
            observer.on_completed()

        def stop_timer() -> None:
            nonlocal timer
            if timer is not None:
                timer.cancel()
                timer = None

        return Handlers(on_next, on_completed, stop_timer)

    return make_operator(make_handlers)


K = TypeVar("K", bound=Hashable)


def delay_unless_replaced(
    key: Callable[[T], K], seconds: Callable[[T], float | None]
) -> Callable[[Observable[T]], Observable[T]]:
    """Emit each item after its seconds, or not at all when another item of its key comes first.

        --a3--b3-----b-----|         `b` is an item whose seconds are None
        [ delay_unless_replaced(…) ]
        -----a-------------|         the first `b` was dropped

    An item with 0 seconds is emitted at once, and also replaces the waiting item of its key. Completion and dispose
    drop waiting items. (`debounce` has one delay for all keys, and emits the waiting item on completion.)
    """

    def make_handlers(observer: abc.ObserverBase[T]) -> Handlers[T]:
        loop = asyncio.get_running_loop()
        waiting: dict[K, asyncio.TimerHandle] = {}

        def on_next(item: T) -> None:
            try:
                name, delay = key(item), seconds(item)
            except Exception as error:  # noqa: BLE001 (Rx's rule: a raising selector ends the stream)
                observer.on_error(error)
                return
            earlier = waiting.pop(name, None)
            if earlier is not None:
                earlier.cancel()
            if delay is None:
                return
            if delay <= 0:
                observer.on_next(item)
            else:
                waiting[name] = loop.call_later(delay, emit, name, item)

        def emit(name: K, item: T) -> None:
            del waiting[name]
            observer.on_next(item)

        def on_completed() -> None:
            drop_all()
            observer.on_completed()

        def drop_all() -> None:
            for timer in waiting.values():
                timer.cancel()
            waiting.clear()

        return Handlers(on_next, on_completed, drop_all)

    return make_operator(make_handlers)
