"""Reads a question about files into a plan: files, levels, times, names; and what is wanted: lines, counts, groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from services.documents import prepared
from services.documents.asking import grammar, times
from services.documents.asking.clauses import SplitQuestion, split_question
from services.documents.asking.grammar import ONE_LEVEL, SOME, Kind, Phrase, Reading
from services.documents.asking.names import LIST, NameMention, find_files, read_mention, share_labels, stem_words
from services.documents.asking.times import Period
from services.documents.asking.vocabulary import COLUMNS, LEVELS, any_of, asks, asks_for_lines, names_thing, number_of
from services.documents.store.protocol import Document
from services.search import STOP_WORDS

_ORDER = tuple(prepared.LEVELS)
_PLAIN = frozenset({"error", "warn", "warning", "fatal", "critical", "crit", "emerg"})


@dataclass(frozen=True, slots=True)
class Severity:
    """The levels that a question names.

    Attributes:
        levels: the worst first; of FATAL and CRITICAL, which may mean the same, the one in the question goes first.
        explicit: True for the name of a level. A plain "errors" is a condition only if entries are counted, listed or
            put in order.
    """

    levels: tuple[str, ...]
    explicit: bool
    text: str  # as the question says it

    @property
    def alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Return the levels in groups. Levels of one group are synonyms in a log that uses only one of them."""
        return (self.levels,) if set(self.levels) == {"FATAL", "CRITICAL"} else tuple((level,) for level in self.levels)


def read_severity(reading: Reading) -> tuple[Severity | None, list[Phrase]]:
    """Return the levels in a question, and the phrases that name them."""
    lists = {phrase.start: (phrase, list(_items(reading.text, phrase))) for phrase in reading.of("levels")}
    named = {at: pair for at, pair in lists.items() if any(map(_is_named, pair[1]))}
    plain = {at: (phrase, [item for item in items if _word(item) in _PLAIN]) for at, (phrase, items) in lists.items()}
    chosen = [pair for pair in (named or plain).values() if pair[1]]
    if not chosen:
        return None, []
    wanted: set[str] = set()
    unwanted: set[str] = set()
    for _, items in chosen:
        refused = False
        for item in items:
            refused = refused or bool(item["not"])
            (unwanted if refused else wanted).update(_levels_of(item, explicit=bool(named)))
    said = [item for _, items in chosen for item in items]
    text = " or ".join(dict.fromkeys(_core(item) for item in said))
    if unwanted:
        text = "levels other than " + ", ".join(level for level in _ORDER if level in unwanted)
    levels = (wanted or set(_ORDER)) - unwanted
    first = LEVELS[_word(said[0])]
    in_order = first if set(first) == levels else tuple(level for level in _ORDER if level in levels)
    return Severity(in_order, bool(named), text), [phrase for phrase, _ in chosen]


def _items(text: str, phrase: Phrase) -> Iterator[re.Match[str]]:
    for item in ONE_LEVEL.finditer(text, phrase.start):
        if item.start() >= phrase.end:
            return
        yield item


def _core(item: re.Match[str]) -> str:
    word = item["word"].strip("[]\"'`“”")
    return word[:-1] if word[:-1].lower() in LEVELS else word


def _word(item: re.Match[str]) -> str:
    core = _core(item)
    return prepared.LEVEL_LETTERS.get(core, core).lower()


def _is_named(item: re.Match[str]) -> bool:
    return _core(item).isupper() or item["named"] is not None or item["entry"] is not None


def _levels_of(item: re.Match[str], *, explicit: bool) -> tuple[str, ...]:
    levels = LEVELS[_word(item)]
    ranks = [_ORDER.index(level) for level in levels]
    if item["above"] or item["least"] or (levels == ("ERROR",) and not explicit):
        return _ORDER[: max(ranks) + 1]
    if item["below"] or item["most"]:
        return _ORDER[min(ranks) :]
    return _ORDER[: min(ranks)] if item["beyond"] else levels


