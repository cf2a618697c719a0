"""Narrowing an index that is too long for a prompt to the entries that rank best for a query (SPEC 5, BM25)."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from services.knowledge.index_file import IndexEntry
from services.storage import in_thread

MAX_TERMS = 64
"""So many words of a query count, the first ones: each costs a pass over the entries that hold it."""

KEPT_INDICES = 2
"""The current index, and the previous one for questions that began earlier."""

_WORD = re.compile(r"\w+")
_UNSPACED = re.compile(r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])")
"""Letters of scripts that put no blanks between words (Thai, Lao, Burmese, Khmer, kana, Han), and Hangul."""


async def narrowed(entries: Sequence[IndexEntry], query: str, max_chars: int) -> Sequence[IndexEntry]:
    """As `narrow`; off the event loop if there is anything to search (pitfall 38)."""
    if _index(entries).size <= max_chars:
        return entries
    return await in_thread(narrow, entries, query, max_chars)


def narrow(entries: Sequence[IndexEntry], query: str, max_chars: int) -> Sequence[IndexEntry]:
    """All `entries` when an index file of them has at most `max_chars` characters; else the best for `query`.

    They are taken by rank as long as they fit, those that share no word with the query last; equal ranks in the given
    order. The result keeps the order of `entries`. Blocking: of 20,000 entries, the first search takes two thirds of a
    second, each further one up to a tenth.
    """
    index = _index(entries)
    return entries if index.size <= max_chars else index.best(query, max_chars)


class _Index:
    """A sequence of entries, with a full-text table of them after the first search."""

    def __init__(self, entries: Sequence[IndexEntry]) -> None:
        self.entries = entries
        # As rendered: identifier, description, their line ends, and a blank line between two.
        self.sizes = [len(entry.id) + len(entry.description) + 3 for entry in entries]
        self.size = max(sum(self.sizes) - 1, 0)
        self._searching = threading.Lock()
        self._database: sqlite3.Connection | None = None

    def __del__(self) -> None:
        if self._database is not None:
            self._database.close()

    def best(self, query: str, max_chars: int) -> list[IndexEntry]:
        room, smallest = max_chars + 1, min(self.sizes)
        kept: list[int] = []
        with self._searching:
            for at in self._ranked(query):
                if room < smallest:
                    break  # of a large index, little more is looked at than what is kept
                if self.sizes[at] <= room:
                    kept.append(at)
                    room -= self.sizes[at]
        return [self.entries[at] for at in sorted(kept)]

    def _ranked(self, query: str) -> Iterator[int]:
        """Every position, the best for `query` first."""
        found: set[int] = set()
        for (row,) in self._search(query):
            found.add(row)
            yield row
        yield from (at for at in range(len(self.entries)) if at not in found)

    def _search(self, query: str) -> Iterator[tuple[int]]:
        words = list(dict.fromkeys(_words(query)))[:MAX_TERMS]
        if not words:
            return iter(())
        # Each word is quoted, and none holds a quote: nothing of the query is FTS5 syntax.
        match = " OR ".join(f'"{word}"' for word in words)
        ranked = "SELECT rowid FROM entries WHERE entries MATCH ? ORDER BY bm25(entries), rowid"
        return self._table().execute(ranked, (match,))

    def _table(self) -> sqlite3.Connection:
        if self._database is None:
            database = sqlite3.connect(":memory:", check_same_thread=False)  # one at a time, under the lock
            database.execute("CREATE VIRTUAL TABLE entries USING fts5(words, tokenize='porter unicode61', content='')")
            rows = ((at, " ".join(_words(f"{entry.id} {entry.description}"))) for at, entry in enumerate(self.entries))
            database.executemany("INSERT INTO entries(rowid, words) VALUES (?, ?)", rows)
            self._database = database
        return self._database


def _words(text: str) -> list[str]:
    if not text.isascii():
        # Half a surrogate pair cannot be handed to SQLite.
        text = _UNSPACED.sub(r" \1 ", text.encode("utf-8", "replace").decode())
    return _WORD.findall(text)


_finding = threading.Lock()
"""Held only while lengths are added up: the event loop takes it, too."""
_indices: OrderedDict[int, _Index] = OrderedDict()
"""By the identity of the entries, which the index keeps alive."""


def _index(entries: Sequence[IndexEntry]) -> _Index:
    with _finding:
        index = _indices.get(id(entries))
        if index is None or index.entries is not entries:
            # A list could change.
            index = _Index(entries if isinstance(entries, tuple) else tuple(entries))
            _indices[id(index.entries)] = index
            while len(_indices) > KEPT_INDICES:
                _indices.popitem(last=False)
        return index
