"""A source that calls an async function until it gives nothing more."""

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

    Nothing is requested ahead: subscribers have handled an item before the next call. What `ask` raises ends the
    stream; dispose cancels the running call.
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
