"""A stream made by asking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable

T = TypeVar("T")


def unfold(ask: Callable[[], Coroutine[Any, Any, T | None]]) -> Observable[T]:
    """Emit what `ask` gives, one after another, until it gives None.

    --1--2--|      ask takes two seconds, and has two things to give

    Nothing is asked ahead: whoever hears of an item is through with it before the next one is asked for. What `ask`
    raises ends the stream; disposing cancels the call under way.
    """

    def subscribe(observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        _ = scheduler  # the loop is the only clock

        async def ask_all() -> None:
            try:
                while (given := await ask()) is not None:
                    observer.on_next(given)
            except Exception as error:  # noqa: BLE001 (Rx's rule: a raising source ends the stream)
                observer.on_error(error)
            else:
                observer.on_completed()

        task = asyncio.get_running_loop().create_task(ask_all())

        def cancel() -> None:
            task.cancel()

        return Disposable(cancel)

    return Observable(subscribe)
