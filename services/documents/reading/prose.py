"""Plain text: passages of equal size that overlap a little; topic files: their conversations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from services.documents.units import Chunk, ChunkType
from services.team import MARKER

CHARS_PER_TOKEN = 4
PASSAGE_CHARS = 512 * CHARS_PER_TOKEN
OVERLAP_CHARS = 50 * CHARS_PER_TOKEN
_SUPERSEDED = "superseded: "
_FIELDS = ("id", "timestamp", "said_at", "conversation_id")


class _Piece(NamedTuple):
    text: str
    line: int


def prose_chunks(lines: Sequence[str], first_line: int = 1) -> list[Chunk]:
    """Cut at line ends; a line that is too long for that, at blanks."""
    chunks: list[Chunk] = []
    waiting: list[_Piece] = []
    size = fresh = 0
    for piece in _pieces(lines, first_line):
        if waiting and size + len(piece.text) > PASSAGE_CHARS and fresh:
            chunks.append(_chunk(len(chunks), waiting))
            waiting = _overlap(waiting)
            size, fresh = sum(len(kept.text) + 1 for kept in waiting), 0
        waiting.append(piece)
        size += len(piece.text) + 1
        fresh += bool(piece.text.strip())
    if fresh:
        chunks.append(_chunk(len(chunks), waiting))
    return chunks


def _pieces(lines: Sequence[str], first_line: int) -> Iterator[_Piece]:
    for number, line in enumerate(lines, start=first_line):
        rest = line
        while len(rest) > PASSAGE_CHARS:
            at = rest.rfind(" ", PASSAGE_CHARS // 2, PASSAGE_CHARS) + 1 or PASSAGE_CHARS
            yield _Piece(rest[:at], number)
            rest = rest[at:]
        yield _Piece(rest, number)


def _overlap(pieces: list[_Piece]) -> list[_Piece]:
    kept: list[_Piece] = []
    size = 0
    for piece in reversed(pieces):
        size += len(piece.text) + 1
        if size > OVERLAP_CHARS:
            break
        kept.insert(0, piece)
    return kept


def _chunk(index: int, pieces: list[_Piece]) -> Chunk:
    text = pieces[0].text
    for before, piece in pairwise(pieces):
        text += piece.text if piece.line == before.line else f"\n{piece.text}"
    return Chunk(index, ChunkType.TEXT, text, pieces[0].line, pieces[-1].line)


def topic_chunks(lines: Sequence[str], topic: str) -> list[Chunk]:
    """A chunk for each block; its header lines become metadata. Text before the first block is left out."""
    starts = [at for at, line in enumerate(lines) if line == MARKER]
    chunks: list[Chunk] = []
    for start, stop in pairwise([*starts, len(lines)]):
        chunk = _block(lines, start + 1, stop, len(chunks), topic)
        if chunk:
            chunks.append(chunk)
    return chunks


def _block(lines: Sequence[str], first: int, stop: int, index: int, topic: str) -> Chunk | None:
    fields: dict[str, str] = {"topic": topic}
    # Turns begin with a capital letter, and further lines of one with a blank: header lines are neither. What no longer
    # holds is read with the turns.
    while first < stop and lines[first][:1].islower() and not lines[first].startswith(_SUPERSEDED):
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
