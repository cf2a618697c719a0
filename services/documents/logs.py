"""Logs: a record of each line, windows of lines, and line patterns (DOCUMENT_QA 4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.documents import log_lines
from services.documents.log_lines import MOST_FOLLOWING, Line
from services.documents.patterns import patterns
from services.documents.spans import log_chunk
from services.documents.times import Gaps, digits_needed, written
from services.documents.units import Chunk, ChunkType, LineRecord

WINDOW_LINES = 20
GAP_SECONDS = 5 * 60
FEW_WINDOWS = 200
"""From so many on, windows are searched by words alone: embedding them would take too long."""


@dataclass(frozen=True, slots=True)
class Log:
    records: tuple[LineRecord, ...]
    chunks: tuple[Chunk, ...]


def read_log(lines: Sequence[str]) -> Log:
    """Windows first, in the order of the file; then the patterns, those first that matter most."""
    read = log_lines.read(lines)
    records = _records(lines, read)
    spans = list(windows(read))
    embedded = len(spans) < FEW_WINDOWS
    chunks = [
        log_chunk(index, ChunkType.WINDOW, "\n".join(lines[a - 1 : b]), a, b, records[a - 1 : b], embedded=embedded)
        for index, (a, b) in enumerate(spans)
    ]
    chunks += patterns(lines, records, [line.in_trace for line in read], first_index=len(chunks))
    return Log(tuple(records), tuple(chunks))


def windows(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """First and last line of each window. Every line is in exactly one."""
    gaps = Gaps(GAP_SECONDS)
    start = 0
    for first, after in _entries(lines):
        stamp = lines[first].stamp
        gap = stamp is not None and gaps.before(stamp.moment)
        if start < first and (gap or after - start > WINDOW_LINES):
            yield start + 1, first
            start = first
    if start < len(lines):
        yield start + 1, len(lines)


def _entries(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Each line that begins something, with the lines that go on with it: from, and up to."""
    first = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or not lines[at].continues or at - first >= MOST_FOLLOWING:
            yield first, at
            first = at


def _records(lines: Sequence[str], read: Sequence[Line]) -> list[LineRecord]:
    digits = digits_needed([line.stamp for line in read])
    records: list[LineRecord] = []
    offset = 0
    for number, (text, line) in enumerate(zip(lines, read, strict=True), start=1):
        stamp = line.stamp
        ts = line.ts or (text[stamp.start : stamp.end] if stamp else None)
        utc = written(stamp, digits) if stamp else None
        records.append(LineRecord(number, offset, ts, utc, line.severity, line.component))
        offset += len(text) + 1
    return records
