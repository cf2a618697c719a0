"""Batch each key's items until that key falls quiet."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class _Window(Generic[T]):
    deadline: float
    items: list[T]


def quiet_window(
    seconds: float, key: Callable[[T], K], *, max_items: int = 100
) -> Callable[[Observable[T]], Observable[list[T]]]:
    """Emit a key's items as one list once the key has been quiet for `seconds`.

        --a1-a2-b1---------|
        [ quiet_window(4) ]
        ---------A---B-----|      A = [a1, a2], B = [b1]

    A window is half open: an item landing exactly on the deadline starts a new
    one. Completion flushes open windows; dispose drops them.
    """

    def operator(source: Observable[T]) -> Observable[list[T]]:
        def subscribe(
            observer: abc.ObserverBase[list[T]], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            loop = asyncio.get_running_loop()
            windows: OrderedDict[K, _Window[T]] = OrderedDict()  # earliest deadline first
            timer: asyncio.TimerHandle | None = None

            def arm() -> None:
                nonlocal timer
                if timer is None and windows:
                    timer = loop.call_at(next(iter(windows.values())).deadline, fire)

            def fire() -> None:
                nonlocal timer
                timer = None
                now = loop.time()
                try:
                    while windows and next(iter(windows.values())).deadline <= now:
                        _, due = windows.popitem(last=False)
                        observer.on_next(due.items)
                finally:
                    arm()

            def on_next(item: T) -> None:
                now = loop.time()
                try:
                    name = key(item)
                except Exception as error:
                    observer.on_error(error)
                    return
                window = windows.get(name)
                if window is not None and (window.deadline <= now or len(window.items) >= max_items):
                    del windows[name]
                    observer.on_next(window.items)
                    window = None
                if window is None:
                    windows[name] = _Window(now + seconds, [item])
                else:
                    window.items.append(item)
                    window.deadline = now + seconds
                    windows.move_to_end(name)
                arm()

            def on_completed() -> None:
                stop_timer()
                while windows:
                    _, window = windows.popitem(last=False)
                    observer.on_next(window.items)
                observer.on_completed()

            def stop_timer() -> None:
                nonlocal timer
                if timer is not None:
                    timer.cancel()
                    timer = None

            return CompositeDisposable(
                source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler),
                Disposable(stop_timer),
                Disposable(windows.clear),
            )

        return Observable(subscribe)

    return operator
