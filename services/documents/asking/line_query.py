"""The query over lines of files: `query_file` reads it from a model, and a plan is compiled to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, cast, get_args

import re2 as _re2  # pyright: ignore[reportMissingTypeStubs] (it has no types)

from services.documents import prepared
from services.documents.asking import times
from services.documents.asking.passages import ids_of, list_files
from services.documents.asking.times import Period
from services.documents.asking.vocabulary import LEVELS
from services.documents.store.protocol import Document, LineWhere

# Patterns

LONGEST_PATTERN = 200
LONGEST_LINE = 1000  # characters of a line that are searched

_RE2: Any = _re2
_OPTIONS = _RE2.Options()
_OPTIONS.case_sensitive = False
_OPTIONS.log_errors = False
# In RE2 `\w`, `\d` and `\s` match ASCII only, and the end of the text has another name.
_PYTHON_ONLY = re.compile(r"\\(?:(?P<known>[wdsZ])|.)|(?P<class>\[\^?\]?)|(?P<end>\])", re.DOTALL)
_UNICODE = {"w": r"\p{L}\p{M}\p{N}_", "d": r"\p{Nd}", "s": r"\s\p{Z}"}


class PatternRefused(Exception):
    """A pattern is refused; the message is one clause that says why."""


class Pattern(Protocol):
    """A compiled pattern, possibly from a stranger: no text makes it slow."""

    def search(self, text: str, /) -> re.Match[str] | None: ...


def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern for RE2, ignoring letter case: the time of a search is proportional to the text.

    Raises:
        PatternRefused: it is too long, or no regular expression that RE2 knows (no look-around, no back references).
    """
    if len(pattern) > LONGEST_PATTERN:
        raise PatternRefused(f"regex may have {LONGEST_PATTERN} characters")
    try:
        return cast("Pattern", _RE2.compile(_in_unicode(pattern), _OPTIONS))
    except _RE2.error as error:
        reason: object = error.args[0]
        said = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise PatternRefused(f"regex is not valid: {said}") from None


def _in_unicode(pattern: str) -> str:
    """Write Python's classes as RE2 knows them."""
    in_class = False

    def written(found: re.Match[str]) -> str:
        nonlocal in_class
        known = found["known"]
        if known == "Z":
            return r"\z"
        if known:
            return _UNICODE[known] if in_class else f"[{_UNICODE[known]}]"
        if found["class"] and not in_class:
            in_class = True
        elif found["end"]:
            in_class = False
        return found[0]

    return _PYTHON_ONLY.sub(written, pattern)


# The query

T = TypeVar("T", bound=str)

Mode = Literal["count", "list", "first", "last", "context"]
Order = Literal["time", "file"]
GroupBy = Literal["level", "day", "hour", "component", "thread", "address", "message", "key", "capture"]

MODES: tuple[Mode, ...] = get_args(Mode)
ORDERS: tuple[Order, ...] = get_args(Order)
GROUPS: tuple[GroupBy, ...] = get_args(GroupBy)

MAX_LITERALS = 10
LONGEST_LITERAL = 200
MAX_LINES = 100
MAX_AROUND = 50
MAX_TOP = 100
MAX_OFFSET = 100_000
_DEFAULT_LIMIT: Mapping[Mode, int] = {"count": 0, "list": 20, "first": 1, "last": 1, "context": 3}
_AROUND = 5
_TOP = 20


