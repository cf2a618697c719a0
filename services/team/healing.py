"""Topic files brought to what archive and decisions say, at a start (SPEC 6, "Decisions"; Pitfalls 14 and 48).

A file that differs is either older, since the program was cut off before it wrote it, and is then written; or it was
changed by somebody, and is kept beside as `<topic>.txt.rejected`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from services.knowledge import is_topic_name
from services.storage import files
from services.team import qa_ids
from services.team.archive import Malformed, Pair
from services.team.archive_reader import ArchiveReader
from services.team.decisions import Decision
from services.team.placement import Placement
from services.team.topics import Block, Topic, block_of, parse, place, render, teaches

log = logging.getLogger(__name__)

REJECTED = ".rejected"


class Earlier:
    """What topics held after each of the latest decisions."""

    def __init__(self, reader: ArchiveReader, filed: Sequence[Decision], since: Sequence[Decision]) -> None:
        """`filed`: decisions that topic files are known to contain; `since`: those after them."""
        self._reader, self._filed, self._since = reader, filed, since

    def held(self, topic: str, text: str) -> bool:
        """Whether this was the text of a topic at one of those times, as far as the archive can tell: before people
        were forgotten, perhaps.
        """
        try:
            blocks = {qa_ids.instant(block.id): block for block in parse(text)}
        except Malformed:
            return False
        return any(self._is(blocks, text, state) for state in self._states(topic) if blocks.keys() <= state)

    def _is(self, blocks: Mapping[Decimal, Block], text: str, state: frozenset[Decimal]) -> bool:
        pairs = self._reader.find(state)
        if any(teaches(pair) for key, pair in pairs.items() if key not in blocks):
            return False
        order = [key for key in sorted(pairs, key=lambda key: place(pairs[key])) if key in blocks]
        return (
            "".join(map(render, blocks.values())) == text
            and order == [key for key in blocks if key in pairs]
            and all(_once_was(blocks[key], pairs[key]) for key in order)
        )

    def _states(self, topic: str) -> Iterator[frozenset[Decimal]]:
        placement = Placement()
        held: set[Decimal] = set()
        for decision in self._filed:
            _take(placement, decision, topic, held)
        yield frozenset(held)
        for decision in self._since:
            if _take(placement, decision, topic, held):
                yield frozenset(held)


def _take(placement: Placement, decision: Decision, topic: str, held: set[Decimal]) -> bool:
    """Whether it changed what the topic holds."""
    moves = [move for move in placement.apply(decision) if topic in {move.source, move.target}]
    for move in moves:
        if move.source == topic:
            held.discard(move.key)
        if move.target == topic:
            held.add(move.key)
    return bool(moves)


def _once_was(block: Block, pair: Pair) -> bool:
    """Whether this was the block of a pair before what a person wrote was taken out of it."""
    if (block.id, block.timestamp) != (pair.id, pair.timestamp):
        return False
    turns = iter(block.turns)
    kept = block_of(pair).turns
    return len(block.turns) <= len(pair.turns) and all(turn in turns for turn in kept)


def mend(folder: Path, topics: Mapping[str, Topic], earlier: Earlier | None) -> None:
    """Make the files of `folder` those of `topics`; without `earlier`, whatever stands there. Raises OSError."""
    files.clear_leftovers(folder)
    there = {path.stem: path for path in folder.glob("*.txt") if is_topic_name(path.stem)}
    for name in sorted({*there, *topics}):
        wanted = topics[name].text.encode() if name in topics else None
        path = folder / f"{name}.txt"
        if name in there:
            found = _content(path)
            if found is not None and found == wanted:
                continue
            ours = found is not None and (earlier is None or earlier.held(name, found.decode(errors="replace")))
            if not ours:
                aside = files.move_aside(path, REJECTED)
                log.warning(
                    "%s was changed by hand; its text was kept as %s. Topics are written from the archive: "
                    "correct them with --kb remove and --kb restore",
                    path,
                    aside.name,
                )
        if wanted is not None:
            files.replace(path, wanted)
        else:
            files.remove(path)


def _content(path: Path) -> bytes | None:
    """None for what is no ordinary file."""
    return path.read_bytes() if path.is_file() and not path.is_symlink() else None
