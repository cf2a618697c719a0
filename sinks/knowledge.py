"""Where the knowledge base ends up: the cache file, and the index that follows from it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clock import now, rfc3339
from services.knowledge import AnyKind, IndexEntry, Ledger, Record, Trouble, cache, index_file
from services.storage import Signature, confined, files, in_thread


@dataclass(frozen=True, slots=True)
class _Rendered:
    """A record's share of the two files; kept, as most records stay as they are from one write to the next."""

    record: Record
    line: str
    entry: str
    """Empty for a source that is in no index."""


class CacheAndIndex:
    """Writes both files from the ledger, the cache first: the index is a function of it, so that a crash between the
    two is mended by the next call.
    """

    def __init__(self, ledger: Ledger, index_path: Path, namespace: str = "kb") -> None:
        self._ledger = ledger
        self._index_path = index_path
        self._namespace = namespace
        self._rendered: dict[str, _Rendered] = {}
        self._version = 0
        """Of the ledger, when it was last written; it begins as the cache file has it."""
        self._cache_seen: Signature | None = None
        self._index_seen: Signature | None = None
        self.entries = 0
        """How many sources have a place in the index, as it was when last saved."""
        self._writing = threading.Lock()
        """Whoever waited for a write may be cancelled while its thread goes on, and another one follow."""

    async def save(self, _sign: object = None) -> list[Trouble]:
        """Bring both files up to date; what is so already is not written.

        A file that cannot be written is a trouble, and tried again the next time.
        """
        ledger = self._ledger
        if not ledger.loaded:
            return []
        version = ledger.version
        # Records never change: what a thread sees is the ledger as it is now, whatever happens to it meanwhile.
        records = list(ledger.records.values())
        try:
            await in_thread(self._write_in_turn, records, version, rfc3339(now()))
        except OSError as error:
            return [Trouble(str(error.filename), "write", error.strerror or str(error), fatal=True)]
        return []

    def _write_in_turn(self, records: list[Record], version: int, at: str) -> None:
        with self._writing:
            if version < self._version:
                return
            try:
                self._write(records, version, at)
                self.entries = sum(record.indexed for record in records)
            except OSError:
                self.entries = _ids_in(_read(self._index_path) or b"", self._namespace)
                raise

    def _write(self, records: list[Record], version: int, at: str) -> None:
        new = version != self._version
        cache_there = _signature(self._ledger.path) == self._cache_seen
        index_there = self._index_seen is not None and _signature(self._index_path) == self._index_seen
        if not new and ((index_there and cache_there) or not records):
            return  # an index that somebody made by hand stays, as long as there is nothing to put in its place
        _sort(records, self._ledger.kinds)
        if new or (not cache_there and self._cache_seen is not None):
            self._write_cache(records, version, at)
        self._cache_seen = _signature(self._ledger.path)
        self._write_index(records, plain=not new)
        self._index_seen = _signature(self._index_path)

    def _write_cache(self, records: list[Record], version: int, at: str) -> None:
        rendered = {record.source_id: self._render(record) for record in records}
        files.replace(self._ledger.path, cache.render((each.line for each in rendered.values()), at))
        self._rendered = rendered
        self._version = version

    def _write_index(self, records: list[Record], *, plain: bool) -> None:
        """`plain`: nothing has changed that we know of, so that the index is probably there, and as it should be."""
        there = _read(self._index_path)
        if plain and there == "\n".join(_entry_as_it_is(self._namespace, records)).encode():
            return  # which tells in a tenth of the time; descriptions were made harmless when they came
        index = "\n".join(entry for record in records if (entry := self._render(record).entry)).encode()
        if there != index:
            files.replace(self._index_path, index)

    def _render(self, record: Record) -> _Rendered:
        kept = self._rendered.get(record.source_id)
        if kept is None or kept.record is not record:
            kept = _Rendered(record, cache.line(record), _entry(self._namespace, record))
            self._rendered[record.source_id] = kept
        return kept


def _sort(records: list[Record], kinds: Iterable[AnyKind]) -> None:
    """Kind by kind, each by id."""
    by_kind: dict[type[Record], dict[str, Record]] = {kind.record: {} for kind in kinds}
    for record in records:
        by_kind[type(record)][record.source_id] = record
    records[:] = [each[source_id] for each in by_kind.values() for source_id in sorted(each)]


def _entry(namespace: str, record: Record) -> str:
    if not record.indexed:
        return ""
    return index_file.render([IndexEntry(f"{namespace}:{record.source_id}", record.summary_text)])


def _entry_as_it_is(namespace: str, records: Iterable[Record]) -> Iterable[str]:
    return (f"{namespace}:{record.source_id}\n{record.summary_text}\n" for record in records if record.indexed)


def _ids_in(index: bytes, namespace: str) -> int:
    return sum(line.startswith(f"{namespace}:".encode()) for line in index.splitlines())


def _signature(path: Path) -> Signature | None:
    try:
        return confined.signature(os.stat(path))  # noqa: PTH116 (as services.storage.confined has it)
    except OSError:
        return None


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
