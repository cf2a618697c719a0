"""What a question is answered from: pieces of documents, with the lines that matter in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.documents.results import Citation


@dataclass(frozen=True, slots=True)
class CitedPassage:
    doc_id: str
    source: str
    """The file's name."""
    text: str
    """What is shown, lines as they are in the file."""
    line_start: int
    line_end: int
    """Of what is shown."""
    matched: tuple[int, ...]
    """The lines that answer, or that were found; the rest is around them."""
    chunk_id: str
    score: float | None = None
    """Cosine, or 1 for what was found by an exact condition; None when only words were compared."""
    rank_score: float = 0.0
    relevance: float | None = None
    """What confidence is made of: the score, else the share of the question's words."""
    timestamp: str | None = None
    severity: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    numbered: bool = True
    """Whether its lines are records, told apart by their numbers."""
    exact: bool = False
    held: tuple[str, ...] = ()
    """Of a leaf of a configuration file: `key = value`."""

    @property
    def citation(self) -> Citation:
        first, last = (min(self.matched), max(self.matched)) if self.matched else (self.line_start, self.line_end)
        if self.matched and last - first + 1 > len(self.matched):
            last = first  # scattered: the first of them
        return Citation(self.doc_id, self.source, first, last, self.timestamp, self.chunk_id)

    def lines(self) -> list[tuple[int, str]]:
        return list(enumerate(self.text.split("\n"), start=self.line_start))


@dataclass(frozen=True, slots=True)
class Retrieved:
    passages: tuple[CitedPassage, ...] = ()
    facts: str = ""
    """Computed over whole files: counts and groups."""
    count: int | None = None
    notes: tuple[str, ...] = ()
    """What the reader has to know: what was not there, what was dropped."""
    missing: str = ""
    """Why nothing was found, where that is certain: `line 900 is beyond the end of app.log, which has 80 lines`."""
    exact: bool = False
    """Whether everything was found by exact conditions."""
    searched: tuple[str, ...] = ()
    """The files that were searched in vain, where that were not all."""
