"""Topics: what the team has said, by subject, and the format of their files (SPEC 6, "Decisions").

    --- QA ---
    id: qa_20260201_031057.000000
    timestamp: 2026-02-01T03:10:57.000000Z
    said_at: 2026-02-01T03:09:41.120000Z
    superseded: 2026-03-01T12:00:00.000000Z the drivers are part of the image now
    User: My node shows GPU not detected
    Team: Run this:
      nvidia-smi
                        (an empty line ends the block)

Each later correction in part has a line `superseded`. Where several users wrote, there is a line before these with a
label for each turn: `speakers: User A, Team (to User A), User B`.

Turns are written as in the archive (services.team.archive), so no text can imitate structure. Blocks are ordered by the
time of their last message. Turns of forgotten people are omitted. Files of the earlier form have no `said_at`.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import takewhile
from typing import NamedTuple

from services.team import qa_ids
from services.team.archive import MARKER, REMOVED, Pair, PairTurn, Speaker, parse_block, render_block, without
from services.team.qa_ids import Malformed
from services.team.speakers import spoken

_HEADERS = ("id", "timestamp")
_MORE = ("said_at", "speakers", "superseded")


class Correction(NamedTuple):
    """The correction of part of a pair by a later conversation: when that took place, and what no longer holds."""

    said_at: str
    what: str


@dataclass(frozen=True, slots=True)
class TopicBlock:
    """A pair in a topic file.

    Attributes:
        said_at: None in a file of the earlier form.
        speakers: a label for each turn, as `speakers.labels_of` gives them; empty where only one user wrote.
        corrections: those in force, oldest first.
    """

    id: str
    timestamp: str
    said_at: str | None
    turns: tuple[PairTurn, ...]
    speakers: tuple[str, ...] = ()
    corrections: tuple[Correction, ...] = ()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic: its pairs, or pieces of pairs, in order of `place`, and the corrections of some, by key. `_blocks` holds
    the text of each pair, if it is known already.
    """

    name: str
    pairs: tuple[Pair, ...]
    corrections: Mapping[Decimal, tuple[Correction, ...]] = field(default_factory=dict[Decimal, tuple[Correction, ...]])
    _blocks: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if len(self._blocks) != len(self.pairs):
            blocks = tuple(render(block_of(pair, self.corrections.get(pair.key, ()))) for pair in self.pairs)
            object.__setattr__(self, "_blocks", blocks)

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
        return replace(self, pairs=(*pairs[:at], pair, *pairs[at:]), _blocks=(*blocks[:at], block, *blocks[at:]))

    def without(self, pair_id: str) -> Topic:
        at = next(at for at, pair in enumerate(self.pairs) if pair.id == pair_id)
        pairs, blocks = self.pairs, self._blocks
        left = {key: each for key, each in self.corrections.items() if key != pairs[at].key}
        return Topic(self.name, pairs[:at] + pairs[at + 1 :], left, blocks[:at] + blocks[at + 1 :])

    def corrected(self, pair: Pair, corrections: tuple[Correction, ...]) -> Topic:
        """Return the topic with these corrections of a pair, in place of those that it had."""
        known = {key: each for key, each in self.corrections.items() if key != pair.key}
        if corrections:
            known[pair.key] = corrections
        at = next(at for at, each in enumerate(self.pairs) if each.key == pair.key)
        block = render(block_of(self.pairs[at], corrections))
        return Topic(self.name, self.pairs, known, (*self._blocks[:at], block, *self._blocks[at + 1 :]))

    def holds(self, key: Decimal) -> bool:
        return any(pair.key == key for pair in reversed(self.pairs))  # the newest are asked about

    def quotes(self, author_id: int) -> bool:
        """True if the topic holds anything that this person wrote."""
        return any(pair != without(pair, author_id) for pair in self.pairs if author_id in pair.author_ids)


def place(pair: Pair) -> tuple[Decimal, Decimal]:
    """The sort key of pairs: when the conversation took place, then when it was captured."""
    return qa_ids.timestamp_instant(pair.said_at), pair.key


def teaches(pair: Pair) -> bool:
    """True if any text of the team is left in the pair."""
    return any(turn.speaker is Speaker.TEAM and turn.text != REMOVED for turn in pair.turns)


def is_exchange(pair: Pair) -> bool:
    """True if both sides have text left in the pair."""
    return {turn.speaker for turn in pair.turns if turn.text != REMOVED} == set(Speaker)


def block_of(pair: Pair, corrections: tuple[Correction, ...] = ()) -> TopicBlock:
    left = spoken(pair)
    labels = tuple(label for label, _ in left)
    several = any(label not in set(Speaker) for label in labels)
    turns = tuple(turn for _, turn in left)
    return TopicBlock(pair.id, pair.timestamp, pair.said_at, turns, labels if several else (), corrections)


def render(block: TopicBlock) -> str:
    """One block, including the empty line that ends it; blocks directly follow each other."""
    headers = [("id", block.id), ("timestamp", block.timestamp)]
    if block.said_at is not None:
        headers.append(("said_at", block.said_at))
    if block.speakers:
        headers.append(("speakers", ", ".join(block.speakers)))
    headers += [("superseded", " ".join(each)) for each in block.corrections]
    return render_block((name for name, _ in headers), (value for _, value in headers), block.turns)


def parse(text: str) -> list[TopicBlock]:
    """Read the blocks of a topic file. Raises Malformed, with the line: it is no topic file."""
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
    superseded = (value.partition(" ") for name, value in zip(more, values, strict=True) if name == "superseded")
    corrections = tuple(Correction(when, what) for when, _, what in superseded)
    for when in (*filter(None, [said_at]), *(each.said_at for each in corrections)):
        qa_ids.timestamp_instant(when)
    labels = tuple(speakers.split(", ")) if speakers else ()
    if labels and len(labels) != len(turns):
        raise Malformed(f"{len(labels)} speakers and {len(turns)} turns")
    return TopicBlock(pair_id, timestamp, said_at, turns, labels, corrections)
