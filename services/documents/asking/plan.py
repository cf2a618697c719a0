"""Reads a question about files into a plan: files, levels, times, names; and what is wanted: lines, counts, groups."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from services.documents import limits
from services.documents.asking import clauses, grammar, times
from services.documents.asking.grammar import FILE_NAME, ONE_LEVEL, SOME, Kind, Phrase, Reading
from services.documents.asking.times import Period
from services.documents.asking.vocabulary import COLUMNS, LEVELS, any_of, asks, asks_for_lines, names_thing, number_of
from services.documents.store.protocol import Document
from services.search import STOP_WORDS

_COMMON_WORDS = frozenset(
    "error errors warn warning info debug trace fatal critical log logs file config output text data message".split()  # noqa: SIM905 (a list of so many is twice as long)
)
_NAME_PARTS = re.compile(r"[^\W\d_]{3,}")
_NOUN = r"\s+(?:logs?|file|config(?:uration)?|yaml|json|document|doc|output)\b"
_LINE = r"(?::(?P<line>\d+(?:-\d+)?)(?![\d:.]))?"  # `:42` behind a file's name
_FILE_LIKE = re.compile(f"(?P<said>{FILE_NAME}){_LINE}", re.IGNORECASE)
_MOST_DOTS = 2


class Files(NamedTuple):
    """The documents that a question names. `unknown`: a name that looks like a file, but is not a document.

    `rest`: the question without the names; `:42` behind a name becomes `line 42`.
    """

    doc_ids: tuple[str, ...]
    named: tuple[str, ...]
    unknown: str | None
    rest: str


def find_files(question: str, documents: Sequence[Document]) -> Files:
    """Find the files that a question names. Of names that contain each other, the longest wins."""
    names: dict[str, list[str]] = {}
    for doc in documents:
        for name in _names(doc):
            names.setdefault(name, []).append(doc.doc_id)
    found = list(_pattern([name for name in names if name in question.casefold()]).finditer(question))
    # If a document is named, another file name may be a text to search in it.
    others = () if found else _FILE_LIKE.finditer(question)
    unknown = next((like for like in others if not _is_host(like["said"])), None)
    rest = question
    for match in reversed(found or ([unknown] if unknown else [])):
        line = f"line {match['line']}" if match["line"] else ""
        rest = f"{rest[: match.start()]} {line}{rest[match.end() :]}"
    ids = (doc_id for match in found for doc_id in names.get((match["name"] or match["stem"]).casefold(), ()))
    said = dict.fromkeys(match["said"] for match in found)
    return Files(tuple(dict.fromkeys(ids)), tuple(said), unknown["said"] if unknown else None, rest)


def stem_words(documents: Sequence[Document]) -> frozenset[str]:
    """Return the words of the name of a single file: "errors of the runner" means the file `runner.log`. Empty for
    several files, among which it would be a guess.
    """
    if len(documents) != 1:
        return frozenset()
    stem = documents[0].filename.rsplit("/", 1)[-1].rsplit(".", 1)[0].casefold()
    return frozenset({stem, *_NAME_PARTS.findall(stem)}) - _COMMON_WORDS


def _pattern(names: list[str]) -> re.Pattern[str]:
    """Match names as whole names: `mydb/app.yaml` does not name `db/app.yaml`, nor `app.log.1` `app.log`. A name
    without an ending needs a noun.
    """
    ordered = sorted(names, key=len, reverse=True)
    dotted, bare = (
        "|".join(re.escape(name) for name in ordered if bool({".", "/"} & set(name)) is marked) or "(?!)"
        for marked in (True, False)
    )
    return re.compile(
        rf"(?<![\w./-])(?P<said>(?P<name>{dotted})(?![\w-]|\.\w|/\w)|(?P<stem>{bare})(?![\w./-]\w){_NOUN}){_LINE}",
        re.IGNORECASE,
    )


def _names(doc: Document) -> list[str]:
    """Return the names that people use for a file: its whole name, its last part, its title, or its stem unless that is
    a common word ("the ERROR log" means a level).
    """
    whole = doc.filename.casefold()
    last = whole.rsplit("/", 1)[-1]
    stem = last.rsplit(".", 1)[0]
    titles = [title.casefold() for title in [doc.origin.extra.get("title")] if title]
    stems = () if stem in _COMMON_WORDS else (stem,)
    return [name for name in dict.fromkeys((whole, last, *stems, *titles)) if len(name) > 2]  # noqa: PLR2004 (shorter ones name nothing)


def _is_host(text: str) -> bool:
    """Return True for a host (`api.example.sh`) rather than a file (`example.py`): it has several dots and no path."""
    return "/" not in text and text.count(".") > _MOST_DOTS


_ORDER = tuple(limits.LEVELS)
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
    lists = {piece.start: (piece, list(_items(reading.text, piece))) for piece in reading.of("levels")}
    named = {at: pair for at, pair in lists.items() if any(map(_is_named, pair[1]))}
    plain = {at: (piece, [item for item in items if _word(item) in _PLAIN]) for at, (piece, items) in lists.items()}
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
    return Severity(in_order, bool(named), text), [piece for piece, _ in chosen]


def _items(text: str, piece: Phrase) -> Iterator[re.Match[str]]:
    for item in ONE_LEVEL.finditer(text, piece.start):
        if item.start() >= piece.end:
            return
        yield item


def _core(item: re.Match[str]) -> str:
    word = item["word"].strip("[]\"'`“”")
    return word[:-1] if word[:-1].lower() in LEVELS else word


def _word(item: re.Match[str]) -> str:
    core = _core(item)
    return limits.LEVEL_LETTERS.get(core, core).lower()


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


_EDGE = ".,:;!?-/"
_EXACT = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|/?\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?:/\d{1,2})?|(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4}",
    re.IGNORECASE,
)
_DIGIT, _LETTER, _CAMEL = re.compile(r"\d"), re.compile(r"[^\W\d_]"), re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
_AMOUNT = re.compile(r"\d+(?:st|nd|rd|th|s|ms|kb|mb|gb|k|m|h|min|x|%)?", re.IGNORECASE)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)", re.IGNORECASE)
# A host, a package, a class with its package: two dots are no slip of the keys.
_HOST = re.compile(r"[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*){2,}")
# Columns of a table of events, or of an access log: the number is there without its label.
_COLUMN_WORDS = frozenset(
    {"id", "code", "status", "error", "exit", "errno", "event", "eventid", "http", "https", "response"}
)
_PLURAL = re.compile(r"\d{3,}(?='?s$)")
# "How many entries mention X", "what happened to X": X is meant letter by letter, however it looks.
_ASKED_FOR = re.compile(
    r"\b(?:mention(?:s|ed|ing)?|contain(?:s|ed|ing)?|refer(?:s|red|ring)? to|reference[sd]?|involv(?:es|ed|ing)"
    r"|happen(?:s|ed|ing)? (?:to|with)|occurrences? of|status of|(?:tell me|know) about|search(?:ed)? for"
    rf"|(?:{any_of('THING', 'THINGS')}|anything|something|hits?)"
    r" (?:about|for|on|with|from|regarding|concerning|matching)|look(?:ed|ing)? (?:for|up|at)|find|check(?: for)?"
    r"|locate|pull up|grep(?: for)?|(?:is|are|was|were) there|did an?|any)\s+(?:(?:the|an?|any)\s+)?"
    r"(?:string|text|word|term|identifier|id|ip|address|host|block|request|port|process|session)?\s*$",
    re.IGNORECASE,
)
# "Was TimeoutException ever logged?"
_ASKED_ABOUT = re.compile(
    r"\W*(?:(?:is|was|are|were|been|ever|also|still|anywhere)\s+)*"
    r"(?:mentioned|logged|reported|seen|raised|thrown|recorded|referenced|appear|occur|(?:show|turn)(?:s|ed)? up)",
    re.IGNORECASE,
)
# "Message DEADBEEF", "job j-fffff": after such a noun, a word of this form is an id without digits.
_CALLED = re.compile(
    r"\b(?:job|message|transaction|request|session|block|task|order|ticket|container|pod|trace|span|batch|id)"
    r"(?:\s+(?:id|no\.?|number|named|called))?\s+$",
    re.IGNORECASE,
)
_ID_OF_LETTERS = re.compile(r"[A-Z]{6,}|[a-z]{1,2}-[a-f]{4,}")
_SHORTEST = 2
_LONG = 7
_TELLING_DIGITS = 3  # smaller numbers are counts


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a question.

    Attributes:
        forms: other spellings to search if no document has the name literally: for "port 8080", `:8080`. Each is a
            group of texts that must be in one line.
    """

    text: str  # as the question writes it
    required: bool  # True if there is no answer without it
    path: bool = False  # True if it may be the path of a key: `server.pool.size`, which no file has literally
    forms: tuple[tuple[str, ...], ...] = ()


