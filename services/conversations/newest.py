"""What is known of the newest messages: in columns of numbers, since there are tens of thousands of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import NamedTuple

from model.messages import AuthorType

_TYPES = tuple(AuthorType)
_NUMBERS = {author_type: number for number, author_type in enumerate(_TYPES)}


class Spoken(NamedTuple):
    """A message, and the name of its conversation."""

    conversation: int
    place_id: int
    author_id: int
    author_type: AuthorType
    at: float


class NewestIds:
    """The greatest ids of messages, which are the newest: ids hold the time.

    8 bytes each, where an `OrderedDict` takes 180.
    """

    __slots__ = ("_ids", "_most")

    def __init__(self, most: int) -> None:
        self._ids = array("Q")
        self._most = most

    def __contains__(self, message_id: int) -> bool:
        return _index(self._ids, message_id) is not None

    def add(self, message_id: int) -> None:
        """Keep an id that is not among them."""
        self._ids.insert(bisect_left(self._ids, message_id), message_id)
        del self._ids[: _surplus(len(self._ids), self._most)]


class NewestSpoken:
    """The newest messages, likewise, and what there is to know of each: 41 bytes, where objects take 300."""

    __slots__ = ("_authors", "_conversations", "_ids", "_most", "_places", "_times", "_types")

    def __init__(self, most: int) -> None:
        self._ids, self._conversations, self._places, self._authors = (array("Q") for _ in range(4))
        self._types, self._times = array("B"), array("d")
        self._most = most

    def get(self, message_id: int) -> Spoken | None:
        index = _index(self._ids, message_id)
        if index is None:
            return None
        author_type = _TYPES[self._types[index]]
        return Spoken(
            self._conversations[index], self._places[index], self._authors[index], author_type, self._times[index]
        )

    def conversation_of(self, message_id: int) -> int | None:
        index = _index(self._ids, message_id)
        return None if index is None else self._conversations[index]

    def place_of(self, message_id: int) -> int | None:
        index = _index(self._ids, message_id)
        return None if index is None else self._places[index]

    def add(self, message_id: int, spoken: Spoken) -> None:
        """Keep a message that is not among them."""
        index = bisect_left(self._ids, message_id)
        self._ids.insert(index, message_id)
        self._conversations.insert(index, spoken.conversation)
        self._places.insert(index, spoken.place_id)
        self._authors.insert(index, spoken.author_id)
        self._types.insert(index, _NUMBERS[spoken.author_type])
        self._times.insert(index, spoken.at)
        surplus = _surplus(len(self._ids), self._most)
        if surplus:
            for column in (self._ids, self._conversations, self._places, self._authors, self._types, self._times):
                del column[:surplus]

    def move(self, message_id: int, conversation: int) -> None:
        """Name another conversation of a message, if that is among them."""
        index = _index(self._ids, message_id)
        if index is not None:
            self._conversations[index] = conversation


def _index(ids: array[int], message_id: int) -> int | None:
    index = bisect_left(ids, message_id)
    return index if index < len(ids) and ids[index] == message_id else None


def _surplus(count: int, most: int) -> int:
    """How many of the oldest to forget: many at once, since all others move up."""
    return count - most if count > most + most // 16 else 0
