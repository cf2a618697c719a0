"""Keeps what was built from contents lately, so that the next question about them costs nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Remembers the latest values, as long as their keys stay below a total weight. Not for several threads."""

    def __init__(self, weigh: Callable[[K], int], max_weight: int) -> None:
        self._weigh = weigh
        self._max_weight = max_weight
        self._weight = 0
        self._kept: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def keep(self, key: K, value: V) -> None:
        if key not in self._kept:
            self._weight += self._weigh(key)
        self._kept[key] = value
        self._kept.move_to_end(key)
        while self._weight > self._max_weight and len(self._kept) > 1:
            oldest, _ = self._kept.popitem(last=False)
            self._weight -= self._weigh(oldest)