def read_mention(piece: Phrase) -> NameMention | None:
    """Read a phrase as a name; None: it is no name."""
    if piece.kind == "quoted":
        return NameMention(piece.text[1:-1].strip(), required=True)
    if piece.kind == "name":
        return NameMention(piece.text, required=True)
    if piece.kind == "numbered":
        return _numbered(piece)
    return _name(piece) if piece.kind in {"word", "file"} else None


def _numbered(piece: Phrase, number: str | None = None) -> NameMention:
    """Return a labelled number as programs write it: `[4711]`, `:8080`, `job-4711`, the label elsewhere in the line; a
    labelled letter as the value of a key. `number`: another one with the same label.
    """
    label, own = (piece.match["label"] or piece.match["capitals"]).split()[0], str(piece.match["number"])
    text = " ".join(piece.text.split()) if number is None else f"{label} {number}"
    if own.isalpha():
        keys = [f'"{label}":"{own}"', f'"{label}": "{own}"', f'{label}="{own}"']
        values = [f"{label}{mark}{own}" for mark in ("=", ": ", "-", "_")]
        return NameMention(text, required=False, forms=tuple((form,) for form in (*values, *keys)))
    number = number or own
    forms = [(f"[{number}]",), (f":{number}",), (f"{label}-{number}",), (f"{label}_{number}",)]
    forms += [(f"{label}={number}",), (label, number)]
    # A long number is hardly there by chance; one that was filled up with zeros may be.
    alone = len(number) >= _LONG or (label.lower() in _COLUMN_WORDS and len(number) >= _TELLING_DIGITS)
    forms += [(number,)] if alone and not number.startswith("0") else []
    return NameMention(text, required=len(number) >= _TELLING_DIGITS, forms=tuple(forms))


