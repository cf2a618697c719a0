"""Bounded tables of the newest messages, in columns of numbers, since there are tens of thousands of them.

Columns are made as long as they will ever be: ones that grow are moved again and again, and leave holes in memory.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, NamedTuple

from model.messages import AuthorType

_TYPES = tuple(AuthorType)
_NUMBERS = {author_type: number for number, author_type in enumerate(_TYPES)}


class Spoken(NamedTuple):
    """What is remembered of one message."""

    conversation: int
    place_id: int
    author_id: int
    author_type: AuthorType
    at: float


class NewestIds:
    """A bounded set of message ids. It keeps the greatest, which are the newest: ids contain the time.

    8 bytes each, where an `OrderedDict` takes 180.
    """

    __slots__ = ("_count", "_ids", "_most")

    def __init__(self, most: int) -> None:
        self._ids = _column("Q", most)
        self._count = 0
        self._most = most

    def __contains__(self, message_id: int) -> bool:
        return _index(self._ids, self._count, message_id) is not None

    def add(self, message_id: int) -> None:
        """Add an id that is not in the set."""
        _insert(self._ids, self._count, bisect_left(self._ids, message_id, 0, self._count), message_id)
        self._count = _without_surplus([self._ids], self._count + 1, self._most)


class NewestSpoken:
    """A bounded table of the newest messages by id: 41 bytes for a message, where objects take 300."""

    __slots__ = ("_authors", "_conversations", "_count", "_ids", "_most", "_places", "_times", "_types")

    def __init__(self, most: int) -> None:
        self._ids, self._conversations, self._places, self._authors = (_column("Q", most) for _ in range(4))
        self._types: array[int] = _column("B", most)
        self._times: array[float] = _column("d", most)
        self._count = 0
        self._most = most

    def get(self, message_id: int) -> Spoken | None:
        index = _index(self._ids, self._count, message_id)
        if index is None:
            return None
        author_type = _TYPES[self._types[index]]
        return Spoken(
            self._conversations[index], self._places[index], self._authors[index], author_type, self._times[index]
        )

    def conversation_of(self, message_id: int) -> int | None:
        index = _index(self._ids, self._count, message_id)
        return None if index is None else self._conversations[index]

    def place_of(self, message_id: int) -> int | None:
        index = _index(self._ids, self._count, message_id)
        return None if index is None else self._places[index]

    def add(self, message_id: int, spoken: Spoken) -> None:
        """Add a message that is not in the table."""
        count, index = self._count, bisect_left(self._ids, message_id, 0, self._count)
        _insert(self._ids, count, index, message_id)
        _insert(self._conversations, count, index, spoken.conversation)
        _insert(self._places, count, index, spoken.place_id)
        _insert(self._authors, count, index, spoken.author_id)
        _insert(self._types, count, index, _NUMBERS[spoken.author_type])
        _insert(self._times, count, index, spoken.at)
        columns = (self._ids, self._conversations, self._places, self._authors, self._types, self._times)
        self._count = _without_surplus(columns, count + 1, self._most)

    def move(self, message_id: int, conversation: int) -> None:
        """Change the conversation of a message, if it is in the table."""
        index = _index(self._ids, self._count, message_id)
        if index is not None:
            self._conversations[index] = conversation


def _column(kind: str, most: int) -> array[Any]:
    """With room for those that are kept, those that are forgotten together, and the one that is one too many."""
    return array(kind, [0]) * (most + most // 16 + 1)


def _insert(column: array[Any], count: int, index: int, value: float) -> None:
    """Put a number before the `index`th of the first `count`."""
    if index < count:  # nearly always it is the newest, and none has to move
        column[index + 1 : count + 1] = column[index:count]
    column[index] = value


def _without_surplus(columns: Iterable[array[Any]], count: int, most: int) -> int:
    """How many are left once the oldest are forgotten: many at once, since all others move up."""
    if count <= most + most // 16:
        return count
    for column in columns:
        column[:most] = column[count - most : count]
    return most


def _index(ids: array[int], count: int, message_id: int) -> int | None:
    index = bisect_left(ids, message_id, 0, count)
    return index if index < count and ids[index] == message_id else None
