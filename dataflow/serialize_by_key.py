"""Process the items of one key strictly one after another, through a whole pipeline."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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
            pipeline_input: Subject[T] = Subject()
            items = _Items[K, T]()
            is_admitting = is_source_done = False

            def on_next(item: T) -> None:
                try:
                    item_key = key(item)
                except Exception as error:  # noqa: BLE001 (Rx's rule: a raising selector ends the stream)
                    observer.on_error(error)
                    return
                items.add(item_key, item)
                admit()

            def admit() -> None:
                nonlocal is_admitting
                if is_admitting:  # a result came at once: the loop below goes on, where recursion would be too deep
                    return
                is_admitting = True
                raised: Exception | None = None
                while items.ready and len(items.active) < max_active:
                    try:
                        pipeline_input.on_next(items.activate_next())
                    except Exception as error:  # noqa: BLE001 (a raising subscriber's: raised when the others are in)
                        raised = raised or error
                is_admitting = False
                while on_overflow is not None and len(items.waiting) > max_waiting:
                    observer.on_next(on_overflow(items.take_oldest()))
                if on_waiting is not None:
                    on_waiting(len(items.waiting))
                if raised is not None:
                    raise raised

            def on_result(result: R) -> None:
                try:
                    observer.on_next(result)
                finally:  # a raising subscriber must not cost the key its turn
                    items.deactivate(key_of_result(result))
                    admit()
                    complete_when_idle()

            def on_completed() -> None:
                nonlocal is_source_done
                is_source_done = True
                complete_when_idle()

            def complete_when_idle() -> None:
                if is_source_done and not items.active and not items.waiting:
                    pipeline_input.on_completed()

            results = pipeline(pipeline_input)
            return CompositeDisposable(
                results.subscribe(on_result, observer.on_error, observer.on_completed, scheduler=scheduler),
                source.subscribe(on_next, observer.on_error, on_completed, scheduler=scheduler),
                Disposable(items.drop_waiting),
            )

        return Observable(subscribe)

    return operator


class _Items(Generic[K, T]):
    """The waiting items, and the keys of those in the pipeline. An item is ready if it is the first of its key that
    waits, and none of its key is in the pipeline.

    Attributes:
        active: the keys in the pipeline.
        waiting: keys and items by number of arrival, oldest first.
        ready: the numbers of the ready items, as a heap.
    """

    def __init__(self) -> None:
        self.active: set[K] = set()
        self.waiting: dict[int, tuple[K, T]] = {}
        self.ready: list[int] = []
        self._queues: dict[K, deque[int]] = {}  # the numbers of the waiting items of each key
        self._arrivals = 0

    def add(self, key: K, item: T) -> None:
        self._arrivals += 1
        self.waiting[self._arrivals] = (key, item)
        queue = self._queues.setdefault(key, deque())
        queue.append(self._arrivals)
        if len(queue) == 1 and key not in self.active:
            heapq.heappush(self.ready, self._arrivals)

    def activate_next(self) -> T:
        """Take the oldest ready item, and mark its key as active."""
        key, item = self._take(heapq.heappop(self.ready))
        self.active.add(key)
        return item

    def deactivate(self, key: K) -> None:
        """Note that the active item of a key has left the pipeline."""
        self.active.discard(key)
        self._make_ready(key)

    def take_oldest(self) -> T:
        """Take the oldest waiting item, ready or not."""
        key, item = self._take(next(iter(self.waiting)))
        if key not in self.active:
            heapq.heappop(self.ready)  # the oldest item is the first of the heap
            self._make_ready(key)
        return item

    def drop_waiting(self) -> None:
        self.waiting.clear()
        self._queues.clear()
        self.ready.clear()

    def _take(self, number: int) -> tuple[K, T]:
        key, item = self.waiting.pop(number)
        queue = self._queues[key]
        queue.popleft()
        if not queue:
            del self._queues[key]
        return key, item

    def _make_ready(self, key: K) -> None:
        if key in self._queues:
            heapq.heappush(self.ready, self._queues[key][0])