def _share_labels(reading: Reading, names: dict[int, NameMention]) -> None:
    """Give a number that is listed behind a labelled one its label: `404` in "status 500 or 404"."""
    listed = [piece for piece in reading.pieces if piece.text.lower() not in _JOINING]
    labelled: Phrase | None = None
    for before, piece in pairwise(listed):
        labelled = before if before.kind == "numbered" else labelled
        joined = _LIST.fullmatch(reading.text, before.end, piece.start)
        if labelled and piece.kind == "word" and piece.text.isdigit() and joined:
            names[piece.start] = _numbered(labelled, piece.text)
        else:
            labelled = None


def _name(piece: Phrase) -> NameMention | None:
    text = piece.text.strip(_EDGE)
    plain = text.isalpha() and not (_CAMEL.search(text) or _ID_OF_LETTERS.fullmatch(text))
    if plain or len(text) < _SHORTEST or not (_LETTER.search(text) or _DIGIT.search(text)):
        return None
    before, behind = piece.match.string[: piece.start], piece.match.string[piece.end :]
    asked_for = bool(_ASKED_FOR.search(before) or _ASKED_ABOUT.match(behind))
    # "When did the 502s start?"
    plural = _PLURAL.match(text)
    text = plural[0] if plural else text
    if text.isdigit():
        exact = asked_for and len(text) > _TELLING_DIGITS
        return NameMention(text, required=exact) if asked_for or len(text) >= _TELLING_DIGITS else None
    if _looks_exact(text) or (_ID_OF_LETTERS.fullmatch(text) and _CALLED.search(before)):
        return NameMention(text, required=True)
    # A block's number may be negative: `blk_-1608` keeps its sign, `word -` does not.
    inner = text.strip("/@#$+-")
    camel, joined = bool(_CAMEL.search(inner)), asked_for and "-" in inner.strip("-")
    marked = camel or joined or any(mark in inner for mark in ("_", ".", "::", "/")) or _DIGIT.search(inner)
    if not marked or _ORDINAL.fullmatch(inner):
        return None
    path = "." in inner
    sure = path or "_" in inner or camel
    return NameMention(text, required=(asked_for and sure) or (path and bool(_HOST.fullmatch(text))), path=path)


