"""Share one source between branches, and restart a branch that a bug has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

T = TypeVar("T")

MAX_RESTARTS = 100
"""At this number of errors the error is passed on and ends the graph, so that the process is restarted."""

log = logging.getLogger(__name__)


def supervise(name: str) -> Callable[[Observable[T]], Observable[T]]:
    """Log the error that ended the branch, then subscribe again to the live source.

        --1--x             --1--2--|
        [ supervise  ]  => --1-----2--|

    Only for bugs: the branch loses its open windows and the items in flight. `map_async` turns failures of single items
    into data. `fork` supervises its source as well. (`retry` logs nothing, and recurses where a source fails while
    being subscribed to.)
    """

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            subscription = SerialDisposable()
            errors = 0
            has_failed = subscribing = False

            def start() -> None:
                nonlocal has_failed, subscribing
                has_failed = subscribing = True
                while has_failed:  # a source that fails while it is subscribed to must not recurse
                    has_failed = False
                    subscription.disposable = source.subscribe(
                        observer.on_next, on_error, observer.on_completed, scheduler=scheduler
                    )
                subscribing = False

            def on_error(error: Exception) -> None:
                nonlocal errors, has_failed
                errors += 1
                log.critical("%s died of a bug and was restarted", name, exc_info=error)
                if errors >= MAX_RESTARTS:
                    observer.on_error(error)
                elif subscribing:
                    has_failed = True
                else:
                    start()

            start()
            return subscription

        return Observable(subscribe)

    return operator


def fork(name: str) -> Callable[[Observable[T]], Observable[T]]:
    """Subscribe to the source once, for any number of branches. Supervises the source under `name`.

    --1--2--|
    [ fork  ]   each of its subscribers gets
    --1--2--|

    The first subscription starts the source, the end of the last one stops it. (After an error of its source, `share`
    stays stopped for good, and `retry` below it never ends.)
    """

    def operator(source: Observable[T]) -> Observable[T]:
        supervised = supervise(name)(source)
        branches: list[abc.ObserverBase[T]] = []
        subscription = SerialDisposable()

        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            branches.append(observer)
            if len(branches) == 1:
                subscription.disposable = supervised.subscribe(on_next, on_error, on_completed, scheduler=scheduler)
            return Disposable(lambda: leave(observer))

        def leave(observer: abc.ObserverBase[T]) -> None:
            if observer in branches:
                branches.remove(observer)
                if not branches:
                    subscription.disposable = Disposable()

        def on_next(item: T) -> None:
            for branch in tuple(branches):
                branch.on_next(item)

        def on_error(error: Exception) -> None:
            for branch in take_branches():
                branch.on_error(error)

        def on_completed() -> None:
            for branch in take_branches():
                branch.on_completed()

        def take_branches() -> list[abc.ObserverBase[T]]:
            gone = branches.copy()
            branches.clear()
            return gone

        return Observable(subscribe)

    return operator
