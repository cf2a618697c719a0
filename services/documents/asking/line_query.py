"""A question about lines, filled in like a form: read from a model's arguments, or refused in one sentence."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

from services.documents.asking import linear, times
from services.documents.asking.times import Period
from services.documents.asking.vocabulary import LEVELS
from services.documents.store.protocol import Document

T = TypeVar("T", bound=str)

Mode = Literal["count", "list", "first", "last", "context"]
Order = Literal["time", "file"]
GroupBy = Literal["level", "day", "hour", "component", "thread", "address", "message", "key", "capture"]

MODES: tuple[Mode, ...] = ("count", "list", "first", "last", "context")
ORDERS: tuple[Order, ...] = ("time", "file")
GROUPS: tuple[GroupBy, ...] = ("level", "day", "hour", "component", "thread", "address", "message", "key", "capture")

MOST_LITERALS = 10
LONGEST_LITERAL = 200
MOST_LINES = 100
MOST_AROUND = 50
MOST_TOP = 100
MOST_OFFSET = 100_000
_DEFAULT_LIMIT: Mapping[Mode, int] = {"count": 0, "list": 20, "first": 1, "last": 1, "context": 3}
_AROUND = 5
_TOP = 20


class QueryRefused(Exception):
    """What is wrong with a form, in one sentence that says how to fill it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineQuery:
    """Which lines, and what of them.

    Attributes:
        file: as it was given; None: all files. `documents`: those that are meant.
        limit: how many lines, or places in `context`, are shown. `top`: how many groups.
    """

    file: str | None = None
    documents: tuple[Document, ...] = ()
    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    regex: re.Pattern[str] | None = None
    levels: tuple[tuple[str, ...], ...] = ()  # each that was named, with what it may be called besides
    component: str | None = None
    period: Period | None = None
    line: int | None = None
    before: int = 0
    after: int = 0
    mode: Mode = "list"
    order: Order = "time"
    group_by: GroupBy | None = None
    key: str | None = None
    top: int = _TOP
    offset: int = 0
    limit: int = 20


def read(arguments: Mapping[str, Any], documents: Sequence[Document]) -> LineQuery:
    """The form that a model filled in. `documents`: those that may be asked about.

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
    file = _text(arguments, "file")
    return LineQuery(
        file=file,
        documents=_documents(file, documents),
        all_of=_texts(arguments, "all_of"),
        any_of=_texts(arguments, "any_of"),
        none_of=_texts(arguments, "none_of"),
        regex=regex,
        levels=_levels(arguments),
        component=_text(arguments, "component"),
        period=_period(arguments),
        line=line,
        before=_number(arguments, "before", 0, MOST_AROUND, around) or 0,
        after=_number(arguments, "after", 0, MOST_AROUND, around) or 0,
        mode=mode,
        order=_one_of(arguments, "order", ORDERS) or "time",
        group_by=group_by,
        key=key,
        top=_number(arguments, "top", 1, MOST_TOP, _TOP) or _TOP,
        offset=_number(arguments, "offset", 0, MOST_OFFSET, 0) or 0,
        limit=_number(arguments, "limit", 1, MOST_LINES, _DEFAULT_LIMIT[mode]) or 0,
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
    if len(kept) > MOST_LITERALS or any(len(value) > LONGEST_LITERAL for value in kept):
        raise QueryRefused(f"{name} may hold {MOST_LITERALS} texts of {LONGEST_LITERAL} characters.")
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
        raise QueryRefused(f"{unknown[0]} is no level; levels are FATAL, CRITICAL, ERROR, WARN, INFO, DEBUG, TRACE.")
    return tuple(LEVELS[name.casefold()] for name in named)


def _regex(arguments: Mapping[str, Any]) -> re.Pattern[str] | None:
    pattern = arguments.get("regex")
    if pattern is None or pattern == "":
        return None
    if not isinstance(pattern, str):
        raise QueryRefused("regex has to be text.")
    try:
        return linear.compiled(pattern)
    except linear.Refused as reason:
        raise QueryRefused(f"{reason}.") from None


def _period(arguments: Mapping[str, Any]) -> Period | None:
    try:
        return times.window(_text(arguments, "since"), _text(arguments, "until"))
    except ValueError as wrong:
        raise QueryRefused(
            f"{wrong} is no time that can be read here; write 2024-05-01, 14:32, 14:32:15, Jun 14 15:16 or "
            "2024-05-01 14:32:15, and since and until in the same way."
        ) from None