def _looks_exact(text: str) -> bool:
    """Return True if a word can only be meant literally: an id, an address, a code."""
    digits = len(_DIGIT.findall(text))
    if digits and _LETTER.search(text):
        return bool(_EXACT.fullmatch(text)) or (not _AMOUNT.fullmatch(text) and digits >= _SHORTEST)
    return bool(_EXACT.fullmatch(text)) or (digits > 0 and len(text) > _TELLING_DIGITS)


_MOST_SIDE_LINES = 50
_MOST_DIGITS = 15  # a longer one numbers no line, and a store cannot compare it
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


_JOINING = frozenset({"and", "or", "nor"})
_OR = re.compile(r",?\s*(?:and/)?or(?:\s+(?:the|an?))?", re.IGNORECASE)
_LIST = re.compile(
    r"\s*+(?:,\s*+(?:\b(?:and|or|nor)\b)?|\b(?:and|or|nor)\b)\s*+(?:(?:the|an?|about|with|from)\s++){0,6}",
    re.IGNORECASE,
)
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
    limits: Limits | None = None

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
            "limits": self.limits.text if self.limits else None,
        }
        return {name: value for name, value in facts.items() if value}


@dataclass(frozen=True, slots=True)
class Limits:
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
    said = clauses.split(reading)
    if said is None:
        left = understood.unread
        return replace(understood, limits=Limits(understood, ", ".join(left), unread=left)) if left else understood
    main = of_these_files(plan_without_files(grammar.read(said.main), file_words), said.main, said.main)
    return replace(understood, limits=_limits(main, said, file_words))


def _limits(main: Plan, said: clauses.Clauses, file_words: frozenset[str]) -> Limits | None:
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
    return Limits(main, said.text, anchor, said.before, tuple(lacking), tuple(words), tuple(unread))


def _listed(reading: Reading, file_words: frozenset[str]) -> tuple[NameMention | str, ...]:
    """Return what a clause lists: names, levels as they are written, and words. Empty: it says more than a list."""
    items: list[tuple[Phrase, NameMention | str]] = []
    for piece in reading.pieces:
        level = [_core(item) for item in _items(reading.text, piece)] if piece.kind == "levels" else []
        words = list(_words(reading, [piece], file_words))
        if name := read_mention(piece):
            items.append((piece, name))
        elif level and _core(next(_items(reading.text, piece))).isupper():
            items += [(piece, NameMention(text, required=True)) for text in level]
        elif piece.kind in _SAYS_MORE or len(words) > 1:
            return ()
        elif words:
            items.append((piece, words[0]))
    gaps = (reading.text[one.end : other.start] for (one, _), (other, _) in pairwise(items) if one is not other)
    return tuple(item for _, item in items) if all(map(_LIST.fullmatch, gaps)) else ()


