"""The files of the knowledge base: the cache, and the index that is made from it; and the log of its updates."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from clock import now, rfc3339
from model.source_ids import DOCUMENT, document_id
from services.knowledge import (
    HIDDEN,
    NOT_CHOSEN,
    NOT_DOCUMENTATION,
    AnyKind,
    IndexEntry,
    LeftOut,
    Record,
    SourceRecords,
    Trouble,
    UpdateEvent,
    UpdateReport,
    UpdateResult,
    cache,
    index_file,
)
from services.storage import Signature, confined, files, in_thread
from services.telemetry import number_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Rendered:
    """A record's text in the two files, cached, as most records do not change from one write to the next. `entry` is
    empty for a source that is not in the index.
    """

    record: Record
    line: str
    entry: str


class _WrittenFile:
    """A file that this program writes, and perhaps somebody else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last_signature: Signature | None = None
        """The signature at the last `note_signature`; None: there was none."""

    @property
    def is_unchanged(self) -> bool:
        return self._last_signature is not None and not self.was_edited

    @property
    def was_edited(self) -> bool:
        """True if somebody has changed or deleted it since the last `note_signature`."""
        return self._last_signature is not None and confined.read_signature(self.path) != self._last_signature

    def note_signature(self) -> None:
        """Note that it has the right content now."""
        self._last_signature = confined.read_signature(self.path)


class CacheAndIndex:
    """Writes both files from the source records, the cache first. The index is made from the cache, so that the next
    call repairs it after a crash between the two. `entry_count`: the number of sources in the index when it was last
    saved.
    """

    def __init__(self, source_records: SourceRecords, index_path: Path) -> None:
        self.entry_count = 0
        self._source_records = source_records
        self._cache, self._index = _WrittenFile(source_records.path), _WrittenFile(index_path)
        self._rendered: dict[str, _Rendered] = {}
        self._version = 0
        """The version of the records that was written last; at first that of the cache file."""
        self._writing = threading.Lock()
        """A cancelled `save` leaves its thread running while another one may begin."""

    async def save(self, _due: object = None) -> list[Trouble]:
        """Bring both files up to date; a file that is up to date is not written. `_due`: any item that says it is time.

        If a file cannot be written, return that as a trouble; the next call tries again.
        """
        source_records = self._source_records
        if not source_records.loaded:
            return []
        version = source_records.version
        # Records never change: the thread sees them as they are now, although the update goes on.
        records = list(source_records.by_id.values())
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
                self.entry_count = sum(record.is_indexed for record in records)
            except OSError:
                self.entry_count = _count_entries(_read(self._index.path) or b"")
                raise

    def _write(self, records: list[Record], version: int, at: str) -> None:
        has_new_records = version != self._version
        must_write_cache = has_new_records or self._cache.was_edited
        if not must_write_cache and self._index.is_unchanged:
            return
        if not has_new_records and not records:
            return  # an index that was made by hand stays
        _sort(records, self._source_records.kinds)
        if must_write_cache:
            self._write_cache(records, version, at)
        self._cache.note_signature()
        self._write_index(records, has_new_records=has_new_records)
        self._index.note_signature()

    def _write_cache(self, records: list[Record], version: int, at: str) -> None:
        rendered = {record.source_id: self._render(record) for record in records}
        files.replace(self._cache.path, cache.render((each.line for each in rendered.values()), at))
        self._rendered = rendered
        self._version = version

    def _write_index(self, records: list[Record], *, has_new_records: bool) -> None:
        written = _read(self._index.path)
        # Without a change the index is probably right, and to render it only to compare costs ten times as much. Stored
        # descriptions are harmless already, so joining them mostly gives the same text.
        if not has_new_records and written == "\n".join(_unescaped_entries(records)).encode():
            return
        index = "\n".join(entry for record in records if (entry := self._render(record).entry)).encode()
        if written != index:
            files.replace(self._index.path, index)

    def _render(self, record: Record) -> _Rendered:
        kept = self._rendered.get(record.source_id)
        if kept is None or kept.record is not record:
            kept = _Rendered(record, cache.render_line(record), _entry(record))
            self._rendered[record.source_id] = kept
        return kept


