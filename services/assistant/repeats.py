"""Who was told what lately: nobody wants the same quote twice."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

DAY = 86_400.0
_REMEMBERED = 10_000


class Repeats:
    """Remembers, in bounded memory and until the end of the run, what was said to whom. Texts are kept as hashes."""

    def __init__(self, seconds: float = DAY) -> None:
        self._seconds = seconds
        self._said: OrderedDict[tuple[int, bytes], float] = OrderedDict()

    def is_new(self, person_id: int, text: str, at: float) -> bool:
        """Whether a person was not told `text` within the time. Then they are told it now."""
        key = person_id, hashlib.sha256(text.encode("utf-8", "replace")).digest()[:16]
        last = self._said.pop(key, None)
        is_new = last is None or at - last >= self._seconds
        self._said[key] = at if is_new or last is None else last
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)
        return is_new
