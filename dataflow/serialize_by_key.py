"""Process the items of one key strictly one after another, through a whole pipeline."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable
from typing import TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable
from reactivex.subject import Subject

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


def serialize_by_key(
    key: Callable[[T], K],
    pipeline: Callable[[Observable[T]], Observable[R]],
    *,
    key_of_result: Callable[[R], K],
    max_active: int,
    max_waiting: int = 0,
    on_overflow: Callable[[T], R] | None = None,
    on_waiting: Callable[[int], object] | None = None,
) -> Callable[[Observable[T]], Observable[R]]:
    """Run items through `pipeline`: items of one key one after another, different keys concurrently.

        --aab----------------|
        [ serialize_by_key(letter, slow(6)) ]
        --------a-b---a------|       the second `a` begins when the first is through; `b` did not wait

    `pipeline` gives exactly one result for each item, in any order; `key_of_result` gives its key. At most `max_active`
    items are in the pipeline. Any number may wait for it; with `on_overflow` only `max_waiting`: beyond that the oldest
    waiting item comes out as `on_overflow(item)`. Completion waits for the waiting items; dispose drops them.
    `on_waiting` gets the number of waiting items whenever it may have changed. (`group_by` with `concat_map` would keep
    a subject for each key ever seen.)
    """

    def operator(source: Observable[T]) -> Observable[R]:
        def subscribe(observer: abc.ObserverBase[R], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            inside: Subject[T] = Subject()
            active: set[K] = set()
            waiting: dict[int, tuple[K, T]] = {}  # by number of arrival, oldest first
            queues: dict[K, deque[int]] = {}
            free: list[int] = []  # a heap: the first waiting item of each key that is not active
            arrivals = 0
            admitting = False
            source_done = False

            def on_next(item: T) -> None:
                nonlocal arrivals
                try:
                    name = key(item)
                except Exception as error:  # noqa: BLE001 (Rx's rule: a raising selector ends the stream)
                    observer.on_error(error)
                    return
                arrivals += 1
                waiting[arrivals] = (name, item)
                queue = queues.setdefault(name, deque())
                queue.append(arrivals)
                if len(queue) == 1 and name not in active:
                    heapq.heappush(free, arrivals)
                admit()

            def admit() -> None:
                nonlocal admitting
                if admitting:  # a result came at once: the loop below goes on, where recursion would be too deep
                    return
                admitting = True
                raised: Exception | None = None
                while free and len(active) < max_active:
                    number = heapq.heappop(free)
                    name, item = waiting.pop(number)
                    leave_queue(name)
                    active.add(name)
                    try:
                        inside.on_next(item)
                    except Exception as error:  # noqa: BLE001 (a raising subscriber's: raised when the others are in)
                        raised = raised or error
                admitting = False
                while on_overflow is not None and len(waiting) > max_waiting:
                    observer.on_next(on_overflow(take_oldest()))
                if on_waiting is not None:
                    on_waiting(len(waiting))
                if raised is not None:
                    raise raised

            def leave_queue(name: K) -> None:
                queue = queues[name]
                queue.popleft()
                if not queue:
                    del queues[name]

            def take_oldest() -> T:
                number = next(iter(waiting))
                name, item = waiting.pop(number)
                leave_queue(name)
                if name not in active:
                    heapq.heappop(free)  # the oldest item is the first of the heap
                    if name in queues:
                        heapq.heappush(free, queues[name][0])
                return item

            def on_result(result: R) -> None:
                try:
                    observer.on_next(result)
                finally:  # a raising subscriber must not cost the key its turn
                    name = key_of_result(result)
                    active.discard(name)
                    if name in queues:
                        heapq.heappush(free, queues[name][0])
                    admit()
                    complete_when_idle()

            def on_completed() -> None:
                nonlocal source_done
                source_done = True
                complete_when_idle()

            def complete_when_idle() -> None:
                if source_done and not active and not waiting:
                    inside.on_completed()

            def drop_all() -> None:
                waiting.clear()
                queues.clear()
                free.clear()

            return CompositeDisposable(
                pipeline(inside).subscribe(on_result, observer.on_error, observer.on_completed, scheduler=scheduler),
                source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler),
                Disposable(drop_all),
            )

        return Observable(subscribe)

    return operator
