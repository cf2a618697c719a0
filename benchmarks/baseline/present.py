"""Small synchronous operators that keep their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from reactivex import Observable, abc

T = TypeVar("T")
R = TypeVar("R")


def present(source: Observable[T | None]) -> Observable[T]:
    """Let through what is not None.

    --1--None--2--|
    [  present    ]
    --1--------2--|
    """
    return spread(as_list_of_one)(source)


def as_list_of_one(item: T | None) -> list[T]:
    return [] if item is None else [item]


def spread(fn: Callable[[T], Iterable[R]]) -> Callable[[Observable[T]], Observable[R]]:
    """Emit each member of `fn(item)` at once.

    --1------2------|
    [ spread(pair)  ]
    --(1 1)--(2 2)--|
    """

    def operator(source: Observable[T]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            def on_next(item: T) -> None:
                try:
                    members = list(fn(item))
                except Exception as error:
                    observer.on_error(error)
                    return
                for member in members:
                    observer.on_next(member)

            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator
