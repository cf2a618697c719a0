"""The grammar of the raw archive (SPEC 6, "Raw archive"), read and written side by side.

    --- QA ---
    id: qa_20260201_031057.000000
    timestamp: 2026-02-01T03:10:57.000000Z
    said_at: 2026-02-01T03:09:41.120000Z
    conversation_id: thread_1458745245675032710
    message_ids: 1458745245675032711, 1458745245675032712
    author_ids: 311, 902
    User: My node shows GPU not detected
    Team: Run this:
      nvidia-smi
                        (an empty line ends the block)

Every line of a message but its first is written behind two spaces. So only structure begins in column 0, and no text
can imitate it (Pitfall 5); and no block holds an empty line but the one that ends it, so that a block cut off by a
crash is always known (Pitfall 48).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from services.team import qa_ids

log = logging.getLogger(__name__)

MARKER = "--- QA ---"
REMOVED = "[removed]"
"""Stands for the text of a person who asked to be forgotten; topic files leave such turns out."""

_MARKER_LINE = re.compile(rf"^\ufeff?{MARKER}\r?$", re.MULTILINE)
_INDENT = "  "
_HEADERS = ("id", "timestamp", "said_at", "conversation_id", "message_ids", "author_ids")
_END_OF_TIME = "9999-"
"""Time stamps strictly increase, and there are none behind this year: a block from there would end all capture."""
_CONVERSATION = re.compile(r"(?:thread|reply)_[0-9]+")
_SNOWFLAKES = re.compile(r"[0-9]{1,20}(?:, [0-9]{1,20})*")


class Malformed(ValueError):
    """What is wrong with a block, or with the fields of a pair."""


class Speaker(StrEnum):
    USER = "User"
    TEAM = "Team"


@dataclass(frozen=True, slots=True)
class PairTurn:
    """One message. Line ends become line feeds; half of a surrogate pair, which UTF-8 cannot hold, U+FFFD."""

    speaker: Speaker
    text: str

    def __post_init__(self) -> None:
        text = self.text.replace("\r\n", "\n").replace("\r", "\n")
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        object.__setattr__(self, "text", whole)


@dataclass(frozen=True, slots=True)
class Pair:
    """One captured conversation. Times are RFC 3339, UTC, with `Z`.

    Raises:
        Malformed: the fields do not fit together, or cannot be written.
    """

    id: str
    timestamp: str
    """When it was captured."""
    said_at: str
    """When its last message was written."""
    conversation_id: str
    """`thread_<thread id>`, or `reply_<id of the first message of the chain>`."""
    message_ids: tuple[int, ...]
    author_ids: tuple[int, ...]
    turns: tuple[PairTurn, ...]
    """One for each message, in the same order."""

    def __post_init__(self) -> None:
        try:
            qa_ids.timestamp_instant(self.said_at)
            if qa_ids.instant(self.id) != qa_ids.timestamp_instant(self.timestamp):
                raise Malformed(f"id {self.id} and timestamp {self.timestamp} differ")
        except qa_ids.BadId as error:
            raise Malformed(str(error)) from None
        if self.timestamp.startswith(_END_OF_TIME):
            raise Malformed(f"timestamp {self.timestamp} leaves no room for later ones")
        if not _CONVERSATION.fullmatch(self.conversation_id):
            raise Malformed(f"conversation_id {self.conversation_id!r} is neither thread_<id> nor reply_<id>")
        counts = len(self.message_ids), len(self.author_ids), len(self.turns)
        if not counts[0] or len(set(counts)) > 1:
            raise Malformed("{} message ids, {} author ids and {} turns".format(*counts))


def render(pair: Pair) -> str:
    """One block, with the empty line that ends it; blocks follow each other without anything between."""
    values = (
        pair.id,
        pair.timestamp,
        pair.said_at,
        pair.conversation_id,
        ", ".join(map(str, pair.message_ids)),
        ", ".join(map(str, pair.author_ids)),
    )
    lines = [MARKER, *(f"{name}: {value}" for name, value in zip(_HEADERS, values, strict=True))]
    lines += render_turns(pair.turns)
    return "\n".join(lines) + "\n\n"


def render_turns(turns: Iterable[PairTurn]) -> list[str]:
    """The lines of turns, as they stand in the archive and in topic files."""
    return [line for turn in turns for line in f"{turn.speaker}: {turn.text}".replace("\n", "\n" + _INDENT).split("\n")]


def parse_turns(lines: Iterable[str]) -> tuple[PairTurn, ...]:
    """The turns in `lines`, the reverse of `render_turns`.

    Raises:
        Malformed: a line in column 0 opens no turn, or the first is a continuation.
    """
    said: list[tuple[Speaker, list[str]]] = []
    for line in lines:
        name, colon, text = line.partition(": ")
        if line.startswith(_INDENT) and said:
            said[-1][1].append(line[len(_INDENT) :])
        elif colon and name in set(Speaker):
            said.append((Speaker(name), [text]))
        else:
            raise Malformed(f"{line[:40]!r} is neither a turn nor the rest of one")
    return tuple(PairTurn(speaker, "\n".join(texts)) for speaker, texts in said)


def without(pair: Pair, author_id: int) -> Pair:
    """The pair with `REMOVED` in the place of what one person wrote."""
    turns = tuple(
        replace(turn, text=REMOVED) if author == author_id else turn
        for author, turn in zip(pair.author_ids, pair.turns, strict=True)
    )
    return replace(pair, turns=turns)


def sound_length(data: bytes) -> int:
    """How many bytes of an archive file are whole blocks; what follows is torn, the trace of a crash.

    Cut off at this length, a file is never split within a letter, and reading may go on from here later.
    """
    # A line feed ends the last line of a block, and another is its empty line. "\r\n": saved by an editor elsewhere.
    return max((data.rfind(end) + len(end) for end in (b"\n\n", b"\n\r\n") if end in data), default=0)


def parse(text: str, file: str = "archive", first_line: int = 1) -> list[Pair]:
    """The pairs in `text`, in its order. Blocks that are malformed or torn are reported with file and line.

    `first_line` is the number of the first line in `text`, where reading goes on in the middle of a file.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    whole, end, truncated = text.rpartition("\n\n")
    if truncated:
        line = first_line + (whole + end).count("\n")
        log.warning("%s:%d: a block without its ending empty line, torn by a crash; skipped", file, line)
    lines = [*whole.split("\n"), ""] if end else []
    starts = [at for at, line in enumerate(lines) if line == MARKER]
    bounds = [*starts, len(lines)]
    before = next((at for at, line in enumerate(lines[: bounds[0]]) if line), None)
    if before is not None:
        log.warning("%s:%d: text before the first %r; skipped", file, first_line + before, MARKER)
    pairs: list[Pair] = []
    for start, stop in pairwise(bounds):
        try:
            pairs.append(_block(lines[start + 1 : stop]))
        except Malformed as error:
            log.warning("%s:%d: %s; block skipped", file, first_line + start, error)
    return pairs


