"""Topics: what the team has said, by subject, and the grammar of their files (SPEC 6, "Decisions").

    --- QA ---
    id: qa_20260201_031057.000000
    timestamp: 2026-02-01T03:10:57.000000Z
    said_at: 2026-02-01T03:09:41.120000Z
    User: My node shows GPU not detected
    Team: Run this:
      nvidia-smi
                        (an empty line ends the block)

Where several users wrote, `speakers: User A, Team (to User A), User B` before the turns names one for each of them.

Turns are written as in the archive (services.team.archive), so no text can imitate structure. Blocks are ordered by the
time of their last message. Turns of forgotten people are omitted. Files of the earlier form have no `said_at`.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile

from services.team import qa_ids
from services.team.archive import MARKER, REMOVED, Pair, PairTurn, Speaker, parse_block, render_block, without
from services.team.qa_ids import Malformed
from services.team.speakers import spoken

_HEADERS = ("id", "timestamp")
_MORE = ("said_at", "speakers")


@dataclass(frozen=True, slots=True)
class TopicBlock:
    """A pair in a topic file.

    Attributes:
        said_at: None in a file of the earlier form.
        speakers: a label for each turn, as `speakers.labels_of` gives them; empty where only one user wrote.
    """

    id: str
    timestamp: str
    said_at: str | None
    turns: tuple[PairTurn, ...]
    speakers: tuple[str, ...] = ()


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
    left = spoken(pair)
    labels = tuple(label for label, _ in left)
    several = any(label not in set(Speaker) for label in labels)
    return TopicBlock(pair.id, pair.timestamp, pair.said_at, tuple(turn for _, turn in left), labels if several else ())


def render(block: TopicBlock) -> str:
    """One block, including the empty line that ends it; blocks directly follow each other."""
    headers = {"id": block.id, "timestamp": block.timestamp}
    if block.said_at is not None:
        headers["said_at"] = block.said_at
    if block.speakers:
        headers["speakers"] = ", ".join(block.speakers)
    return render_block(headers, headers.values(), block.turns)


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
            found.append(_block_in(lines))
        except Malformed as error:
            raise Malformed(f"line {number}: {error}") from None
        number += len(lines) + 2
    return found


def _block_in(lines: Sequence[str]) -> TopicBlock:
    names = (line.partition(": ")[0] for line in lines[len(_HEADERS) :])
    more = tuple(takewhile(lambda name: name in _MORE, names))
    (pair_id, timestamp, *values), turns = parse_block((*_HEADERS, *more), lines)
    qa_ids.check(pair_id, timestamp)
    said = dict(zip(more, values, strict=True))
    said_at, speakers = said.get("said_at"), said.get("speakers")
    if said_at is not None:
        qa_ids.timestamp_instant(said_at)
    labels = tuple(speakers.split(", ")) if speakers else ()
    if labels and len(labels) != len(turns):
        raise Malformed(f"{len(labels)} speakers and {len(turns)} turns")
    return TopicBlock(pair_id, timestamp, said_at, turns, labels)
