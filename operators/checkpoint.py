"""Signals to save, much rarer than the changes to be saved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

T = TypeVar("T")


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

    def operator(source: Observable[T]) -> Observable[None]:
        def subscribe(
            observer: abc.ObserverBase[None], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
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

            return CompositeDisposable(
                source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler),
                Disposable(stop_timer),
            )

        return Observable(subscribe)

    return operator
