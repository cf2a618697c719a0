"""Who was told what lately: nobody wants the same quote twice."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

DAY = 86_400.0
_REMEMBERED = 10_000


class Repeats:
    """Remembers, in bounded memory and for as long as it matters, what was said to whom. Texts are kept as hashes."""

    def __init__(self, seconds: float = DAY) -> None:
        self._seconds = seconds
        self._said: OrderedDict[tuple[int, bytes], float] = OrderedDict()

    def told(self, person_id: int, text: str, at: float) -> None:
        """Remember that a person was told `text`."""
        key = _key(person_id, text)
        self._said.pop(key, None)
        self._said[key] = at
        while len(self._said) > _REMEMBERED or at - next(iter(self._said.values())) >= self._seconds:
            self._said.popitem(last=False)

    def was_told(self, person_id: int, text: str, at: float) -> bool:
        """Whether a person was told `text` within the time."""
        last = self._said.get(_key(person_id, text))
        return last is not None and at - last < self._seconds


def _key(person_id: int, text: str) -> tuple[int, bytes]:
    return person_id, hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]
