"""A dictionary of bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedDict(OrderedDict[K, V]):
    """A dictionary that keeps the `max_size` keys that were set last, in the order in which they were set."""

    def __init__(self, max_size: int) -> None:
        super().__init__()
        self._max_size = max_size

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._max_size:
            self.popitem(last=False)

    def touch(self, key: K, new: Callable[[], V]) -> V:
        """Return the value of a key, or set a new one. The key counts as set last in both cases."""
        value = self.get(key)
        self[key] = value = new() if value is None else value
        return value