def plan_without_files(reading: Reading, file_words: frozenset[str] = frozenset()) -> Plan:
    """Read a question without the names of files. `file_words`: words that name a file, and are not searched."""
    severity, level_pieces = read_severity(reading)
    period, time_pieces = _period(reading)
    names = {piece.start: name for piece in reading.pieces if (name := read_mention(piece))}
    _share_labels(reading, names)
    other_times = [piece for piece in reading.of("time") if piece not in time_pieces]
    read = {*names, *(piece.start for piece in (*level_pieces, *time_pieces, *other_times))}
    unread = [piece for piece in reading.pieces if piece.start not in read]
    ordinal = next(map(_ordinal, reading.of("nth")), None)
    start = _first_or_last(reading) or (ordinal and (Position.FIRST if ordinal > 0 else Position.LAST)) or None
    columns = [piece.text for piece in reading.of("distinct") or reading.of("grouped")]
    different = None if reading.has("distinct") or not reading.has("count") else _DIFFERENT.search(reading.text)
    keys = (different["noun"].lower().removesuffix("s"),) if different else tuple(_other_groups(reading.text))
    known = file_words.union(keys, different[0].lower().split() if different else ())
    units = [_UNIT.match(reading.text, piece.end) for piece in reading.of("count", "list")]
    return Plan(
        reading.text,
        lines=next(map(_span, reading.of("line")), None),
        period=period,
        severity=severity,
        mentions=tuple({name.text.casefold(): name for name in names.values()}.values()),
        position=_side(reading, period) or start,
        how_many=_count(reading.of("first", "last")),
        ordinal=ordinal,
        side_lines=min(_count(reading.of("steps_next", "steps_previous")), _MOST_SIDE_LINES),
        by_time=any(_BY_TIME.match(piece.text) for piece in reading.of("first", "last")),
        aggregate=_aggregate(reading),
        grouped_by=tuple(column for column, said in _COLUMN.items() if any(map(said.search, columns))),
        distinct=reading.has("distinct") or different is not None,
        unit=next((_UNITS[found[1].lower()] for found in units if found), None),
        start_position=start,
        counts_lines=next((_counts_lines(piece) for piece in reading.of("count")), False),
        unread=tuple(piece.text for piece in (*other_times, *_counted_ends(reading))),
        ignored=tuple(_ignored(reading, unread, known)),
        counts_mentions=_MENTIONED.search(reading.text) is not None,
        any_is_enough=_says_or(reading, [piece for piece in reading.pieces if piece.start in names] or unread),
        group_keys=keys,
        words=tuple(dict.fromkeys(_words(reading, unread, known))),
    )


def lines_around(reading: Reading) -> int:
    """Return 2 for "2 lines before and after it"; 0 for lines on one side, or none."""
    said = reading.of("around")
    return min(_count(said), _MOST_SIDE_LINES) if said else 0


def _count(pieces: Sequence[Phrase]) -> int:
    """Return the number in "the last five", "5 lines after"; 1 if there is none."""
    found = (SOME.search(piece.text) for piece in pieces)
    return next((number_of(each[0]) for each in found if each), 1)


def _span(piece: Phrase) -> tuple[int, int]:
    said = [piece.match[group] for group in ("from_line", "to_line", "nth_line") if piece.match[group]]
    numbers = [int(digits.replace(",", "")[:_MOST_DIGITS]) for digits in said]
    return min(numbers), max(numbers)


