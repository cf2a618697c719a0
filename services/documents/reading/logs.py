"""Logs: a record of each line, windows of lines, and line patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from services.documents.reading import log_lines
from services.documents.reading.log_fields import ALARMING, SEVERITIES
from services.documents.reading.log_lines import MOST_FOLLOWING, Line, says_what_broke
from services.documents.reading.times import digits_needed, seconds_of, written
from services.documents.units import Chunk, ChunkType, LineRecord

WINDOW_LINES = 20
GAP_SECONDS = 5 * 60
FEW_WINDOWS = 200  # with so many or more, windows are not embedded: that would take too long
MOST_PATTERNS = 2000
MOST_LISTED = 1000  # so many lines of a pattern are listed
MOST_COMPONENTS = 20
_MASKED_CHARS = 400  # what comes later in a line does not make it another pattern
_VARIABLE = re.compile(
    r"-?(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|0[xX][0-9a-fA-F]+"
    r"|\b(?:[a-f]+[0-9]|[0-9]+[a-f])[0-9a-f]*\b"
    r"|[0-9]+(?:[.,:-]?[0-9]+)*)"
)


def read_log(lines: Sequence[str]) -> tuple[list[Chunk], list[LineRecord]]:
    """Its chunks and a record of each line. Windows go first, in the order of the file, then the patterns."""
    read = log_lines.read(lines)
    records = _records(lines, read)
    spans = list(windows(read))
    embedded = len(spans) < FEW_WINDOWS
    chunks = [
        _chunk(Chunk(index, ChunkType.WINDOW, "\n".join(lines[a - 1 : b]), a, b, embedded=embedded), records[a - 1 : b])
        for index, (a, b) in enumerate(spans)
    ]
    for numbers in _patterns(lines, read, records):
        first, count = numbers[0], str(len(numbers))
        listed = tuple(numbers[:MOST_LISTED])
        chunk = Chunk(
            len(chunks), ChunkType.PATTERN, lines[first - 1], first, first, lines=listed, extra={"count": count}
        )
        chunks.append(_chunk(chunk, [records[number - 1] for number in numbers]))
    return chunks, records


def windows(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """First and last line of each window. Every line is in exactly one."""
    start, last = 0, None
    for first, after in _entries(lines):
        stamp = lines[first].stamp
        seconds = last if stamp is None else seconds_of(stamp.moment)
        gap = seconds is not None and last is not None and abs(seconds - last) > GAP_SECONDS
        if start < first and (gap or after - start > WINDOW_LINES):
            yield start + 1, first
            start = first
        last = seconds
    if start < len(lines):
        yield start + 1, len(lines)


def _entries(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Start and end of each entry: a line, and those that continue it."""
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


def mask(line: str) -> str:
    """Found child 6725 in slot 10 → Found child # in slot #."""
    return _VARIABLE.sub("#", line[:_MASKED_CHARS])


def _patterns(lines: Sequence[str], read: Sequence[Line], records: Sequence[LineRecord]) -> list[list[int]]:
    """The lines of each pattern: alarming ones first, then rare ones."""
    shapes: dict[str, list[int]] = {}
    for number, (text, line) in enumerate(zip(lines, read, strict=True), start=1):
        if text.strip() and (not line.in_trace or says_what_broke(text)):
            shapes.setdefault(mask(text), []).append(number)
    ranked = sorted(shapes.values(), key=lambda of: (records[of[0] - 1].severity not in ALARMING, len(of), of[0]))
    return ranked[:MOST_PATTERNS]


def _chunk(chunk: Chunk, records: Sequence[LineRecord]) -> Chunk:
    """`chunk`, with what the `records` of its lines have in common."""
    times = [record.ts_utc for record in records if record.ts_utc]
    found = {record.severity for record in records}
    components = dict.fromkeys(record.component for record in records if record.component)
    return replace(
        chunk,
        ts_min=min(times, default=None),
        ts_max=max(times, default=None),
        severities=tuple(severity for severity in SEVERITIES if severity in found),
        components=tuple(components)[:MOST_COMPONENTS],
    )
