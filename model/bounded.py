"""A dictionary of bounded size, and limits by key that stand on it."""

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


KEPT_KEYS = 10_000


class RateLimit:
    """How often something may happen for one key, such as a person: `most` times in `seconds`. Of more than `KEPT_KEYS`
    keys, those that were noted first are forgotten. A time that lies `seconds` ahead, of a wrong clock, does not count.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._times = BoundedDict[Hashable, tuple[float, ...]](KEPT_KEYS)

    def is_reached(self, key: Hashable, at: float) -> bool:
        """Return True if it has happened too often to happen at `at`, in seconds."""
        return len(self._recent(key, at)) >= self._most

    def note(self, key: Hashable, at: float) -> None:
        """Note that it happens at `at`."""
        self._times[key] = (*self._recent(key, at), at)

    def _recent(self, key: Hashable, at: float) -> tuple[float, ...]:
        return tuple(each for each in self._times.get(key, ()) if abs(at - each) < self._seconds)
