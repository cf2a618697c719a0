"""Let items of one type bypass an operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from reactivex import Observable, abc

T = TypeVar("T")
R = TypeVar("R")
P = TypeVar("P")


def pass_through(
    kind: type[P], operator: Callable[[Observable[T]], Observable[R]]
) -> Callable[[Observable[T | P]], Observable[R | P]]:
    """Pass items of one type on unchanged and at once; all others go through `operator`.

        --1-p-2----|
        [ pass_through(P, slow(3)) ]
        ----p1---2-|

    Completes when `operator` has.
    """

    def around(source: Observable[T | P]) -> Observable[R | P]:
        def subscribe(
            observer: abc.ObserverBase[R | P], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            def enter(inside: abc.ObserverBase[T], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
                def on_next(item: T | P) -> None:
                    if isinstance(item, kind):
                        observer.on_next(item)
                    else:
                        inside.on_next(cast("T", item))

                return source.subscribe(on_next, inside.on_error, inside.on_completed, scheduler=scheduler)

            through = operator(Observable(enter))
            return through.subscribe(observer.on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return around
