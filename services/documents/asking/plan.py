"""Reads a question without a model into a `Plan`: file, line, time, level, names, how many."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from services.documents.asking import files_named, grammar, levels, mentions, times
from services.documents.asking.grammar import SOME, Phrase, Reading
from services.documents.asking.levels import Severity
from services.documents.asking.mentions import NameMention
from services.documents.asking.times import Period
from services.documents.asking.vocabulary import COLUMNS, any_of, asks, asks_for_lines, mended, number_of
from services.documents.store.protocol import Document
from services.search import STOP_WORDS

_MOST_STEPS = 50
_MOST_DIGITS = 15  # a longer number is that of no line, and none that a store could compare
_UNITS = {
    "lines": "lines",
    "columns": "columns",
    "keys": "keys",
    "settings": "keys",
    "values": "keys",
    **dict.fromkeys(("rows", "records", "samples", "entries"), "rows"),
}
_UNIT = re.compile(rf"\s+(?:(?:of|the|all|data|different|config(?:uration)?)\s+)*({'|'.join(_UNITS)})\b", re.IGNORECASE)
_LINES_FOLLOW = re.compile(rf"\s+(?:{any_of('ENTRY')}|times|hits)\b", re.IGNORECASE)
_ASKS_ELSE = re.compile(r"\b(?:wh(?:ich|at|ere|en|o|y)|how)\b", re.IGNORECASE)
_MENTIONED = re.compile(rf"\b{any_of('MENTION')}\b", re.IGNORECASE)
_BY_TIME = re.compile(r"earliest|oldest|latest|newest|most\s+recent", re.IGNORECASE)
_EVER = re.compile(r"\b(?:has|have|had|ever)\b", re.IGNORECASE)
_VERBS = re.compile(any_of("START", "STOP"), re.IGNORECASE)
_BESIDE_DAY = re.compile(r"(?:on|of|the|[\s,])*", re.IGNORECASE)
_COLUMN = {column: re.compile(rf"\b{any_of(words)}\b", re.IGNORECASE) for column, words in COLUMNS.items()}
_NAME = r"([A-Za-z_][\w.$/-]*(?:\([\w.-]+\))?)"
_WRITER = re.compile(
    rf"\b(?:did|does|has|have)\s+(?:the\s+)?{_NAME}\s+(?:write|wrote|log|print|produce|emit|report)(?:ten|ged|ed|d)?\b"
    rf"|\b(?:from|by|of)\s+(?:the\s+)?(?:(?:component|logger|class|process|module|service|program|daemon)\s+)?{_NAME}",
    re.IGNORECASE,
)


_OR = re.compile(r",?\s*(?:and/)?or(?:\s+(?:the|an?))?", re.IGNORECASE)
_MANY = r"(?=[^?.]{0,80}\b(?:most|fewest|least)\b)"
_GROUPED_BY = re.compile(
    rf"\b(?:which|what)\s+([a-z]\w{{2,20}})\b{_MANY}|\bfor\s+each\s+([a-z]\w{{2,20}})\b|\bper\s+([a-z]\w{{2,20}})\b"
    r"|\bgrouped\s+by\s+(?:the\s+)?([a-z]\w{2,20})\b",
    re.IGNORECASE,
)


class Position(StrEnum):
    FIRST = "first"
    LAST = "last"
    NEXT = "next"
    PREVIOUS = "previous"


class Aggregate(StrEnum):
    COUNT = "count"
    GROUPS = "groups"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a question asks for.

    Attributes:
        doc_ids: The documents that it names; `file` as it names them, `unknown_file` one that is not there.
        wanted: Of "the last three errors": 3; `which` of "the second error": 2, from the end where negative; `steps` of
            "the 5 lines after it": 5.
        grouped_by: Columns by which lines are counted: `severity`, `component`, `day`, `hour`, `minute`; `distinct`:
            their values are what is counted, as in "how many components".
    """

    question: str
    text: str = ""  # the question without the file's name: what is searched for
    doc_ids: tuple[str, ...] = ()
    file: str | None = None
    unknown_file: str | None = None
    lines: tuple[int, int] | None = None  # the first line and the last
    period: Period | None = None
    severity: Severity | None = None
    mentions: tuple[NameMention, ...] = ()
    position: Position | None = None
    wanted: int = 1
    which: int | None = None
    steps: int = 1
    by_time: bool = False  # whether first and last go by time, as in "the earliest", and not by place
    aggregate: Aggregate | None = None
    grouped_by: tuple[str, ...] = ()
    distinct: bool = False
    unit: str | None = None  # what is counted, where every file of a kind has it: `lines`, `rows`, `columns`, `keys`
    anchor: Position | None = None  # of "what came after the first error": from where `position` is to be taken
    writers: tuple[str, ...] = ()  # names that may be those of components
    counts_lines: bool = False  # whether lines are counted and nothing else is asked: not "where is X, and how often"
    counts_mentions: bool = False  # whether the word that is counted is meant as it is: "how often does X show up"
    words: tuple[str, ...] = ()  # what else the question speaks of
    either: bool = False  # whether one of the names, or of the words where there are no names, is enough: "A or B"
    counted_by: tuple[str, ...] = ()  # what else it wants counted by, which may be the key of `key=value`: `user`

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
            "grouped_by": list(self.grouped_by),
            "words": list(self.words),
        }
        return {name: value for name, value in facts.items() if value}


