"""Small synchronous operators that keep their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from reactivex import Observable, abc

T = TypeVar("T")
R = TypeVar("R")


def spread(fn: Callable[[T], Iterable[R]]) -> Callable[[Observable[T]], Observable[R]]:
    """Emit each member of `fn(item)`, at once and in order.

        --1------2------|
        [ spread(pair)  ]
        --(1 1)--(2 2)--|

    Where `flat_map` would make an inner subscription for each item, this is a loop.
    """

    def operator(source: Observable[T]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            def on_next(item: T) -> None:
                try:
                    members = list(fn(item))
                except Exception as error:  # noqa: BLE001 (Rx's rule: a raising mapper ends the stream)
                    observer.on_error(error)
                    return
                for member in members:
                    observer.on_next(member)

            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator


def only(*kinds: type[R]) -> Callable[[Observable[object]], Observable[R]]:
    """Let through the items of these types.

    --1--a--2--b--|
    [ only(str)   ]
    -----a-----b--|
    """

    def operator(source: Observable[object]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            def on_next(item: object) -> None:
                if isinstance(item, kinds):
                    observer.on_next(item)

            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return operator