def _sort(records: list[Record], kinds: Iterable[AnyKind]) -> None:
    """Sort records by kind, and within each kind by id."""
    by_kind: dict[type[Record], dict[str, Record]] = {kind.record: {} for kind in kinds}
    for record in records:
        by_kind[type(record)][record.source_id] = record
    records[:] = [each[source_id] for each in by_kind.values() for source_id in sorted(each)]


def _entry(record: Record) -> str:
    entries = [IndexEntry(document_id(record.source_id), record.summary_text)] if record.is_indexed else []
    return index_file.render(entries)


def _unescaped_entries(records: Iterable[Record]) -> Iterable[str]:
    return (f"{document_id(record.source_id)}\n{record.summary_text}\n" for record in records if record.is_indexed)


def _count_entries(index: bytes) -> int:
    return sum(line.startswith(DOCUMENT.encode()) for line in index.splitlines())


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


MAX_NAMED = 5
"""Troubles of one step that are named by default; others are counted, so that an outage does not flood the log."""
MAX_NAMED_LEFT_OUT = 20
"""The same for sources that are left out: there may be photographs in the folder, or in the list."""


_PASSED_OVER = NOT_DOCUMENTATION | {NOT_CHOSEN}
_EXPECTED = {HIDDEN: logging.INFO, **dict.fromkeys(_PASSED_OVER, logging.DEBUG)}
"""The reasons for which sources are regularly left out, with the level of the log line."""


class KnowledgeLog:
    """Logs troubles and left-out sources when they are new, and each update's counts if anything happened."""

    def __init__(self, most_named: int = MAX_NAMED) -> None:
        self._most_named = most_named
        self._reported: set[tuple[str, str]] = set()
        """The names and messages that were reported in the previous update."""
        self._present: set[tuple[str, str]] = set()
        self._named: Counter[str] = Counter()
        self._left_out = 0
        self._passed_over = 0

    def report(self, event: UpdateEvent | UpdateReport) -> None:
        match event:
            case LeftOut(name=name, reason=reason) if self._is_new(name, reason):
                self._left_out += reason not in _EXPECTED
                self._passed_over += reason in _PASSED_OVER
                level = logging.WARNING if self._left_out <= MAX_NAMED_LEFT_OUT else logging.DEBUG
                log.log(_EXPECTED.get(reason, level), "%s is left out: %s", name, reason)
            case Trouble(about=about, step=step, message=message) if self._is_new(about, message):
                self._named[step] += 1
                level = logging.WARNING if self._named[step] <= self._most_named else logging.DEBUG
                log.log(logging.ERROR if event.fatal else level, "%s: %s: %s", step, about, message)
            case UpdateReport():
                self._finish(event)
            case _:
                pass

    def _is_new(self, name: str, message: str) -> bool:
        key = (name, message)
        new = key not in self._reported and key not in self._present
        self._present.add(key)
        return new

    def _finish(self, report: UpdateReport) -> None:
        for step, count in self._named.items():
            if count > self._most_named:
                log.warning("%s: %d further failures", step, count - self._most_named)
        if self._left_out > MAX_NAMED_LEFT_OUT:
            log.warning("%d more are left out; the level DEBUG names them", self._left_out - MAX_NAMED_LEFT_OUT)
        if self._passed_over:
            passed = number_of(self._passed_over, "file")
            log.info("%s passed over: images, style sheets, scripts and the like, or as kb.exclude says", passed)
        happened = any(report.results[how] for how in UpdateResult) or self._present != self._reported
        log.log(logging.INFO if happened else logging.DEBUG, "knowledge base: %s", report.text)
        self._reported, self._present, self._named = self._present, set(), Counter()
        self._left_out = self._passed_over = 0
