"""Logs: a record of each line, windows of lines, and line patterns (DOCUMENT_QA 4.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.documents.reading import log_lines
from services.documents.reading.log_fields import ALARMING, SEVERITIES
from services.documents.reading.log_lines import MOST_FOLLOWING, Line, says_what_broke
from services.documents.reading.times import Gaps, digits_needed, written
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


MOST_PATTERNS = 2000
MOST_LISTED = 1000
"""So many lines of a pattern are listed."""
_MASKED_CHARS = 400
"""What comes later in a line does not make it another pattern."""

_VARIABLE = re.compile(
    r"-?(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|0[xX][0-9a-fA-F]+"
    r"|\b(?:[a-f]+[0-9]|[0-9]+[a-f])[0-9a-f]*\b"
    r"|[0-9]+(?:[.,:-]?[0-9]+)*)"
)


def mask(line: str) -> str:
    """Found child 6725 in slot 10 → Found child # in slot #."""
    return _VARIABLE.sub("#", line[:_MASKED_CHARS])


def patterns(
    lines: Sequence[str], records: Sequence[LineRecord], in_trace: Sequence[bool], *, first_index: int
) -> list[Chunk]:
    """One chunk for each shape, at most 2,000: alarming ones first, of equals the rare ones."""
    shapes: dict[str, list[int]] = {}
    for number, text in enumerate(lines, start=1):
        if not text.strip() or (in_trace[number - 1] and not says_what_broke(text)):
            continue
        shapes.setdefault(mask(text), []).append(number)
    ranked = sorted(shapes.values(), key=lambda of: (records[of[0] - 1].severity not in ALARMING, len(of), of[0]))
    return [
        log_chunk(
            index,
            ChunkType.PATTERN,
            lines[of[0] - 1],
            of[0],
            of[0],
            [records[number - 1] for number in of],
            of[:MOST_LISTED],
            len(of),
        )
        for index, of in enumerate(ranked[:MOST_PATTERNS], start=first_index)
    ]


MOST_COMPONENTS = 20


def log_chunk(
    index: int,
    kind: ChunkType,
    text: str,
    first: int,
    last: int,
    records: Sequence[LineRecord],
    lines: Sequence[int] = (),
    count: int = 0,
    *,
    embedded: bool = True,
) -> Chunk:
    times = [record.ts_utc for record in records if record.ts_utc]
    found = {record.severity for record in records}
    components = dict.fromkeys(record.component for record in records if record.component)
    return Chunk(
        index,
        kind,
        text,
        first,
        last,
        embedded=embedded,
        lines=tuple(lines),
        ts_min=min(times, default=None),
        ts_max=max(times, default=None),
        severities=tuple(severity for severity in SEVERITIES if severity in found),
        components=tuple(components)[:MOST_COMPONENTS],
        extra={"count": str(count)} if count else {},
    )