_MAX_SIDE_LINES = 50
_MAX_DIGITS = 15  # a longer one numbers no line, and a store cannot compare it
_UNITS = {
    "lines": "lines",
    "columns": "columns",
    "keys": "keys",
    "settings": "keys",
    "values": "keys",
    **dict.fromkeys(("rows", "records", "samples", "entries"), "rows"),
}
_UNIT = re.compile(rf"\s+(?:(?:of|the|all|data|different|config(?:uration)?)\s+)*({'|'.join(_UNITS)})\b", re.IGNORECASE)
_COUNTED = re.compile(r"\s+(?:(?:of|the|all|different|those|these)\s+){0,4}(\w{1,30})")
_FILES = re.compile(r"(?:log\s?)?files?|documents?|attachments?|uploads?", re.IGNORECASE)
_LOGGED_IN = re.compile(
    r"logg?ed\s(?:in|out|on|off)(?=[?.!,;]|$|\s(?:from|as|via|to|at|successfully|last|first|before|after|since|today|yesterday)\b)",
    re.IGNORECASE,
)
_LINES_FOLLOW = re.compile(rf"\s+(?:{any_of('ENTRY')}|times|hits)\b", re.IGNORECASE)
_ASKS_ELSE = re.compile(r"\b(?:wh(?:ich|at|ere|en|o|y)|how)\b", re.IGNORECASE)
_MENTIONED = re.compile(rf"\b{any_of('MENTION')}\b", re.IGNORECASE)
_BY_TIME = re.compile(r"earliest|oldest|latest|newest|most\s+recent", re.IGNORECASE)
_EVER = re.compile(r"\b(?:has|have|had|ever)\b", re.IGNORECASE)
_VERBS = re.compile(any_of("START", "STOP"), re.IGNORECASE)
_BEFORE_DAY = re.compile(r"(?:on|of|the|[\s,])*", re.IGNORECASE)
_COLUMN = {column: re.compile(rf"\b{any_of(words)}\b", re.IGNORECASE) for column, words in COLUMNS.items()}
_NAME = r"([A-Za-z_][\w.$/-]*(?:\([\w.-]+\))?)"
_WRITER = re.compile(
    rf"\b(?:did|does|has|have)\s+(?:the\s+)?{_NAME}\s+(?:write|wrote|log|print|produce|emit|report)(?:ten|ged|ed|d)?\b"
    rf"|\b(?:from|by|of)\s+(?:the\s+)?(?:(?:component|logger|class|process|module|service|program|daemon)\s+)?{_NAME}",
    re.IGNORECASE,
)


