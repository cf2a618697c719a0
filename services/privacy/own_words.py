"""Tells what only a person has written from what they repeated: prompts, documentation, what others said before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.privacy.text_match import LineMatch, without_lines
from services.team import Pair, archive


@dataclass(slots=True)
class OwnWords:
    """The lines that tell whose a text is, where somebody else may have written it.

    Attributes:
        archives: raw archives, in which others may have said something before the person.
        published: gives what anybody can read. Is called when there are texts that were not compared with it yet.
    """

    user_id: int
    archives: Sequence[Path] = ()
    published: Callable[[], Iterable[str]] = tuple
    _compared: set[str] = field(default_factory=set[str], init=False)
    _repeated: set[str] = field(default_factory=set[str], init=False)

    def of(self, texts: Iterable[str]) -> list[str]:
        """Return texts of the person without the lines that they repeated. Blocking. Raises OSError."""
        texts = list(texts)
        if new := {*texts} - self._compared:
            lines = LineMatch(new)
            self._repeated.update(line for text in self.published() for line in lines.found_in(text))
            self._repeated |= self._said_before(lines)
            self._compared |= new
        return without_lines(texts, self._repeated)

    def _said_before(self, lines: LineMatch) -> set[str]:
        """Return the lines that the archives hold of others, before the person said them there."""
        own, others = set[str](), set[str]()
        for path in (path for raw in self.archives for path in sorted(raw.glob("*.txt"))):
            for pair in (pair for _, pair in blocks_in(path) if isinstance(pair, Pair)):
                for author_id, turn in zip(pair.author_ids, pair.turns, strict=True):
                    if author_id == self.user_id:
                        own |= lines.found_in(turn.text)
                    elif author_id != archive.UNKNOWN:
                        others |= lines.found_in(turn.text) - own
        return others


def blocks_in(path: Path) -> list[tuple[str, Pair | archive.Malformed]]:
    """The blocks of a file of an archive. Bytes that are no UTF-8 come back as they were."""
    return archive.blocks(path.read_bytes().decode("utf-8", "surrogateescape"))
