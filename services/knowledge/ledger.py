"""What is known about every source, in memory: the cache file's records, and what has become of them since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from services.knowledge import cache
from services.knowledge.cache import Record
from services.storage import in_thread


@dataclass(frozen=True, slots=True)
class Unfit:
    """A file that is no source, as it was when that was found out."""

    size_bytes: int
    mtime_ns: int
    reason: str


class Ledger:
    """A fold over the records that one update after another brings. One writer: the update that is running."""

    def __init__(self, path: Path) -> None:
        """`path`: the cache file. It is read by `load`, and written by somebody else (sinks.knowledge)."""
        self.path = path
        self._records: dict[str, Record] = {}
        self._descriptions: dict[tuple[str, str], tuple[str, str]] | None = None
        """Content and summary key → whose description that is, and the description. None: nobody has asked yet."""
        self.version = 0
        """Changes with every change, so that a writer can tell whether there is anything new."""
        self.loaded = False
        self.unfit: dict[str, Unfit] = {}
        """Files that were read and left out, so that they need not be read at every tick. Not kept on disk."""

    @property
    def records(self) -> Mapping[str, Record]:
        return MappingProxyType(self._records)

    async def load(self) -> None:
        """Start from the cache file; a missing one is an empty cache.

        Raises:
            OSError: the file is there and cannot be read. It is then no empty cache: that would cost every description.
        """
        found = await in_thread(_read, self.path)
        self._records.update(found)
        self.loaded = True

    def put(self, record: Record) -> None:
        source_id = record.source_id
        before = self._records.get(source_id)
        if before == record:
            return
        if before is not None:
            self._unlearn(before)
        self._records[source_id] = record
        self._learn(record)
        self.version += 1

    def drop(self, source_id: str) -> None:
        self._unlearn(self._records.pop(source_id))
        self.version += 1

    def description(self, content_hash: str, key: str) -> str | None:
        """The description that some source with this content has already, from the same prompt and model."""
        if self._descriptions is None:
            self._descriptions = {}
            for record in self._records.values():
                self._learn(record)
        found = self._descriptions.get((content_hash, key))
        return None if found is None else found[1]

    def _learn(self, record: Record) -> None:
        if self._descriptions is not None and record.described:
            known = (record.content_hash, record.summary_key)
            self._descriptions.setdefault(known, (record.source_id, record.summary_text))

    def _unlearn(self, record: Record) -> None:
        if self._descriptions is None:
            return
        known = (record.content_hash, record.summary_key)
        owner = self._descriptions.get(known)
        if owner is not None and owner[0] == record.source_id:
            del self._descriptions[known]


def _read(path: Path) -> dict[str, Record]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    return cache.parse(data, str(path))
