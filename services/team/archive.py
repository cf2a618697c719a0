"""The block format of the raw archive (SPEC 6, "Raw archive"): reading and writing.

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

The further lines of a message are indented by two spaces. So only structure begins in column 0, and no text can imitate
it (Pitfall 5). The only empty line of a block is its last, so a block truncated by a crash is recognised (Pitfall 48).

Blocks of an earlier program have neither `said_at` nor `author_ids`, perhaps `msg_` before each message id, and
perhaps one turn for several messages of a person. They are read as if the conversation had ended when it was captured,
with `UNKNOWN` authors and empty turns for the other messages; written again, they have the present form.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from itertools import pairwise

from services.team import qa_ids
from services.team.qa_ids import Malformed

log = logging.getLogger(__name__)

MARKER = "--- QA ---"
REMOVED = "[removed]"  # replaces the text of a person who asked to be forgotten; topic files omit such turns

UNKNOWN = 0  # the author of what an earlier program has stored; the id of nobody

_MARKER_LINE = re.compile(rf"^\ufeff?{MARKER}\r?$", re.MULTILINE)
_INDENT = "  "
_HEADERS = ("id", "timestamp", "said_at", "conversation_id", "message_ids", "author_ids")
_EARLIER_HEADERS = ("id", "timestamp", "conversation_id", "message_ids")
_END_OF_TIME = "9999-"  # time stamps strictly increase, so a block from their last year would end all capture
_CONVERSATION = re.compile(r"(?:thread|reply)_[0-9]+")
_SNOWFLAKES = re.compile(r"[0-9]{1,20}(?:, [0-9]{1,20})*")


class Speaker(StrEnum):
    USER = "User"
    TEAM = "Team"


@dataclass(frozen=True, slots=True)
class PairTurn:
    """One message of a pair. Line ends are normalised to line feeds, and lone surrogates replaced."""

    speaker: Speaker
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", encodable(self.text.replace("\r\n", "\n").replace("\r", "\n")))


@dataclass(frozen=True, slots=True)
class Pair:
    """One captured conversation. Raises Malformed if the fields are inconsistent.

    Attributes:
        timestamp: of the capture; RFC 3339, UTC, with `Z`, as `said_at`, that of the last message.
        conversation_id: `thread_<thread id>`, or `reply_<id of the first message of the chain>`.
        message_ids, author_ids, turns: one each for every message, in the same order.
        key: the instant of its id, by which pairs are told apart and ordered.
    """

    id: str
    timestamp: str
    said_at: str
    conversation_id: str
    message_ids: tuple[int, ...]
    author_ids: tuple[int, ...]
    turns: tuple[PairTurn, ...]
    key: Decimal = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        qa_ids.timestamp_instant(self.said_at)
        object.__setattr__(self, "key", qa_ids.check(self.id, self.timestamp))
        if self.timestamp.startswith(_END_OF_TIME):
            raise Malformed(f"timestamp {self.timestamp} leaves no room for later ones")
        if not _CONVERSATION.fullmatch(self.conversation_id):
            raise Malformed(f"conversation_id {self.conversation_id!r} is neither thread_<id> nor reply_<id>")
        counts = len(self.message_ids), len(self.author_ids), len(self.turns)
        if not counts[0] or len(set(counts)) > 1:
            raise Malformed("{} message ids, {} author ids and {} turns".format(*counts))


def encodable(text: str) -> str:
    """Replace each half of a surrogate pair, which UTF-8 cannot hold, by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def render(pair: Pair) -> str:
    """One block, including the empty line that ends it; blocks directly follow each other."""
    message_ids, author_ids = (", ".join(map(str, ids)) for ids in (pair.message_ids, pair.author_ids))
    values = pair.id, pair.timestamp, pair.said_at, pair.conversation_id, message_ids, author_ids
    return render_block(_HEADERS, values, pair.turns)


def render_block(headers: Iterable[str], values: Iterable[str], turns: Iterable[PairTurn]) -> str:
    """Write a block with the given headers and values."""
    head = (f"{name}: {value}" for name, value in zip(headers, values, strict=True))
    said = (f"{turn.speaker}: {turn.text}".replace("\n", "\n" + _INDENT) for turn in turns)
    return "\n".join([MARKER, *head, *said]) + "\n\n"


def parse_block(headers: Sequence[str], lines: Sequence[str]) -> tuple[list[str], tuple[PairTurn, ...]]:
    """Read the lines between marker and empty line: returns the values of `headers`, and the turns. Raises Malformed."""
    values: list[str] = []
    for name, line in zip(headers, lines, strict=False):
        if not line.startswith(f"{name}: "):
            raise Malformed(f"{line[:40]!r} where {name!r} should be")
        values.append(line[len(name) + 2 :])
    if len(values) < len(headers):
        raise Malformed("headers are missing")
    said: list[tuple[Speaker, list[str]]] = []
    for line in lines[len(headers) :]:
        name, colon, text = line.partition(": ")
        if line.startswith(_INDENT) and said:
            said[-1][1].append(line[len(_INDENT) :])
        elif colon and name in set(Speaker):
            said.append((Speaker(name), [text]))
        else:
            raise Malformed(f"{line[:40]!r} is neither a turn nor the rest of one")
    return values, tuple(PairTurn(speaker, "\n".join(texts)) for speaker, texts in said)


