"""A dictionary of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(OrderedDict[K, V]):
    """A dictionary that keeps the `most` keys which were set last, in the order in which they were."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)

    def touch(self, key: K, new: Callable[[], V]) -> V:
        """Set a key to the value that it has, or else to a new one, and return the value."""
        value = self.get(key)
        self[key] = value = new() if value is None else value
        return value