def plan(question: str, documents: Sequence[Document]) -> Plan:
    """`documents`: those that may be searched, for the names of files."""
    files = files_named.find(question, documents)
    understood = understand(grammar.read(mended(files.rest)), files_named.stem_words(documents))
    return replace(
        understood,
        question=question,
        text=" ".join(files.rest.split()) or question,
        doc_ids=files.doc_ids,
        file=" and ".join(files.named) or None,
        unknown_file=files.unknown,
        writers=tuple(found[1] or found[2] for found in _WRITER.finditer(question)),
    )


def understand(reading: Reading, own_words: frozenset[str] = frozenset()) -> Plan:
    """What a question says without regard to files. `own_words` say which file is meant, and are not looked for."""
    severity, level_pieces = levels.read(reading)
    period, time_pieces = _period(reading)
    names = {piece.start: name for piece in reading.pieces if (name := mentions.read(piece))}
    read = {*names, *(piece.start for piece in (*level_pieces, *time_pieces))}
    unread = [piece for piece in reading.pieces if piece.start not in read]
    which = next(map(_which, reading.of("nth")), None)
    end = _end(reading) or (which and (Position.FIRST if which > 0 else Position.LAST)) or None
    columns = [piece.text for piece in reading.of("distinct") or reading.of("grouped")]
    keys = tuple(_other_groups(reading.text))
    units = [_UNIT.match(reading.text, piece.end) for piece in reading.of("count", "list")]
    return Plan(
        reading.text,
        lines=next(map(_span, reading.of("line")), None),
        period=period,
        severity=severity,
        mentions=tuple({name.text.casefold(): name for name in names.values()}.values()),
        position=_beside(reading, period) or end,
        wanted=_some(reading.of("first", "last")),
        which=which,
        steps=min(_some(reading.of("steps_next", "steps_previous")), _MOST_STEPS),
        by_time=any(_BY_TIME.match(piece.text) for piece in reading.of("first", "last")),
        aggregate=_aggregate(reading),
        grouped_by=tuple(column for column, said in _COLUMN.items() if any(map(said.search, columns))),
        distinct=reading.has("distinct"),
        unit=next((_UNITS[found[1].lower()] for found in units if found), None),
        anchor=end,
        counts_lines=next((_counts_lines(piece) for piece in reading.of("count")), False),
        counts_mentions=_MENTIONED.search(reading.text) is not None,
        either=_says_or(reading, [piece for piece in reading.pieces if piece.start in names] or unread),
        counted_by=keys,
        words=()
        if reading.has("opens", "closes")
        else tuple(dict.fromkeys(_words(reading, unread, own_words.union(keys)))),
    )


def around(reading: Reading) -> int:
    """Of "2 lines before and after it": 2; 0 where one side or none is asked for."""
    said = reading.of("around")
    return min(_some(said), _MOST_STEPS) if said else 0


def _some(pieces: Sequence[Phrase]) -> int:
    """Of "the last five", "5 lines after": 5."""
    found = (SOME.search(piece.text) for piece in pieces)
    return next((number_of(each[0]) for each in found if each), 1)


