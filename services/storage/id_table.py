"""A table of ids, for tens of thousands of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import MutableSequence
from typing import Generic, TypeVar

V = TypeVar("V")


class IdTable(Generic[V]):
    """From ids of 64 bits to values, in two columns: an entry takes 16 bytes, where a dictionary takes 150."""

    __slots__ = ("_ids", "_values")

    def __init__(self, values: MutableSequence[V]) -> None:
        """`values`: the empty column for them, which becomes the table's own: `array("Q")` for ids, else a list, whose
        objects take their memory besides.
        """
        self._ids = array("Q")  # in order
        self._values = values

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, key: int) -> bool:
        return self._is_at(bisect_left(self._ids, key), key)

    def get(self, key: int) -> V | None:
        index = bisect_left(self._ids, key)
        return self._values[index] if self._is_at(index, key) else None

    def put(self, key: int, value: V) -> None:
        index = bisect_left(self._ids, key)
        if self._is_at(index, key):
            self._values[index] = value
        else:
            self._ids.insert(index, key)
            self._values.insert(index, value)

    def discard(self, key: int) -> None:
        index = bisect_left(self._ids, key)
        if self._is_at(index, key):
            del self._ids[index], self._values[index]

    def _is_at(self, index: int, key: int) -> bool:
        return index < len(self._ids) and self._ids[index] == key
