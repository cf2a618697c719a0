"""Triggers that arrive while their work is running."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, SerialDisposable

T = TypeVar("T")
R = TypeVar("R")


def coalesce(run: Callable[[T], Observable[R]]) -> Callable[[Observable[T]], Observable[R]]:
    """Run an observable for a trigger, never two at once; triggers meanwhile cause one more run, for the latest.

    (`concat_map` would run once for each, `switch_map` would cancel, `exhaust_map` would lose the last trigger.)

        --1-----2-3-4--------------|
        [ coalesce(n → --n-n--|)   ]
        ----1-1---2-2---4-4--------|      3 and 4 came during 2's run: one more, for the latest

    Completes when the source and the last run have. An error of a run ends it all.
    """

    def operator(source: Observable[T]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
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
                    # Assigned first: a run that completes at once starts the next one in here.
                    slot = SerialDisposable()
                    current.disposable = slot
                    slot.disposable = inner.subscribe(
                        observer.on_next, observer.on_error, run_completed, scheduler=scheduler
                    )
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

            return CompositeDisposable(
                source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler), current
            )

        return Observable(subscribe)

    return operator
