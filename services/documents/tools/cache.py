"""Answers kept for a while, under keys that change with every write."""

from __future__ import annotations

import re
import unicodedata
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace

import clock
from services.documents.results import QAResult, Status

MAX_ENTRIES = 1000
MAX_BYTES = 16 * 1024 * 1024
NOT_FOUND_SECONDS = 60.0

_KEPT = {Status.OK, Status.NOT_FOUND, Status.REFUSED_IRRELEVANT}


@dataclass(frozen=True, slots=True)
class _Entry:
    result: QAResult
    collection: str
    until: float
    size: int


class AnswerCache:
    """Drops the least recently used answer when there are too many.

    Attributes:
        purges: counts calls of `purge`. An answer begun before one must not be kept after it.
    """

    def __init__(
        self,
        *,
        max_entries: int = MAX_ENTRIES,
        max_bytes: int = MAX_BYTES,
        not_found_seconds: float = NOT_FOUND_SECONDS,
    ) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._not_found_seconds = not_found_seconds
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self.purges = 0

    def get(self, key: Hashable) -> QAResult | None:
        entry = self._entries.get(key)
        if entry is None or entry.until <= clock.now():
            self._drop(key)
            return None
        self._entries.move_to_end(key)
        return replace(entry.result, cached=True)

    def put(self, key: Hashable, collection: str, result: QAResult, ttl: float) -> None:
        """Keep an answer for `ttl` seconds; errors and denials are not kept."""
        if result.status not in _KEPT or ttl <= 0:
            return
        if result.status is Status.NOT_FOUND:
            ttl = min(ttl, self._not_found_seconds)
        self._drop(key)
        size = len(result.answer.encode()) + len(repr(result.plan)) + 200 * (1 + len(result.citations))
        self._entries[key] = _Entry(result, collection, clock.now() + ttl, size)
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def purge(self, collection: str) -> int:
        """Forget all answers from one collection; gives their number."""
        self.purges += 1
        gone = [key for key, entry in self._entries.items() if entry.collection == collection]
        for key in gone:
            self._drop(key)
        return len(gone)

    def __len__(self) -> int:
        return len(self._entries)

    def _drop(self, key: Hashable) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._bytes -= entry.size


def normalised(question: str) -> str:
    """The question without differences of width, letter case, spaces and end punctuation.

    Where letter case changes the meaning it changes the plan, which is another part of the key.
    """
    text = unicodedata.normalize("NFKC", question).casefold()
    return re.sub(r"\s+", " ", text).strip().rstrip("?!.… ")
