"""A file that was read: its kind, the chunks that it was cut into, and its lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class DocumentKind(StrEnum):
    LOG = "log"
    ERROR_REPORT = "error report"
    METRICS = "metrics"
    CONFIG = "config"
    MARKDOWN = "markdown"
    CODE = "code"
    TEXT = "text"


LEVELS = {
    "FATAL": "fatal panic emerg emergency",
    "CRITICAL": "critical crit alert",
    "ERROR": "error err severe",
    "WARN": "warn warning",
    "INFO": "info notice",
    "DEBUG": "debug",
    "TRACE": "trace",
}
"""The levels of log entries, the worst first, with their words in logs and in questions."""
LEVEL_LETTERS = {"F": "FATAL", "E": "ERROR", "W": "WARN", "I": "INFO", "D": "DEBUG", "V": "TRACE"}  # klog, logcat


class ChunkType(StrEnum):
    WINDOW = "window"  # consecutive lines of a log: searched by words, and shown
    PATTERN = "pattern"  # log lines of one shape: searched by meaning
    LEAF = "leaf"  # one value of a configuration file, as `a b c = value`; shown with the section around it
    SECTION = "section"  # of a configuration file or of prose
    CODE = "code"
    ROWS = "rows"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One searchable piece of a document. Lines count from 1, both ends included."""

    index: int  # within its document, from 0
    type: ChunkType
    text: str  # the lines as they are, below the path of keys of a section (`heading`) or the header of a table
    line_start: int
    line_end: int
    embedded: bool = True  # True if it is searched by meaning; all chunks are searched by words
    lines: tuple[int, ...] = ()
    """The lines of a pattern, only the first of very many; for statistics of a table, the lines that stand out."""
    ts_min: str | None = None
    ts_max: str | None = None
    severities: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    heading: str | None = None  # the path of headings, ` › ` between them
    key_path: str | None = None  # `services.db.restart`: of a leaf its own path, of a section the parent's
    symbol: str | None = None
    section_index: int | None = None  # of a leaf: the index of the chunk that holds the section around it
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    """More metadata: `title`, `category`, `tags` and other fields of front matter; `topic`, `date`, `id`,
    `conversation_id`; `columns`; `rows`, their number; `count`, the number of lines of a pattern; `computed`, for
    statistics of the columns of a table, which are no lines of the file."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """One line of a log."""

    line_no: int
    text_offset: int  # its position in the document's text, in characters
    ts: str | None = None  # as written
    ts_utc: str | None = None
    """RFC 3339: with `Z` if the zone is known, else the writer's local time. Times of one file sort as text: all have
    equally many digits of fraction. Year 0000 if the log leaves the year out (0001 after the turn of the year),
    0000-00-01 if the day is not known either (the next day after midnight)."""
    local_time: str | None = None  # the writer's day and time of day, `2031-03-04T10:00:00.100000`; years as above
    severity: str | None = None  # FATAL, CRITICAL, ERROR, WARN, INFO, DEBUG or TRACE
    component: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document, decoded, redacted and cut into chunks, ready for a store."""

    kind: DocumentKind
    sha256: str  # of the bytes as they came, in hex
    size: int
    text: str  # redacted, with `\n` line ends; line n of it is line n of the file
    n_lines: int
    chunks: tuple[Chunk, ...]
    lines: tuple[LineRecord, ...] = ()
    """One for each line of a log or error report, and for each line of a table with a time. A line that continues
    another, as in a stack trace, has no time and severity, so that counts are of entries."""
    redactions: Mapping[str, int] = field(default_factory=dict[str, int])  # the number of redactions by label
    flags: tuple[str, ...] = ()
    """Notes for the reader: `undecodable bytes were replaced`, `12 lines were cut at 4000 characters`."""