def part_of(pair: Pair, messages: AbstractSet[int] | None) -> Pair | None:
    """Reduce a pair to the given messages; None if it has none of them. `messages=None` keeps all."""
    if messages is None:
        return pair
    kept = [at for at, message_id in enumerate(pair.message_ids) if message_id in messages]
    if not kept:
        return None
    return replace(
        pair,
        message_ids=tuple(pair.message_ids[at] for at in kept),
        author_ids=tuple(pair.author_ids[at] for at in kept),
        turns=tuple(pair.turns[at] for at in kept),
    )


def without(pair: Pair, author_id: int) -> Pair:
    """Return the pair with the texts of one person replaced by `REMOVED`."""
    turns = tuple(
        replace(turn, text=REMOVED) if author == author_id else turn
        for author, turn in zip(pair.author_ids, pair.turns, strict=True)
    )
    return replace(pair, turns=turns)


def sound_length(data: bytes) -> int:
    """Return the length in bytes of the complete blocks in an archive file; the rest was truncated by a crash. Never
    splits a character.
    """
    # A line feed ends the last line of a block, and another is its empty line. "\r\n": saved by an editor elsewhere.
    return max((data.rfind(end) + len(end) for end in (b"\n\n", b"\n\r\n") if end in data), default=0)


def parse(
    text: str, file: str = "archive", first_line: int = 1, warn: Callable[[str], object] = log.warning
) -> list[Pair]:
    """Read the pairs in `text`, which begins at `first_line` of `file`. Malformed and truncated blocks are skipped and
    reported to `warn` with their line.
    """
    whole, end, truncated = text.replace("\r\n", "\n").rpartition("\n\n")
    line = first_line
    pairs: list[Pair] = []
    for piece, pair in blocks(whole + end):
        if isinstance(pair, Pair):
            pairs.append(pair)
        elif text_before := piece.lstrip("\ufeff\n"):
            blank = piece[: -len(text_before)].count("\n")
            warn(f"{file}:{line + blank}: {pair}; skipped")
        line += piece.count("\n")
    if truncated:
        warn(f"{file}:{line}: a block without its final empty line, truncated by a crash; skipped")
    return pairs


def blocks(text: str) -> list[tuple[str, Pair | Malformed]]:
    """Split `text` into blocks, each with its pair or with what is wrong with it. Text before the first marker counts
    as a block.
    """
    starts = [0, *(found.start() for found in _MARKER_LINE.finditer(text)), len(text)]
    pieces = [text[start:stop] for start, stop in pairwise(starts) if start < stop]
    return [(piece, _pair_in(piece)) for piece in pieces]


def _pair_in(piece: str) -> Pair | Malformed:
    first, *lines = piece.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n").split("\n")
    blank = next((at for at, line in enumerate(lines) if not line), len(lines))
    if first != MARKER:
        return Malformed(f"text before the first {MARKER!r}")
    if blank == len(lines):
        return Malformed("not ended by an empty line")
    if any(lines[blank:]):
        return Malformed("an empty line within the block")
    try:
        if _is_earlier(lines):
            return _earlier(lines[:blank])
        values, turns = parse_block(_HEADERS, lines[:blank])
        pair_id, timestamp, said_at, conversation_id, *ids = values
        message_ids, author_ids = map(_snowflakes, ids)
        return Pair(pair_id, timestamp, said_at, conversation_id, message_ids, author_ids, turns)
    except Malformed as error:
        return error


def _is_earlier(lines: Sequence[str]) -> bool:
    """True if these lines, which follow the marker, were written by an earlier program."""
    return any(line.startswith("conversation_id: ") for line in lines[2:3])


def _earlier(lines: Sequence[str]) -> Pair:
    (pair_id, timestamp, conversation_id, ids), turns = parse_block(_EARLIER_HEADERS, lines)
    message_ids = _snowflakes(ids.replace("msg_", ""))
    silent = [PairTurn(turn.speaker, "") for turn in turns[-1:]] * (len(message_ids) - len(turns))
    authors = (UNKNOWN,) * len(message_ids)
    return Pair(pair_id, timestamp, timestamp, conversation_id, message_ids, authors, (*turns, *silent))


def _snowflakes(text: str) -> tuple[int, ...]:
    if not _SNOWFLAKES.fullmatch(text):
        raise Malformed(f"{text[:40]!r} is no list of ids")
    ids = tuple(map(int, text.split(", ")))
    if max(ids) >> 64:
        raise Malformed(f"{max(ids)} is no id: it has more than 64 bits")
    return ids
