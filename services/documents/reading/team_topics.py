"""Topic files of the team's knowledge: one chunk for each conversation (DOCUMENT_QA 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from services.documents.units import Chunk, ChunkType
from services.team import MARKER

_FIELDS = ("id", "timestamp", "said_at", "conversation_id")


def topic_chunks(lines: Sequence[str], topic: str) -> list[Chunk]:
    """What is said in each block; its header lines become metadata. What stands before the first block is left out."""
    starts = [at for at, line in enumerate(lines) if line == MARKER]
    chunks: list[Chunk] = []
    for start, stop in pairwise([*starts, len(lines)]):
        chunk = _block(lines, start + 1, stop, len(chunks), topic)
        if chunk:
            chunks.append(chunk)
    return chunks


def _block(lines: Sequence[str], first: int, stop: int, index: int, topic: str) -> Chunk | None:
    fields: dict[str, str] = {"topic": topic}
    # Turns begin with a capital letter, and further lines of one with a blank: header lines are neither.
    while first < stop and lines[first][:1].islower():
        name, _, value = lines[first].partition(": ")
        if name in _FIELDS:
            fields[name] = value
        first += 1
    while stop > first and not lines[stop - 1]:
        stop -= 1
    if first == stop:
        return None
    when = fields.get("said_at") or fields.get("timestamp")
    if when:
        fields["date"] = when[:10]
    return Chunk(
        index,
        ChunkType.TOPIC,
        "\n".join(lines[first:stop]),
        first + 1,
        stop,
        ts_min=when,
        ts_max=when,
        heading=topic,
        extra=fields,
    )
