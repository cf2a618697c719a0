"""The parts of a prepared document: records of its lines, and the chunks that are searched."""

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
    TEAM_TOPIC = "team topic"


class ChunkType(StrEnum):
    WINDOW = "window"  # consecutive lines of a log: searched by words, and what is shown
    PATTERN = "pattern"  # one shape of log line, for all lines that have it: searched by meaning
    LEAF = "leaf"  # one value of a configuration file, as `a b c = value`; the section around it is what is shown
    SECTION = "section"  # of a configuration file or of prose
    CODE = "code"
    ROWS = "rows"
    TEXT = "text"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One searchable piece. Lines count from 1, both ends included."""

    index: int  # within its document, from 0
    type: ChunkType
    text: str  # the lines as they are, below the path of keys of a section (`heading`) or the header of a table
    line_start: int
    line_end: int
    embedded: bool = True  # whether it is searched by meaning; by words it always is
    lines: tuple[int, ...] = ()
    """Of a pattern: the lines that have it, the first ones of very many. Of what was computed over a table: the lines
    that stand out."""
    ts_min: str | None = None
    ts_max: str | None = None
    severities: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    heading: str | None = None  # the path of headings, ` › ` between them
    key_path: str | None = None  # `services.db.restart`: of a leaf its own, of a section its parent's
    symbol: str | None = None
    shown_by: int | None = None  # of a leaf: the index of the section that is shown for it
    extra: Mapping[str, str] = field(default_factory=dict[str, str])
    """More metadata: `title`, `category`, `tags` and other fields of front matter; `topic`, `date`, `id`,
    `conversation_id`; `columns`, and `rows`, how many there are; of a pattern `count`, how many lines have it; of a
    text that is in no line, because it says what the columns of a table hold, `computed`."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """One line of a log."""

    line_no: int
    text_offset: int  # where it begins in the document's text, in characters
    ts: str | None = None  # as written
    ts_utc: str | None = None
    """RFC 3339: with `Z` where the zone is known, without where it is the writer's local time. Sorts as text among
    its like: in one file all have equally many digits of fraction. Year 0000 where the log leaves the year out (0001
    after the turn of the year), 0000-01-01 where it leaves the day out as well (the next day after midnight)."""
    severity: str | None = None  # FATAL, CRITICAL, ERROR, WARN, INFO, DEBUG or TRACE
    component: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A document, decoded, redacted and cut up, ready for a store."""

    filename: str
    kind: DocumentKind
    confidence: float
    sha256: str  # of the bytes as they came, in hex
    size: int
    text: str  # redacted, with `\n` line ends; line n of it is line n of the file
    n_lines: int
    chunks: tuple[Chunk, ...]
    lines: tuple[LineRecord, ...] = ()
    """Of logs and error reports one for each line, of tables one for each that has a time. What only continues a line,
    as a stack trace does, has neither time nor severity of its own, so that entries are counted, not lines."""
    redactions: Mapping[str, int] = field(default_factory=dict[str, int])  # how often each label was put in
    flags: tuple[str, ...] = ()
    """What the reader has to know: `undecodable bytes were replaced`, `12 lines were cut at 4000 characters`."""
