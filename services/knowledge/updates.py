"""What flows through an update of the knowledge base: sources with something to do, and what became of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from services.knowledge.cache import Record
from services.telemetry import number_of


@dataclass(frozen=True, slots=True)
class SourcePaths:
    """Where sources are and what may be read of them."""

    sources_dir: Path
    links_file: Path
    web_cache_dir: Path
    max_source_bytes: int


@dataclass(frozen=True, slots=True)
class Discovered:
    """The first event of an update: how much there is, and how much of it may have changed."""

    files: int
    pages: int
    suspects: int
    due: int
    pending: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """A file that is new, or no longer has the size or time it had: it is to be read."""

    name: str
    size_bytes: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class DuePage:
    """A page to ask for."""

    url: str
    record: Record | None
    conditional: bool
    """Whether "not modified" would be an answer: not when the text of last time is lost."""


class How(StrEnum):
    """How a source came to be settled."""

    DESCRIBED = "described"
    REUSED = "reused"
    """Its content had a description already, under another name."""
    SAME = "same"
    """Only times or sizes are new."""
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing is left to do for this source now."""

    record: Record
    how: How


@dataclass(frozen=True, slots=True)
class Pending:
    """The text is known, and its description is missing or out of date."""

    record: Record


@dataclass(frozen=True, slots=True)
class Purged:
    """Gone for so long that nothing is kept of it any more."""

    source_id: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is no source."""

    name: str
    reason: str
    suspect: Suspect | None = None
    """The file as it was read, where that is how it was found out."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that should have worked."""

    about: str
    phase: str
    message: str
    fatal: bool = False
    """Whether all sources of its kind are affected."""


UpdateEvent = Discovered | Suspect | DuePage | Settled | Pending | Purged | LeftOut | Trouble


@dataclass(slots=True)
class UpdateReport:
    """Adds up the events of one update."""

    files: int = 0
    pages: int = 0
    settled: Counter[How] = field(default_factory=Counter[How])
    left_out: int = 0
    troubles: list[Trouble] = field(default_factory=list[Trouble])
    descriptions: int = 0
    """How many entries the index has afterwards."""

    def add(self, event: UpdateEvent) -> None:
        match event:
            case Discovered(files=files, pages=pages):
                self.files, self.pages = files, pages
            case Settled(how=how):
                self.settled[how] += 1
            case LeftOut():
                self.left_out += 1
            case Trouble():
                self.troubles.append(event)
            case _:
                pass

    @property
    def text(self) -> str:
        """One line for people."""
        settled = self.settled
        return (
            f"{number_of(self.files, 'file')}, {number_of(self.pages, 'page')}: {settled[How.DESCRIBED]} described, "
            f"{settled[How.REUSED]} recognised, {settled[How.GONE]} gone, {self.left_out} left out, "
            f"{number_of(len(self.troubles), 'failure')}; "
            f"the index has {number_of(self.descriptions, 'entry', 'entries')}"
        )
