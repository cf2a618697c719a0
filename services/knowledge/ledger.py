"""The records of all sources in memory: those of the cache file, and their changes since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from services.knowledge import cache
from services.knowledge.cache import Record
from services.knowledge.source_kinds import AnyKind, R, SourceKind
from services.storage import in_thread


class SourceRecords:
    """The records of all sources. Has one writer: the update that is running.

    Attributes:
        path: the cache file. `load` reads it, `sinks.knowledge` writes it.
        kinds: the kinds of sources, in the order of the index.
        version: changes with every change, so that a writer can tell whether there is anything new.
    """

    def __init__(self, path: Path, kinds: Sequence[AnyKind]) -> None:
        self.path = path
        self.kinds = tuple(kinds)
        self.version = 0
        self.loaded = False
        self._records: dict[str, Record] = {}
        self._descriptions: dict[tuple[str, str], tuple[str, str]] | None = None
        """Content and summary key → whose description that is, and the description. None: not asked for yet."""

    @property
    def records(self) -> Mapping[str, Record]:
        return MappingProxyType(self._records)

    def records_of(self, kind: SourceKind[R]) -> dict[str, R]:
        return {source_id: record for source_id, record in self._records.items() if isinstance(record, kind.record)}

    def kind_of(self, record: Record) -> AnyKind:
        return next(kind for kind in self.kinds if isinstance(record, kind.record))

    async def load(self) -> None:
        """Start from the cache file; a missing one is an empty cache.

        Raises:
            OSError: the file is there and cannot be read. Taking it for empty would cost every description.
        """
        try:
            data = await in_thread(self.path.read_bytes)
        except FileNotFoundError:
            data = None
        if data is not None:
            types = [kind.record for kind in self.kinds]
            self._records.update(await in_thread(cache.parse, data, types, str(self.path)))
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
        """Return the description that another source with the same content already has from this prompt and model, or
        None.
        """
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