def blocks(text: str) -> list[tuple[str, Pair | None]]:
    """`text` cut into its blocks, letter for letter, each with its pair; None where a block is malformed or torn.

    Whatever stands before the first marker is a piece of its own. For whoever changes a block and nothing else.
    """
    starts = [0, *(found.start() for found in _MARKER_LINE.finditer(text)), len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(starts) if start < stop]
    return [(piece, _pair_in(piece)) for piece in pieces]


def _pair_in(piece: str) -> Pair | None:
    first, *lines = piece.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    if first != MARKER or lines[-2:] != ["", ""]:
        return None
    try:
        return _block(lines)
    except Malformed:
        return None


def _block(lines: list[str]) -> Pair:
    """The pair in what lies between a marker and the next one, or the end of the text."""
    blank = next((at for at, line in enumerate(lines) if not line), len(lines))
    if blank == len(lines):
        raise Malformed("not ended by an empty line")
    if any(lines[blank:]):
        raise Malformed("an empty line within the block")
    values: list[str] = []
    for name, line in zip(_HEADERS, lines[:blank], strict=False):
        if not line.startswith(f"{name}: "):
            raise Malformed(f"{line[:40]!r} where {name!r} should be")
        values.append(line[len(name) + 2 :])
    if len(values) < len(_HEADERS):
        raise Malformed("headers are missing")
    pair_id, timestamp, said_at, conversation_id, message_ids, author_ids = values
    turns = parse_turns(lines[len(_HEADERS) : blank])
    return Pair(pair_id, timestamp, said_at, conversation_id, _snowflakes(message_ids), _snowflakes(author_ids), turns)


def _snowflakes(text: str) -> tuple[int, ...]:
    if not _SNOWFLAKES.fullmatch(text):
        raise Malformed(f"{text[:40]!r} is no list of ids")
    return tuple(map(int, text.split(", ")))
