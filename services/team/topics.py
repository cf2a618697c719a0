"""Topics: what the team has said, by subject, and the grammar of their files (SPEC 6, "Decisions").

    --- QA ---
    id: qa_20260201_031057.000000
    timestamp: 2026-02-01T03:10:57.000000Z
    User: My node shows GPU not detected
    Team: Run this:
      nvidia-smi
                        (an empty line ends the block)

Turns are written as in the archive (services.team.archive), so no text can imitate structure. Blocks are ordered by the
time of their last message. Turns of forgotten people are omitted.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from decimal import Decimal

from services.team import qa_ids
from services.team.archive import MARKER, REMOVED, Pair, PairTurn, Speaker, parse_block, render_block, without
from services.team.qa_ids import Malformed

_HEADERS = ("id", "timestamp")


@dataclass(frozen=True, slots=True)
class TopicBlock:
    """A pair in a topic file."""

    id: str
    timestamp: str
    turns: tuple[PairTurn, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    """Pairs, in order of `place`. `_blocks` is the text of each, if it is known already."""

    name: str
    pairs: tuple[Pair, ...]
    _blocks: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self._blocks) != len(self.pairs):
            object.__setattr__(self, "_blocks", tuple(render(block_of(pair)) for pair in self.pairs))

    @property
    def text(self) -> str:
        """The content of the topic file."""
        return "".join(self._blocks)

    @property
    def file(self) -> str:
        return f"{self.name}.txt"

    def joined_by(self, pair: Pair) -> Topic:
        at = bisect.bisect(self.pairs, place(pair), key=place)
        block = render(block_of(pair))
        pairs, blocks = self.pairs, self._blocks
        return Topic(self.name, (*pairs[:at], pair, *pairs[at:]), (*blocks[:at], block, *blocks[at:]))

    def without(self, pair_id: str) -> Topic:
        at = next(at for at, pair in enumerate(self.pairs) if pair.id == pair_id)
        return Topic(self.name, self.pairs[:at] + self.pairs[at + 1 :], self._blocks[:at] + self._blocks[at + 1 :])

    def quotes(self, author_id: int) -> bool:
        """Whether it holds anything that this person wrote."""
        return any(pair != without(pair, author_id) for pair in self.pairs if author_id in pair.author_ids)


def place(pair: Pair) -> tuple[Decimal, Decimal]:
    """The order of pairs: by when the conversation took place, then by when it was captured."""
    return qa_ids.timestamp_instant(pair.said_at), pair.key


def teaches(pair: Pair) -> bool:
    """Whether any text of the team is left in it."""
    return any(turn.speaker is Speaker.TEAM and turn.text != REMOVED for turn in pair.turns)


def block_of(pair: Pair) -> TopicBlock:
    return TopicBlock(pair.id, pair.timestamp, tuple(turn for turn in pair.turns if turn.text not in {"", REMOVED}))


def render(block: TopicBlock) -> str:
    """One block, including the empty line that ends it; blocks directly follow each other."""
    return render_block(_HEADERS, (block.id, block.timestamp), block.turns)


def parse(text: str) -> list[TopicBlock]:
    """The blocks of a topic file. Raises Malformed: it is none; the message names the line."""
    *pieces, rest = text.split("\n\n")
    if rest:
        raise Malformed(f"line {text.count(chr(10)) + 1}: the last block has no empty line that ends it")
    found: list[TopicBlock] = []
    number = 1
    for marker, *lines in (piece.split("\n") for piece in pieces):
        if marker != MARKER:
            raise Malformed(f"line {number}: {marker[:40]!r} where {MARKER!r} should be")
        try:
            (pair_id, timestamp), turns = parse_block(_HEADERS, lines)
            qa_ids.check(pair_id, timestamp)
        except Malformed as error:
            raise Malformed(f"line {number}: {error}") from None
        found.append(TopicBlock(pair_id, timestamp, turns))
        number += len(lines) + 2
    return found