def _period(reading: Reading) -> tuple[Period | None, list[Phrase]]:
    """Return the period with the most limits, joined with a day beside it ("before 5:00 on Dec 4"), and its phrases."""
    found = [(piece, times.read(piece.text)) for piece in reading.of("time")]
    if not found:
        return None, []
    piece, period = max(found, key=lambda pair: pair[1].limits)
    if period.clocks and not period.days:
        for other, day in found:
            first, last = sorted((piece, other), key=lambda each: each.start)
            if day.days and not day.clocks and _BEFORE_DAY.fullmatch(reading.text[first.end : last.start]):
                return replace(period, text=reading.text[first.start : last.end], days=day.days), [piece, other]
    return period, [piece]


def _side(reading: Reading, period: Period | None) -> Position | None:
    if any(_counts_as_side(piece, period) for piece in reading.of("previous", "steps_previous")):
        return Position.PREVIOUS
    if any(_counts_as_side(piece, period) for piece in reading.of("next", "steps_next")):
        return Position.NEXT
    return None


def _counts_as_side(piece: Phrase, period: Period | None) -> bool:
    """Return True if a phrase asks for a neighbour, unlike "has that happened before?" or "10:15, what was then?"."""
    before = piece.match.string[: piece.start]
    if piece.text.lower() == "then":
        return period is None or before.lower().endswith("and ")
    return " " in piece.text or not _EVER.search(before)


def _first_or_last(reading: Reading) -> Position | None:
    asked = reading.of("began", "stopped") or reading.of("first", "last")
    if not asked:
        return None
    return Position.FIRST if asked[0].kind in {"began", "first"} else Position.LAST


def _ordinal(piece: Phrase) -> int:
    backwards = piece.match["backwards"] or piece.match["ordinal"].lower() == "penultimate"
    return number_of(piece.match["ordinal"]) * (-1 if backwards else 1)


def _aggregate(reading: Reading) -> Aggregate | None:
    if reading.has("count", "distinct"):
        return Aggregate.COUNT
    if reading.has("grouped", "groups"):
        return Aggregate.GROUPS
    return Aggregate.LIST if reading.has("list") else None


def _counted_ends(reading: Reading) -> list[Phrase]:
    """Return "the first 5" of a question that counts: a count is over all lines."""
    return [piece for piece in reading.of("first", "last") if _count([piece]) > 1 and reading.has("count")]


def _counts_lines(piece: Phrase) -> bool:
    text = piece.match.string
    often = piece.text.lower().endswith(("often", "frequently"))
    return bool(often or _LINES_FOLLOW.match(text, piece.end)) and not _ASKS_ELSE.search(text[: piece.start])


def _says_or(reading: Reading, pieces: Sequence[Phrase]) -> bool:
    """Return True if names, or words, are only joined by commas and a last "or"."""
    texts = [reading.text[one.end : other.start].strip() for one, other in pairwise(pieces)]
    joins = [text.lower() for text in texts] or [""]
    joins += [piece.text.lower() for piece in pieces if piece.text.lower() == "or"]
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
    if any(piece.text.lower().startswith("how") for piece in begins):
        return  # the whole file is meant
    for piece in unread:
        if piece.kind in {"word", "file", "idiom", "levels", "time"}:
            for run in piece.text.split():
                word = run.strip(".,:;!?-/@$#+~%")
                known = word.casefold() in STOP_WORDS | file_words or asks(word) or (begins and _VERBS.fullmatch(word))
                if len(word) > 1 and (not known or _LOGGED_IN.match(reading.text, piece.start)):
                    yield word


def _ignored(reading: Reading, unread: Sequence[Phrase], file_words: frozenset[str]) -> Iterator[str]:
    """Yield the words that `_words` leaves out, though lines are not what they count: the users of "how many users",
    the files of "how many files".
    """
    for piece in reading.of("count"):
        counted = _COUNTED.match(reading.text, piece.end)
        if counted and _FILES.fullmatch(counted[1]):
            yield counted[1]
    for piece in unread:
        if piece.kind == "word" and piece.text.casefold() not in STOP_WORDS | file_words:
            word = piece.text.strip(".,:;!?-/@$#+~%")
            if names_thing(word):
                yield word
