"""Small synchronous operators that keep their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from reactivex import Observable, abc

from operators.defining import Handlers, operator

T = TypeVar("T")
R = TypeVar("R")


def spread(fn: Callable[[T], Iterable[R]]) -> Callable[[Observable[T]], Observable[R]]:
    """Emit each member of `fn(item)`, at once and in order.

        --1------2------|
        [ spread(pair)  ]
        --(1 1)--(2 2)--|

    `concat_map` would subscribe to an inner observable for each item; this is a loop.
    """

    def subscribed(observer: abc.ObserverBase[R]) -> Handlers[T]:
        def on_next(item: T) -> None:
            try:
                members = list(fn(item))
            except Exception as error:  # noqa: BLE001 (Rx's rule: a raising mapper ends the stream)
                observer.on_error(error)
                return
            for member in members:
                observer.on_next(member)

        return Handlers(on_next)

    return operator(subscribed)


def only(*kinds: type[R]) -> Callable[[Observable[object]], Observable[R]]:
    """Let through the items of these types. `filter` would do it, and lose the type.

    --1--a--2--b--|
    [ only(str)   ]
    -----a-----b--|
    """

    def subscribed(observer: abc.ObserverBase[R]) -> Handlers[object]:
        def on_next(item: object) -> None:
            if isinstance(item, kinds):
                observer.on_next(item)

        return Handlers(on_next)

    return operator(subscribed)
