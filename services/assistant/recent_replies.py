"""Recent replies, so that nobody is sent the same text twice within a day."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

DAY = 86_400.0
_REMEMBERED = 10_000


class RecentReplies:
    """Remembers which texts were sent to which person, as hashes, for a day and in bounded memory."""

    def __init__(self, seconds: float = DAY) -> None:
        self._seconds = seconds
        self._said: OrderedDict[tuple[int, bytes], float] = OrderedDict()

    def remember(self, person_id: int, text: str, at: float) -> None:
        """Remember that a person was sent `text`."""
        key = _key(person_id, text)
        self._said.pop(key, None)
        self._said[key] = at
        while len(self._said) > _REMEMBERED or at - next(iter(self._said.values())) >= self._seconds:
            self._said.popitem(last=False)

    def was_sent(self, person_id: int, text: str, at: float) -> bool:
        """True if a person was sent `text` within the last day."""
        last = self._said.get(_key(person_id, text))
        return last is not None and at - last < self._seconds


def _key(person_id: int, text: str) -> tuple[int, bytes]:
    return person_id, hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]
