"""Emit items later, unless another item of the same key comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import TypeVar

from reactivex import Observable, abc

from operators.defining import Handlers, operator

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


def delay_unless_replaced(
    key: Callable[[T], K], seconds: Callable[[T], float | None]
) -> Callable[[Observable[T]], Observable[T]]:
    """Emit each item after its seconds, or not at all when another item of its key comes first.

        --a3--b3-----b-----|         `b` is an item whose seconds are None
        [ delay_unless_replaced(…) ]
        -----a-------------|         the first `b` was dropped

    An item with 0 seconds is emitted at once, and also replaces the one that waits for its key. Completion and dispose
    drop what waits. (`debounce` has one delay for all keys, and emits what waits on completion.)
    """

    def subscribed(observer: abc.ObserverBase[T]) -> Handlers[T]:
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
                waiting[name] = loop.call_later(delay, due, name, item)

        def due(name: K, item: T) -> None:
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

    return operator(subscribed)