class QueryRefused(Exception):
    """An argument is wrong. The message says in one sentence how to fill it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineQuery:
    """A filter for lines, and the form of the answer. A model may fill in most of its fields.

    Attributes:
        file: the file's name as given; None: all files. `documents`: the documents of that name.
        limit: the most lines that are shown, or hits in `context`. `top`: the most groups.
    """

    file: str | None = None
    documents: tuple[Document, ...] = ()
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    either: tuple[tuple[str, ...], ...] = ()  # all texts of one of these groups
    none_of: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # all of these, in any form; `words_any`: one of them
    words_any: tuple[str, ...] = ()
    words_none: tuple[str, ...] = ()  # none of these
    names: tuple[str, ...] = ()  # the texts as the question writes them
    regex: Pattern | None = None
    levels: tuple[tuple[str, ...], ...] = ()  # each level, followed by its other names
    components: tuple[str, ...] = ()
    period: Period | None = None
    line: int | None = None
    first: int | None = None  # with `last`: the lines from one to the other
    last: int | None = None
    before: int = 0
    after: int = 0
    mode: Mode = "list"
    order: Order = "time"
    group_by: GroupBy | None = None
    key: str | None = None
    top: int = _TOP
    offset: int = 0
    limit: int = 20

    @property
    def where(self) -> LineWhere:
        """Return the filter for the store, which checks all conditions but the regex."""
        period = self.period or Period("")
        return LineWhere(
            ids_of(self.documents),
            first=self.first if self.line is None else self.line,
            last=self.last if self.line is None else self.line,
            clocks=period.clocks,
            days=period.days,
            instants=period.instants,
            zone=period.zone,
            severities=tuple(dict.fromkeys(level for meant in self.levels for level in meant)),
            components=self.components,
            holding=self.all_of,
            holding_any=(*((text,) for text in self.any_of), *self.either),
            lacking=self.none_of,
            words=self.words,
            words_any=self.words_any,
            words_none=self.words_none,
        )

    @property
    def description(self) -> str:
        """Describe the conditions on the lines in words, with the files."""
        some = self.levels or self.period or self.names or self.components or self.words or self.words_any
        said = (
            ("/".join(self.where.severities), "{}"),
            ("entries" if some else "lines", "{}"),
            ((" or " if self.either else ", ").join(self.names), "mentioning {}"),
            (", ".join(self.components), "written by {}"),
            (", ".join(self.words), "with the words {}"),
            (" or ".join(self.words_any), "with the words {}"),
            (" or ".join((*self.none_of, *self.words_none)), "without {}"),
            (self.period.text if self.period else "", "{}"),
            (list_files(self.documents), "in {}"),
            ("" if self.last is None else str(self.last + 1), "before line {}"),
            ("" if self.first is None else str(self.first - 1), "after line {}"),
        )
        return " ".join(form.format(value) for value, form in said if value)


def read(arguments: Mapping[str, Any], documents: Sequence[Document]) -> LineQuery:
    """Read a model's arguments. `documents`: the documents to search.

    Raises:
        QueryRefused: a field has no valid value, or fields contradict each other.
    """
    group_by = _one_of(arguments, "group_by", GROUPS)
    line = _number(arguments, "line", 1, 10**9)
    usual: Mode = "context" if line is not None else "count" if group_by else "list"
    mode = _one_of(arguments, "mode", MODES) or usual
    regex, key = _regex(arguments), _text(arguments, "key")
    if group_by == "capture" and regex is None:
        raise QueryRefused("group_by capture needs a regex, with the part to group by in round brackets.")
    if group_by == "key" and not key:
        raise QueryRefused("group_by key needs key, the name whose values are counted, such as user of user=root.")
    around = _AROUND if mode == "context" else 0
    file, component = _text(arguments, "file"), _text(arguments, "component")
    return LineQuery(
        file=file,
        documents=_documents(file, documents),
        all_of=_texts(arguments, "all_of"),
        any_of=_texts(arguments, "any_of"),
        none_of=_texts(arguments, "none_of"),
        regex=regex,
        levels=_levels(arguments),
        components=() if component is None else (component,),
        period=_period(arguments),
        line=line,
        before=_number(arguments, "before", 0, MAX_AROUND, around) or 0,
        after=_number(arguments, "after", 0, MAX_AROUND, around) or 0,
        mode=mode,
        order=_one_of(arguments, "order", ORDERS) or "time",
        group_by=group_by,
        key=key,
        top=_number(arguments, "top", 1, MAX_TOP, _TOP) or _TOP,
        offset=_number(arguments, "offset", 0, MAX_OFFSET, 0) or 0,
        limit=_number(arguments, "limit", 1, MAX_LINES, _DEFAULT_LIMIT[mode]) or 0,
    )


def _documents(file: str | None, documents: Sequence[Document]) -> tuple[Document, ...]:
    if file is None:
        return tuple(documents)
    name = file.casefold()
    by_name = [doc for doc in documents if doc.filename.casefold() == name]
    by_last = [doc for doc in documents if doc.filename.casefold().rsplit("/", 1)[-1] == name]
    if found := by_name or by_last:
        return tuple(found)
    there = ", ".join(doc.filename for doc in documents)
    raise QueryRefused(f"There is no file {file}; there are: {there}.")


def _text(arguments: Mapping[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise QueryRefused(f"{name} has to be text.")
    if len(value) > LONGEST_LITERAL:
        raise QueryRefused(f"{name} may have {LONGEST_LITERAL} characters.")
    return value.strip() or None


def _texts(arguments: Mapping[str, Any], name: str) -> tuple[str, ...]:
    given = arguments.get(name)
    if given is None:
        return ()
    values = cast("list[Any]", given) if isinstance(given, list) else [given]
    if not all(isinstance(value, str) for value in values):
        raise QueryRefused(f"{name} has to be a list of texts.")
    kept = tuple(dict.fromkeys(value.strip() for value in values if value.strip()))
    if len(kept) > MAX_LITERALS or any(len(value) > LONGEST_LITERAL for value in kept):
        raise QueryRefused(f"{name} may hold {MAX_LITERALS} texts of {LONGEST_LITERAL} characters.")
    return kept


def _number(arguments: Mapping[str, Any], name: str, least: int, most: int, usual: int | None = None) -> int | None:
    value = arguments.get(name)
    if value is None:
        return usual
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise QueryRefused(f"{name} has to be a whole number from {least} to {most}.")
    return value


def _one_of(arguments: Mapping[str, Any], name: str, allowed: Sequence[T]) -> T | None:
    value = _text(arguments, name)
    found = next((each for each in allowed if value is not None and each == value.casefold()), None)
    if value is not None and found is None:
        raise QueryRefused(f"{name} has to be one of: {', '.join(allowed)}.")
    return found


def _levels(arguments: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    named = _texts(arguments, "level")
    unknown = [name for name in named if name.casefold() not in LEVELS]
    if unknown:
        raise QueryRefused(f"{unknown[0]} is no level; levels are {', '.join(prepared.LEVELS)}.")
    return tuple(LEVELS[name.casefold()] for name in named)


def _regex(arguments: Mapping[str, Any]) -> Pattern | None:
    pattern = arguments.get("regex")
    if pattern is None or pattern == "":
        return None
    if not isinstance(pattern, str):
        raise QueryRefused("regex has to be text.")
    try:
        return compile_pattern(pattern)
    except PatternRefused as reason:
        raise QueryRefused(f"{reason}.") from None


def _period(arguments: Mapping[str, Any]) -> Period | None:
    try:
        return times.window(_text(arguments, "since"), _text(arguments, "until"))
    except ValueError as wrong:
        raise QueryRefused(
            f"{wrong} is no time that can be read here; write 2024-05-01, 14:32, 14:32:15, Jun 14 15:16 or "
            "2024-05-01 14:32:15, and since and until in the same way."
        ) from None
