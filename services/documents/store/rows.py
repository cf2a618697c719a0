"""A document as rows of the tables, on its way into a store."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Collection as SizedIterable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

Row = tuple[Any, ...]  # SQLite says nothing of the types of its columns; `schema.TABLES` does

_SLICE = 250


@dataclass(frozen=True, slots=True)
class Rows:
    """A prepared document as rows, made before the database is locked."""

    chunks: SizedIterable[Row]
    chunk_tokens: SizedIterable[str]
    lines: SizedIterable[Row]
    line_tokens: SizedIterable[str]


class Slices(SizedIterable[T]):
    """Items that are kept pickled, and unpickled a few at a time whenever they are gone through.

    So a million of them are handed from process to process as some thousand buffers, and never all in memory.
    """

    def __init__(self, length: int, pickled: Sequence[bytes]) -> None:
        self._length = length
        self._pickled = pickled

    def __reduce__(self) -> tuple[Callable[..., Slices[T]], tuple[int, list[pickle.PickleBuffer]]]:
        return Slices, (self._length, [pickle.PickleBuffer(each) for each in self._pickled])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for each in self._pickled:
            yield from pickle.loads(each)  # noqa: S301 (made here)

    def __contains__(self, item: object) -> bool:
        return any(item == each for each in self)


def sliced(items: Sequence[T]) -> Slices[T]:
    starts = range(0, len(items), _SLICE)
    return Slices(len(items), [pickle.dumps(items[at : at + _SLICE], pickle.HIGHEST_PROTOCOL) for at in starts])