_OR = re.compile(r",?\s*(?:and/)?or(?:\s+(?:the|an?))?", re.IGNORECASE)
# fmt: off
_SAYS_MORE: frozenset[Kind] = frozenset({
    "time", "line", "around", "steps_next", "steps_previous", "distinct", "grouped", "groups", "count", "began",
    "stopped", "nth", "next", "previous", "first", "last",
})
# fmt: on
_DIFFERENT = re.compile(r"\b(?:different|distinct|unique)\s+(?P<noun>[a-z]\w{2,20})\b", re.IGNORECASE)
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
    """The conditions and words of a question about files. Most fields of a plan are empty.

        the last three ERROR entries       severity ERROR, start_position LAST, position LAST, how_many 3
        the 5 lines after the second WARN  severity WARN, start_position FIRST, ordinal 2, position NEXT, side_lines 5
        how many timeouts per hour?        words timeouts, aggregate COUNT, grouped_by hour

    Attributes:
        doc_ids: the documents that it names; `file`: their names in it; `unknown_file`: a name that no document has.
        how_many: 3 for "the last three errors". `ordinal`: 2 for "the second error", from the end if negative.
        side_lines: 5 for "the 5 lines after it".
        start_position: "first" or "last" in the question. In "what came after the first error" it is FIRST, the entry
            that `position` is relative to.
        grouped_by: columns to count lines by: `severity`, `component`, `day`, `hour`, `minute`. `distinct`: count their
            values, as in "how many components".
    """

    question: str
    text: str = ""  # the question without the file's name, for the search
    doc_ids: tuple[str, ...] = ()
    file: str | None = None
    unknown_file: str | None = None
    lines: tuple[int, int] | None = None  # the first line and the last
    period: Period | None = None
    severity: Severity | None = None
    mentions: tuple[NameMention, ...] = ()
    position: Position | None = None
    how_many: int = 1
    ordinal: int | None = None
    side_lines: int = 1
    by_time: bool = False  # True if first and last go by time, as in "the earliest", and not by line number
    aggregate: Aggregate | None = None
    grouped_by: tuple[str, ...] = ()
    distinct: bool = False
    unit: str | None = None  # the unit to count in whole files: `lines`, `rows`, `columns`, `keys`
    start_position: Position | None = None
    writer_names: tuple[str, ...] = ()  # names that may be those of components
    counts_lines: bool = False  # True if it only counts lines: not "where is X, and how often"
    ignored: tuple[str, ...] = ()  # words in no other field that may say which lines are meant
    counts_mentions: bool = False  # True if it counts a word literally: "how often does X show up"
    words: tuple[str, ...] = ()  # all other words that say what the question is about
    any_is_enough: bool = False  # True if one name, or one word if there are no names, is enough: "A or B"
    group_keys: tuple[str, ...] = ()  # other things to count by, possibly the key of `key=value`: `user`
    unread: tuple[str, ...] = ()  # what no query can say: times beside that of the period, the first five of a count
    clauses: Clauses | None = None

    @property
    def identifiers(self) -> tuple[str, ...]:
        return tuple(mention.text for mention in self.mentions)

    @property
    def asks_for_neighbour(self) -> bool:
        return self.position in {Position.NEXT, Position.PREVIOUS}

    @property
    def asks_how_many(self) -> bool:
        return self.aggregate is Aggregate.COUNT

    @property
    def asks_for_number(self) -> bool:
        return self.aggregate in {Aggregate.COUNT, Aggregate.GROUPS}

    @property
    def asks_first_or_last(self) -> bool:
        return self.position in {Position.FIRST, Position.LAST}

    @property
    def level_is_condition(self) -> bool:
        """Return True if the level is a condition. A plain "errors" is one only if entries are counted, listed, put in
        order or limited to a time, or if there are no other words or names.
        """
        level = self.severity
        if level is None or level.explicit:
            return level is not None
        return bool(self.position or self.aggregate or self.period) or not (self.words or self.mentions)

    def as_dict(self) -> dict[str, object]:
        """Return the non-empty parts, for logs and tests."""
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
            "limits": self.clauses.text if self.clauses else None,
        }
        return {name: value for name, value in facts.items() if value}


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a question that limit which lines are meant, such as "before the FATAL entry, not about login".

    Attributes:
        main: the question without them.
        text: the clauses in words.
        anchor: the entry that the lines come `before` or after.
        lacking: the names, and `words` the words, of what lines must not hold.
        unread: clauses that no query can say.
    """

    main: Plan
    text: str
    anchor: Plan | None = None
    before: bool = False
    lacking: tuple[NameMention, ...] = ()
    words: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def plan(question: str, documents: Sequence[Document]) -> Plan:
    """Read a question. `documents`: the documents to search, for the names of files."""
    files = find_files(question, documents)
    reading, file_words = grammar.read(files.rest), stem_words(documents)

    def of_these_files(understood: Plan, text: str, rest: str) -> Plan:
        return replace(
            understood,
            question=question,
            text=" ".join(rest.split()) or question,
            doc_ids=files.doc_ids,
            file=" and ".join(files.named) or None,
            unknown_file=files.unknown,
            writer_names=tuple(found[1] or found[2] for found in _WRITER.finditer(text)),
        )

    understood = of_these_files(plan_without_files(reading, file_words), question, files.rest)
    said = split_question(reading)
    if said is None:
        left = understood.unread
        return replace(understood, clauses=Clauses(understood, ", ".join(left), unread=left)) if left else understood
    main = of_these_files(plan_without_files(grammar.read(said.main), file_words), said.main, said.main)
    return replace(understood, clauses=_read_clauses(main, said, file_words))


def _read_clauses(main: Plan, said: SplitQuestion, file_words: frozenset[str]) -> Clauses | None:
    """Read the clauses of a question. None: it only asks what is beside an entry, or whether there is none."""
    bare = not (main.level_is_condition or main.mentions or main.asks_first_or_last or main.aggregate)
    other = said.excluded or main.unread or any(not clause.lower().startswith("no ") for clause in said.unread)
    if bare and not other and not (said.anchor and said.unread):
        return None  # "were there no errors?"
    lacking: list[NameMention] = []
    words: list[str] = []
    unread = [*said.unread, *main.unread]
    for clause, what in said.excluded:
        items = _listed(grammar.read(what), file_words)
        lacking += [item for item in items if isinstance(item, NameMention)]
        words += [item for item in items if isinstance(item, str)]
        unread += [] if items else [clause]
    anchor = plan_without_files(grammar.read(said.anchor), file_words) if said.anchor else None
    if anchor and anchor.aggregate:
        anchor, unread = None, [*unread, said.text]
    return Clauses(main, said.text, anchor, said.before, tuple(lacking), tuple(words), tuple(unread))


def _listed(reading: Reading, file_words: frozenset[str]) -> tuple[NameMention | str, ...]:
    """Return what a clause lists: names, levels as they are written, and words. Empty: it says more than a list."""
    items: list[tuple[Phrase, NameMention | str]] = []
    for phrase in reading.phrases:
        level = [_core(item) for item in _items(reading.text, phrase)] if phrase.kind == "levels" else []
        words = list(_words(reading, [phrase], file_words))
        if name := read_mention(phrase):
            items.append((phrase, name))
        elif level and _core(next(_items(reading.text, phrase))).isupper():
            items += [(phrase, NameMention(text, required=True)) for text in level]
        elif phrase.kind in _SAYS_MORE or len(words) > 1:
            return ()
        elif words:
            items.append((phrase, words[0]))
    gaps = (reading.text[one.end : other.start] for (one, _), (other, _) in pairwise(items) if one is not other)
    return tuple(item for _, item in items) if all(map(LIST.fullmatch, gaps)) else ()


def plan_without_files(reading: Reading, file_words: frozenset[str] = frozenset()) -> Plan:
    """Read a question without the names of files. `file_words`: words that name a file, and are not searched."""
    severity, level_phrases = read_severity(reading)
    period, time_phrases = _period(reading)
    names = {phrase.start: name for phrase in reading.phrases if (name := read_mention(phrase))}
    share_labels(reading, names)
    other_times = [phrase for phrase in reading.of("time") if phrase not in time_phrases]
    read = {*names, *(phrase.start for phrase in (*level_phrases, *time_phrases, *other_times))}
    unread = [phrase for phrase in reading.phrases if phrase.start not in read]
    ordinal = next(map(_ordinal, reading.of("nth")), None)
    start = _first_or_last(reading) or (ordinal and (Position.FIRST if ordinal > 0 else Position.LAST)) or None
    columns = [phrase.text for phrase in reading.of("distinct") or reading.of("grouped")]
    different = None if reading.has("distinct") or not reading.has("count") else _DIFFERENT.search(reading.text)
    keys = (different["noun"].lower().removesuffix("s"),) if different else tuple(_other_groups(reading.text))
    known = file_words.union(keys, different[0].lower().split() if different else ())
    units = [_UNIT.match(reading.text, phrase.end) for phrase in reading.of("count", "list")]
    return Plan(
        reading.text,
        lines=next(map(_span, reading.of("line")), None),
        period=period,
        severity=severity,
        mentions=tuple({name.text.casefold(): name for name in names.values()}.values()),
        position=_side(reading, period) or start,
        how_many=_count(reading.of("first", "last")),
        ordinal=ordinal,
        side_lines=min(_count(reading.of("steps_next", "steps_previous")), _MAX_SIDE_LINES),
        by_time=any(_BY_TIME.match(phrase.text) for phrase in reading.of("first", "last")),
        aggregate=_aggregate(reading),
        grouped_by=tuple(column for column, said in _COLUMN.items() if any(map(said.search, columns))),
        distinct=reading.has("distinct") or different is not None,
        unit=next((_UNITS[found[1].lower()] for found in units if found), None),
        start_position=start,
        counts_lines=next((_counts_lines(phrase) for phrase in reading.of("count")), False),
        unread=tuple(phrase.text for phrase in (*other_times, *_counted_ends(reading))),
        ignored=tuple(_ignored(reading, unread, known)),
        counts_mentions=_MENTIONED.search(reading.text) is not None,
        any_is_enough=_says_or(reading, [phrase for phrase in reading.phrases if phrase.start in names] or unread),
        group_keys=keys,
        words=tuple(dict.fromkeys(_words(reading, unread, known))),
    )


def lines_around(reading: Reading) -> int:
    """Return 2 for "2 lines before and after it"; 0 for lines on one side, or none."""
    said = reading.of("around")
    return min(_count(said), _MAX_SIDE_LINES) if said else 0


def _count(phrases: Sequence[Phrase]) -> int:
    """Return the number in "the last five", "5 lines after"; 1 if there is none."""
    found = (SOME.search(phrase.text) for phrase in phrases)
    return next((number_of(each[0]) for each in found if each), 1)


def _span(phrase: Phrase) -> tuple[int, int]:
    said = [phrase.match[group] for group in ("from_line", "to_line", "nth_line") if phrase.match[group]]
    numbers = [int(digits.replace(",", "")[:_MAX_DIGITS]) for digits in said]
    return min(numbers), max(numbers)


def _period(reading: Reading) -> tuple[Period | None, list[Phrase]]:
    """Return the period with the most moments, with a day beside it ("before 5:00 on Dec 4"), and its phrases."""
    found = [(phrase, times.read(phrase.text)) for phrase in reading.of("time")]
    if not found:
        return None, []
    phrase, period = max(found, key=lambda pair: pair[1].n_moments)
    if period.clocks and not period.days:
        for other, day in found:
            first, last = sorted((phrase, other), key=lambda each: each.start)
            if day.days and not day.clocks and _BEFORE_DAY.fullmatch(reading.text[first.end : last.start]):
                return replace(period, text=reading.text[first.start : last.end], days=day.days), [phrase, other]
    return period, [phrase]


def _side(reading: Reading, period: Period | None) -> Position | None:
    if any(_counts_as_side(phrase, period) for phrase in reading.of("previous", "steps_previous")):
        return Position.PREVIOUS
    if any(_counts_as_side(phrase, period) for phrase in reading.of("next", "steps_next")):
        return Position.NEXT
    return None


def _counts_as_side(phrase: Phrase, period: Period | None) -> bool:
    """Return True if a phrase asks for a neighbour, unlike "has that happened before?" or "10:15, what was then?"."""
    before = phrase.match.string[: phrase.start]
    if phrase.text.lower() == "then":
        return period is None or before.lower().endswith("and ")
    return " " in phrase.text or not _EVER.search(before)


def _first_or_last(reading: Reading) -> Position | None:
    asked = reading.of("began", "stopped") or reading.of("first", "last")
    if not asked:
        return None
    return Position.FIRST if asked[0].kind in {"began", "first"} else Position.LAST


def _ordinal(phrase: Phrase) -> int:
    backwards = phrase.match["backwards"] or phrase.match["ordinal"].lower() == "penultimate"
    return number_of(phrase.match["ordinal"]) * (-1 if backwards else 1)


def _aggregate(reading: Reading) -> Aggregate | None:
    if reading.has("count", "distinct"):
        return Aggregate.COUNT
    if reading.has("grouped", "groups"):
        return Aggregate.GROUPS
    return Aggregate.LIST if reading.has("list") else None


def _counted_ends(reading: Reading) -> list[Phrase]:
    """Return "the first 5" of a question that counts: a count is over all lines."""
    return [phrase for phrase in reading.of("first", "last") if _count([phrase]) > 1 and reading.has("count")]


def _counts_lines(phrase: Phrase) -> bool:
    text = phrase.match.string
    often = phrase.text.lower().endswith(("often", "frequently"))
    return bool(often or _LINES_FOLLOW.match(text, phrase.end)) and not _ASKS_ELSE.search(text[: phrase.start])


def _says_or(reading: Reading, phrases: Sequence[Phrase]) -> bool:
    """Return True if names, or words, are only joined by commas and a last "or"."""
    texts = [reading.text[one.end : other.start].strip() for one, other in pairwise(phrases)]
    joins = [text.lower() for text in texts] or [""]
    joins += [phrase.text.lower() for phrase in phrases if phrase.text.lower() == "or"]
    return any(_OR.fullmatch(text) for text in joins)


def _other_groups(text: str) -> Iterator[str]:
    """Yield nouns to group by that are no columns: `user` in "which user failed most", `host` in "per host"."""
    for found in _GROUPED_BY.finditer(text):
        noun = next(filter(None, found.groups()))
        if not (any(said.fullmatch(noun) for said in _COLUMN.values()) or asks_for_lines(noun)):
            yield noun.lower()


def _words(reading: Reading, unread: Sequence[Phrase], file_words: frozenset[str]) -> Iterator[str]:
    """Yield the `unread` words of a question, without words that only ask."""
    begins = reading.of("began", "stopped")
    if any(phrase.text.lower().startswith("how") for phrase in begins):
        return  # the whole file is meant
    for phrase in unread:
        if phrase.kind in {"word", "file", "idiom", "levels", "time"}:
            for run in phrase.text.split():
                word = run.strip(".,:;!?-/@$#+~%")
                known = word.casefold() in STOP_WORDS | file_words or asks(word) or (begins and _VERBS.fullmatch(word))
                if len(word) > 1 and (not known or _LOGGED_IN.match(reading.text, phrase.start)):
                    yield word


def _ignored(reading: Reading, unread: Sequence[Phrase], file_words: frozenset[str]) -> Iterator[str]:
    """Yield the words that `_words` leaves out, though lines are not what they count: the users of "how many users",
    the files of "how many files".
    """
    for phrase in reading.of("count"):
        counted = _COUNTED.match(reading.text, phrase.end)
        if counted and _FILES.fullmatch(counted[1]):
            yield counted[1]
    for phrase in unread:
        if phrase.kind == "word" and phrase.text.casefold() not in STOP_WORDS | file_words:
            word = phrase.text.strip(".,:;!?-/@$#+~%")
            if names_thing(word):
                yield word
