"""The known messages of one place, and the intervals of ids in which none is missing."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from model.messages import Message

ENDLESS = 1 << 64  # above every snowflake: an interval that reaches here includes whatever comes next


class Timeline:
    """Messages in order of id, with the intervals of ids in which all of them are known.

    It uses two parallel lists: a dictionary from which the oldest is removed again and again takes four times as much.
    """

    __slots__ = ("_covered", "_ids", "_messages")

    def __init__(self, *, complete: bool) -> None:
        self._ids: list[int] = []
        self._messages: list[Message] = []
        self._covered: list[tuple[int, int]] = [(0, ENDLESS)] if complete else []

    def __len__(self) -> int:
        return len(self._ids)

    def get(self, message_id: int) -> Message | None:
        index = bisect_left(self._ids, message_id)
        return self._messages[index] if self._is_at(index, message_id) else None

    def add(self, message: Message) -> None:
        index = bisect_left(self._ids, message.id)
        if self._is_at(index, message.id):
            self._messages[index] = message
        else:
            self._ids.insert(index, message.id)
            self._messages.insert(index, message)

    def remove(self, message_id: int) -> None:
        index = bisect_left(self._ids, message_id)
        if self._is_at(index, message_id):
            del self._ids[index], self._messages[index]

    def _is_at(self, index: int, message_id: int) -> bool:
        return index < len(self._ids) and self._ids[index] == message_id

    def cover(self, low: int, high: int) -> None:
        """Note that every message from `low` to `high` is known."""
        apart: list[tuple[int, int]] = []
        for interval in self._covered:
            if interval[1] + 1 < low or high + 1 < interval[0]:
                apart.append(interval)
            else:
                low, high = min(low, interval[0]), max(high, interval[1])
        self._covered = sorted([*apart, (low, high)])

    def pause(self) -> None:
        """Note that messages may be missed from now on: the interval of the newest ends here."""
        last = self._ids[-1] if self._ids else 0
        self._covered = [(low, min(high, last)) for low, high in self._covered if low <= last]

    def covers(self, message_id: int) -> bool:
        return self._around(message_id) is not None

    def newest(self, limit: int) -> list[Message] | None:
        """The last `limit` messages, oldest first; None where some of them are not known."""
        if not self._covered or self._covered[-1][1] < ENDLESS:
            return None
        low = self._covered[-1][0]
        known = self._messages[max(bisect_left(self._ids, low), len(self._ids) - limit) :]
        return None if len(known) < limit and low > 0 else known

    def before(self, message_id: int) -> Iterator[Message | None]:
        """Iterate backwards from a message. Yields None, and ends, where the next message is not known."""
        index = bisect_left(self._ids, message_id)
        return self._walk(message_id, (self._messages[i] for i in range(index - 1, -1, -1)), to=0)

    def after(self, message_id: int) -> Iterator[Message | None]:
        """Iterate forwards from a message. Yields None, and ends, where the next message is not known."""
        index = bisect_right(self._ids, message_id)
        return self._walk(message_id, (self._messages[i] for i in range(index, len(self._ids))), to=ENDLESS)

    def _walk(self, start: int, messages: Iterable[Message], *, to: int) -> Iterator[Message | None]:
        low, high = self._around(start) or (start, start)
        for message in messages:
            if not low <= message.id <= high:
                break
            yield message
        if not low <= to <= high:
            yield None

    def _around(self, message_id: int) -> tuple[int, int] | None:
        return next((interval for interval in self._covered if interval[0] <= message_id <= interval[1]), None)

    def trim(self, keep: int) -> None:
        """Drop all but the newest `keep` messages."""
        surplus = len(self._ids) - keep
        if surplus <= 0:
            return
        del self._ids[:surplus], self._messages[:surplus]
        oldest = self._ids[0]
        self._covered = [(max(low, oldest), high) for low, high in self._covered if high >= oldest]