def _span(piece: Phrase) -> tuple[int, int]:
    said = [piece.match[group] for group in ("from_line", "to_line", "nth_line") if piece.match[group]]
    numbers = [int(digits.replace(",", "")[:_MOST_DIGITS]) for digits in said]
    return min(numbers), max(numbers)


def _period(reading: Reading) -> tuple[Period | None, list[Phrase]]:
    """The period that names most limits, with the day beside it: "before 5:00 on Dec 4"; and its pieces."""
    found = [(piece, times.read(piece.text)) for piece in reading.of("time")]
    if not found:
        return None, []
    piece, period = max(found, key=lambda pair: pair[1].limits)
    if period.clocks and not period.days:
        for other, day in found:
            first, last = sorted((piece, other), key=lambda each: each.start)
            if day.days and not day.clocks and _BESIDE_DAY.fullmatch(reading.text[first.end : last.start]):
                return replace(period, text=reading.text[first.start : last.end], days=day.days), [piece, other]
    return period, [piece]


def _beside(reading: Reading, period: Period | None) -> Position | None:
    if any(_counts_as_side(piece, period) for piece in reading.of("previous", "steps_previous")):
        return Position.PREVIOUS
    if any(_counts_as_side(piece, period) for piece in reading.of("next", "steps_next")):
        return Position.NEXT
    return None


def _counts_as_side(piece: Phrase, period: Period | None) -> bool:
    """Not in "has that happened before?", which asks for any time, and "10:15, what happened then?"."""
    before = piece.match.string[: piece.start]
    if piece.text.lower() == "then":
        return period is None or before.lower().endswith("and ")
    return " " in piece.text or not _EVER.search(before)


def _end(reading: Reading) -> Position | None:
    asked = reading.of("began", "opens", "stopped", "closes") or reading.of("first", "last")
    if not asked:
        return None
    return Position.FIRST if asked[0].kind in {"began", "opens", "first"} else Position.LAST


def _which(piece: Phrase) -> int:
    backwards = piece.match["backwards"] or piece.match["ordinal"].lower() == "penultimate"
    return number_of(piece.match["ordinal"]) * (-1 if backwards else 1)


def _aggregate(reading: Reading) -> Aggregate | None:
    if reading.has("count", "distinct"):
        return Aggregate.COUNT
    if reading.has("grouped", "groups"):
        return Aggregate.GROUPS
    return Aggregate.LIST if reading.has("list") else None


def _counts_lines(piece: Phrase) -> bool:
    text = piece.match.string
    often = piece.text.lower().endswith(("often", "frequently"))
    return bool(often or _LINES_FOLLOW.match(text, piece.end)) and not _ASKS_ELSE.search(text[: piece.start])


def _says_or(reading: Reading, pieces: Sequence[Phrase]) -> bool:
    """Whether there is nothing but "or" and commas between names, or between words, and an "or" before the last."""
    texts = [reading.text[one.end : other.start].strip() for one, other in pairwise(pieces)]
    joins = [text.lower() for text in texts] or [""]
    joins += [piece.text.lower() for piece in pieces if piece.text.lower() == "or"]
    return any(_OR.fullmatch(text) for text in joins)


def _other_groups(text: str) -> Iterator[str]:
    """Of "which user failed most often", "errors per host": `user`, `host`, where these are no columns of lines."""
    for found in _GROUPED_BY.finditer(text):
        noun = next(filter(None, found.groups()))
        if not (any(said.fullmatch(noun) for said in _COLUMN.values()) or asks_for_lines(noun)):
            yield noun.lower()


def _words(reading: Reading, unread: Sequence[Phrase], own_words: frozenset[str]) -> Iterator[str]:
    """What is left of a question without what was read, and without words that ask."""
    begins = reading.has("began", "stopped")
    for piece in unread:
        if piece.kind in {"word", "file", "idiom", "levels", "time"}:
            for run in piece.text.split():
                word = run.strip(".,:;!?-/@$#+~%")
                known = word.casefold() in STOP_WORDS | own_words or asks(word) or (begins and _VERBS.fullmatch(word))
                if len(word) > 1 and not known:
                    yield word
