"""What a question asks for, read without a model: file, line, time, level, names, how many (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from services.documents.asking import (
    aggregates,
    files_named,
    levels,
    line_spans,
    mentions,
    positions,
    spelling,
    times,
    wording,
)
from services.documents.asking.aggregates import Aggregate, Grouping
from services.documents.asking.levels import Severity
from services.documents.asking.mentions import NameMention
from services.documents.asking.positions import Position
from services.documents.asking.times import Period
from services.documents.store.protocol import Document
from services.search import STOP_WORDS

_WORD = re.compile(r"[\w.:/@-]*\w")
_AT_THAT_TIME = re.compile(r"(?<!and )\bthen\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Plan:
    question: str
    doc_ids: tuple[str, ...] = ()
    """The documents that the question names."""
    file: str | None = None
    """The files as the question names them."""
    unknown_file: str | None = None
    """A file that the question names and that is not there."""
    lines: tuple[int, int] | None = None
    period: Period | None = None
    severity: Severity | None = None
    mentions: tuple[NameMention, ...] = ()
    position: Position | None = None
    wanted: int = 1
    """Of "the last three errors": 3."""
    which: int | None = None
    """Of "the second error": 2, counted from the end where negative."""
    steps: int = 1
    """Of "the 5 lines after it": 5."""
    by_time: bool = False
    """Whether first and last are told by time, as in "the earliest", and not by place."""
    aggregate: Aggregate | None = None
    grouping: Grouping = field(default_factory=Grouping)
    unit: str | None = None
    """What is counted, where every file of a kind has it: `lines`, `rows`, `columns`, `keys`."""
    anchor: Position | None = None
    """Of "what came after the first error": from where `position` is to be taken."""
    writers: tuple[str, ...] = ()
    """Names that may be those of components."""
    counts_lines: bool = False
    words: tuple[str, ...] = ()
    """What else the question speaks of."""
    text: str = ""
    """The question without the file's name: what is searched for."""

    @property
    def identifiers(self) -> tuple[str, ...]:
        return tuple(mention.text for mention in self.mentions)

    @property
    def goes_beside(self) -> bool:
        return self.position in {Position.NEXT, Position.PREVIOUS}

    @property
    def asks_for_end(self) -> bool:
        return self.position in {Position.FIRST, Position.LAST}

    @property
    def level_counts(self) -> bool:
        """A plain "errors" is a condition where entries are counted, listed, put in order or taken from a time, and
        where nothing else is asked for.
        """
        level = self.severity
        if level is None or level.hard:
            return level is not None
        return bool(self.position or self.aggregate or self.period) or not (self.words or self.mentions)

    def as_dict(self) -> dict[str, object]:
        """For logs and tests: what was understood, without empty parts."""
        facts: dict[str, object] = {
            "file": self.file,
            "unknown_file": self.unknown_file,
            "lines": list(self.lines) if self.lines else None,
            "time": self.period.text if self.period else None,
            "severity": list(self.severity.levels) if self.severity else None,
            "identifiers": list(self.identifiers),
            "position": self.position.value if self.position else None,
            "aggregate": self.aggregate.value if self.aggregate else None,
            "grouped_by": list(self.grouping.columns),
            "words": list(self.words),
        }
        return {name: value for name, value in facts.items() if value}


def plan(question: str, documents: Sequence[Document]) -> Plan:
    """`documents`: those that may be searched, for the names of files."""
    files = files_named.find(question, documents)
    searched = " ".join(files.rest.split())
    grouping, rest = aggregates.grouping(spelling.mended(files.rest))
    lines = line_spans.find(rest)
    rest = line_spans.without(rest) if lines else rest
    steps, rest = positions.without_steps(rest)
    period = times.find(rest)
    if period is not None:
        # "10:15, what happened then": the time has been named; "and then" asks for what followed.
        rest = _AT_THAT_TIME.sub(" ", rest.replace(period.text, " ", 1))
    which = positions.which_of_them(rest)
    level, rest = levels.find(rest)
    found, rest = mentions.find(rest)
    many = aggregates.aggregate(rest)
    if grouping.columns and many is not Aggregate.COUNT:
        many = Aggregate.GROUPS
    return Plan(
        question=question,
        doc_ids=files.doc_ids,
        file=" and ".join(files.named) or None,
        unknown_file=files.unknown,
        lines=lines,
        period=period,
        severity=level,
        mentions=found,
        position=positions.position(rest) or _counted_from(which),
        wanted=positions.how_many_wanted(rest),
        which=which,
        steps=steps,
        by_time=positions.by_time(rest),
        aggregate=many,
        grouping=grouping,
        unit=aggregates.unit(rest),
        anchor=positions.first_or_last(rest),
        writers=aggregates.writers(question),
        counts_lines=aggregates.counts_lines(question),
        words=_content(rest, files_named.stem_words(documents)),
        text=searched or question,
    )


def _counted_from(which: int | None) -> Position | None:
    if which is None:
        return None
    return Position.FIRST if which > 0 else Position.LAST


def _content(rest: str, names: frozenset[str]) -> tuple[str, ...]:
    """`names`: words that say which file is meant."""
    words = _WORD.findall(wording.content(aggregates.without_groups(rest)))
    kept = [word for word in words if word.casefold() not in STOP_WORDS | names and len(word) > 1]
    return tuple(dict.fromkeys(kept))
