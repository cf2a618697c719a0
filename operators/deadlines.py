"""What is due next, when deadlines mostly come in order."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


class HasDeadline(Protocol):
    deadline: float


D = TypeVar("D", bound=HasDeadline)


class Deadlines(Generic[K, D]):
    """Things by key, the one with the earliest deadline first.

    With one constant quiet time, deadlines come in the order of arrival, for which an ordered dictionary is enough. The
    exceptions (earlier than the last one given) go to a heap, whose outdated entries are skipped. Nothing else is kept
    of a key that was popped.
    """

    __slots__ = ("_heap", "_in_order", "_last", "_out_of_order", "_pushes")

    def __init__(self) -> None:
        self._in_order: OrderedDict[K, D] = OrderedDict()
        self._out_of_order: dict[K, D] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._pushes = 0
        self._last = float("-inf")

    def __len__(self) -> int:
        return len(self._in_order) + len(self._out_of_order)

    def get(self, key: K) -> D | None:
        found = self._in_order.get(key)
        return found if found is not None or not self._out_of_order else self._out_of_order.get(key)

    def put(self, key: K, thing: D, deadline: float) -> None:
        """Add `thing`, or move it to its new deadline."""
        thing.deadline = deadline
        if deadline >= self._last:
            self._last = deadline
            if self._out_of_order:
                self._out_of_order.pop(key, None)
            self._in_order[key] = thing
            self._in_order.move_to_end(key)
        else:
            self._in_order.pop(key, None)
            self._out_of_order[key] = thing
            self._pushes += 1
            heapq.heappush(self._heap, (deadline, self._pushes, key))

    def pop(self, key: K) -> None:
        if self._in_order.pop(key, None) is None:
            self._out_of_order.pop(key, None)

    def first(self) -> tuple[K, D] | None:
        """The next one due; on a tie, the one that came in order."""
        head = next(iter(self._in_order.items())) if self._in_order else None
        while self._heap:
            deadline, _, key = self._heap[0]
            thing = self._out_of_order.get(key)
            if thing is not None and thing.deadline == deadline:
                return (key, thing) if head is None or deadline < head[1].deadline else head
            heapq.heappop(self._heap)
        return head

    def clear(self) -> None:
        self._in_order.clear()
        self._out_of_order.clear()
        self._heap.clear()
