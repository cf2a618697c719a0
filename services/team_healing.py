"""Topic files brought to what archive and decisions say, at a start (SPEC 6, "Decisions"; Pitfalls 14 and 48).

A file that differs is either older, since the program was cut off before it wrote it, and is then written; or it was
changed by somebody, and is kept beside as `<topic>.txt.rejected`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

from services import files, qa_ids
from services.archive import Malformed
from services.archive_reader import ArchiveReader
from services.decisions import Decision
from services.placement import Placement
from services.topic_names import is_topic_name
from services.topics import Topic, parse, place

log = logging.getLogger(__name__)

REJECTED = ".rejected"


class Earlier:
    """What topics held after each of the latest decisions."""

    def __init__(self, reader: ArchiveReader, filed: Sequence[Decision], since: Sequence[Decision]) -> None:
        """`filed`: decisions that topic files are known to contain; `since`: those after them."""
        self._reader, self._filed, self._since = reader, filed, since

    def held(self, topic: str, text: str) -> bool:
        """Whether this was the text of a topic at one of those times."""
        try:
            blocks = parse(text)
        except Malformed:
            return False
        keys = frozenset(qa_ids.instant(block.id) for block in blocks)
        if not self._since or keys not in self._states(topic):
            return False
        pairs = self._reader.find(keys).values()
        return Topic(topic, tuple(sorted(pairs, key=place))).text == text

    def _states(self, topic: str) -> Iterator[frozenset[Decimal]]:
        placement = Placement()
        held: set[Decimal] = set()
        for decision in self._filed:
            _take(placement, decision, topic, held)
        yield frozenset(held)
        for decision in self._since:
            _take(placement, decision, topic, held)
            yield frozenset(held)


def _take(placement: Placement, decision: Decision, topic: str, held: set[Decimal]) -> None:
    for move in placement.apply(decision):
        if move.source == topic:
            held.discard(move.key)
        if move.target == topic:
            held.add(move.key)


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
