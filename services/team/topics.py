"""Topics: what the team has said, by subject, and the grammar of their files (SPEC 6, "Decisions").

    --- QA ---
    id: qa_20260201_031057.000000
    timestamp: 2026-02-01T03:10:57.000000Z
    User: My node shows GPU not detected
    Team: Run this:
      nvidia-smi
                        (an empty line ends the block)

Turns stand as in the archive (services.team.archive), so that no text can imitate structure. Blocks are in order of the
time when the last message in them was written. A turn that a forgotten person wrote is left out.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from services.team import qa_ids
from services.team.archive import MARKER, REMOVED, Malformed, Pair, PairTurn, Speaker, parse_turns, render_turns
from services.team.decisions import Decision
from services.team.placement import Placement

_HEADERS = ("id", "timestamp")


@dataclass(frozen=True, slots=True)
class Block:
    """A pair as a topic file has it."""

    id: str
    timestamp: str
    turns: tuple[PairTurn, ...]


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    pairs: tuple[Pair, ...]
    """In order of `place`."""
    _blocks: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The text of each pair, where somebody has rendered it already."""

    def __post_init__(self) -> None:
        if len(self._blocks) != len(self.pairs):
            object.__setattr__(self, "_blocks", tuple(render(block_of(pair)) for pair in self.pairs))

    @property
    def text(self) -> str:
        """The topic file."""
        return "".join(self._blocks)

    @property
    def length(self) -> int:
        """Of the text, in characters."""
        return sum(map(len, self._blocks))

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


def place(pair: Pair) -> tuple[Decimal, Decimal]:
    """By which pairs are ordered: when the conversation took place, then when it was captured."""
    return qa_ids.timestamp_instant(pair.said_at), qa_ids.instant(pair.id)


def teaches(pair: Pair) -> bool:
    """Whether anything of the team is left in it."""
    return any(turn.speaker is Speaker.TEAM and turn.text != REMOVED for turn in pair.turns)


def block_of(pair: Pair) -> Block:
    return Block(pair.id, pair.timestamp, tuple(turn for turn in pair.turns if turn.text != REMOVED))


def render(block: Block) -> str:
    """One block, with the empty line that ends it; blocks follow each other without anything between."""
    lines = [MARKER, f"id: {block.id}", f"timestamp: {block.timestamp}", *render_turns(block.turns)]
    return "\n".join(lines) + "\n\n"


def parse(text: str) -> list[Block]:
    """The blocks of a topic file.

    Raises:
        Malformed: it is no topic file; the message says in which line.
    """
    pieces = text.split("\n\n")
    if pieces.pop():
        raise Malformed(f"line {text.count(chr(10)) + 1}: the last block has no empty line that ends it")
    found: list[Block] = []
    line = 1
    for piece in pieces:
        lines = piece.split("\n")
        try:
            found.append(_block(lines))
        except Malformed as error:
            raise Malformed(f"line {line}: {error}") from None
        line += len(lines) + 1
    return found


def fold(pairs: Iterable[Pair], decisions: Iterable[Decision]) -> Mapping[str, Topic]:
    """Tier 2: the topics that follow from archive and decisions, by name. Pure.

    Pairs that teach nothing any more, and topics that hold no pair, are left out.
    """
    placement = Placement()
    for decision in decisions:
        placement.apply(decision)
    held: dict[str, dict[Decimal, Pair]] = {}
    for pair in pairs:
        key = qa_ids.instant(pair.id)
        name = placement.topic_of.get(key)
        if name is not None and teaches(pair):
            held.setdefault(name, {}).setdefault(key, pair)
    return {name: Topic(name, tuple(sorted(held[name].values(), key=place))) for name in sorted(held)}


def _block(lines: list[str]) -> Block:
    if lines[0] != MARKER:
        raise Malformed(f"{lines[0][:40]!r} where {MARKER!r} should be")
    values: list[str] = []
    for name, line in zip(_HEADERS, lines[1:], strict=False):
        if not line.startswith(f"{name}: "):
            raise Malformed(f"{line[:40]!r} where {name!r} should be")
        values.append(line[len(name) + 2 :])
    if len(values) < len(_HEADERS):
        raise Malformed("headers are missing")
    pair_id, timestamp = values
    try:
        if qa_ids.instant(pair_id) != qa_ids.timestamp_instant(timestamp):
            raise Malformed(f"id {pair_id} and timestamp {timestamp} differ")
    except qa_ids.BadId as error:
        raise Malformed(str(error)) from None
    return Block(pair_id, timestamp, parse_turns(lines[1 + len(_HEADERS) :]))
