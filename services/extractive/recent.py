"""Keeps what was built from texts lately, so that the next question about them costs nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """A function of content that remembers its latest results, as long as the contents stay below a total weight."""

    def __init__(self, build: Callable[[K], V], weigh: Callable[[K], int], max_weight: int) -> None:
        self._build = build
        self._weigh = weigh
        self._max_weight = max_weight
        self._weight = 0
        self._kept: OrderedDict[K, V] = OrderedDict()

    def __call__(self, content: K) -> V:
        if content in self._kept:
            self._kept.move_to_end(content)
            return self._kept[content]
        value = self._kept[content] = self._build(content)
        self._weight += self._weigh(content)
        while self._weight > self._max_weight and len(self._kept) > 1:
            oldest, _ = self._kept.popitem(last=False)
            self._weight -= self._weigh(oldest)
        return value
