"""Chunks of a log: what the lines that they stand for have in common."""

from __future__ import annotations

from collections.abc import Sequence

from services.documents.severities import SEVERITIES
from services.documents.units import Chunk, ChunkType, LineRecord

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
