"""Branches that outlive their own bugs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable

T = TypeVar("T")

RESTARTS = 100
"""After so many deaths the error goes through and ends the graph: let the process be restarted."""

log = logging.getLogger(__name__)


def supervised(name: str) -> Callable[[Observable[T]], Observable[T]]:
    """Log what killed the branch, then subscribe it anew to the live source.

        --1--x             --1--2--|
        [ supervised ]  => --1-----2--|

    Only for bugs: the branch loses its open windows and its work in hand. Failures of single items are data, and
    `map_async` makes them so. `fork` supervises what is above it as well: what its branches share must not die
    with one of them.
    """

    def operator(source: Observable[T]) -> Observable[T]:
        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            subscription = SerialDisposable()
            deaths = 0
            dead = beginning = False

            def begin() -> None:
                nonlocal dead, beginning
                dead = beginning = True
                while dead:  # a source that dies while it is subscribed to must not recurse
                    dead = False
                    subscription.disposable = source.subscribe(
                        observer.on_next, on_error, observer.on_completed, scheduler=scheduler
                    )
                beginning = False

            def on_error(error: Exception) -> None:
                nonlocal deaths, dead
                deaths += 1
                log.critical("%s died of a bug and was restarted", name, exc_info=error)
                if deaths >= RESTARTS:
                    observer.on_error(error)
                elif beginning:
                    dead = True
                else:
                    begin()

            begin()
            return subscription

        return Observable(subscribe)

    return operator


def fork(name: str) -> Callable[[Observable[T]], Observable[T]]:
    """Run what comes before once, however many branches follow.

    --1--2--|
    [ fork  ]   each of its subscribers gets
    --1--2--|

    The first subscriber begins it, the last who leaves ends it.
    """

    def operator(source: Observable[T]) -> Observable[T]:
        supervision = supervised(name)(source)
        branches: list[abc.ObserverBase[T]] = []
        subscription = SerialDisposable()

        def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            branches.append(observer)
            if len(branches) == 1:
                subscription.disposable = supervision.subscribe(on_next, on_error, on_completed, scheduler=scheduler)
            return Disposable(lambda: leave(observer))

        def leave(observer: abc.ObserverBase[T]) -> None:
            if observer in branches:
                branches.remove(observer)
                if not branches:
                    subscription.disposable = Disposable()

        # A Subject would do as well, behind two locks and four calls for each item.
        def on_next(item: T) -> None:
            for branch in tuple(branches):
                branch.on_next(item)

        def on_error(error: Exception) -> None:
            for branch in let_go():
                branch.on_error(error)

        def on_completed() -> None:
            for branch in let_go():
                branch.on_completed()

        def let_go() -> list[abc.ObserverBase[T]]:
            gone = branches.copy()
            branches.clear()
            return gone

        return Observable(subscribe)

    return operator
