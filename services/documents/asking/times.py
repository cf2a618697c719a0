"""Times that a question names, as conditions on lines: "at 14:32", "between 9:00 and 9:05" (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import NamedTuple

_CLOCK = (
    r"(?P<{p}hour>[01]?\d|2[0-3])(?::(?P<{p}minute>[0-5]\d)(?::(?P<{p}second>[0-5]\d|60)(?:[.,](?P<{p}fraction>\d{{1,9}}))?)?"
    r"(?:\s?(?P<{p}half>[ap]\.?m\b\.?))?|\s?(?P<{p}only>[ap]\.?m\b\.?))"
)
_ISO_DAY = r"(?P<{p}year>\d{{4}})[-/](?P<{p}month>\d{{2}})[-/](?P<{p}day>\d{{2}})"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_NAMED_DAY = (
    rf"(?:(?P<{{p}}name>{_MONTH})\s+(?P<{{p}}date>\d{{{{1,2}}}})(?:st|nd|rd|th)?"
    rf"|(?P<{{p}}date2>\d{{{{1,2}}}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<{{p}}name2>{_MONTH}))(?:,?\s+(?P<{{p}}year2>\d{{{{4}}}}))?"
)
_SHORT_DAY = r"(?P<{p}yy>\d{{2}})/(?P<{p}mm>\d{{2}})/(?P<{p}dd>\d{{2}})"
_BEFORE, _AFTER = r"(?<![\w.:\[/-])", r"(?![\w:\]]|[.,]\d)"
_ZONE = r"(?:\s?(?:Z|UTC|[+-]\d{{2}}:?\d{{2}})\b)?"


def _moment(prefix: str, before: str = _BEFORE) -> str:
    day = f"(?:{_ISO_DAY}|{_NAMED_DAY}|{_SHORT_DAY})"
    text = f"(?:{day}(?:(?:[T ]|,? at |,\\s)\\s*{_CLOCK}{_ZONE})?|{_CLOCK.replace('{p}', '{p}c_')}{_ZONE})"
    return f"{before}{text.format(p=prefix)}{_AFTER}"


_COMPACT = re.compile(r"(?<![\w.:-])(\d{2})(\d{2})(\d{2}) ([01]\d|2[0-3])([0-5]\d)([0-5]\d)(?![\w.:-])")
_RANGE = re.compile(
    rf"(?:\bbetween\s+{_moment('a_')}\s+(?:and|to|-|–)\s+{_moment('b_')}"
    rf"|\bfrom\s+{_moment('c_')}\s+(?:to|until|till|through|-|–)\s+{_moment('d_')}"
    rf"|{_moment('e_')}\s*(?:-|–|\bto\b|\buntil\b)\s*{_moment('f_', '')})",
    re.IGNORECASE,
)
_CLOSELY = "".join(
    rf"(?<!\b{word} )" for word in ("right", "just", "immediately", "directly", "straight", "shortly", "closely")
)
_SIDES = {
    "no later than": "until",
    "not later than": "until",
    "no earlier than": "since",
    "not earlier than": "since",
    "up to and including": "until",
    "up to": "until",
    "earlier than": "before",
    "older than": "before",
    "prior to": "before",
    "ahead of": "before",
    "later than": "after",
    "newer than": "after",
    "more recent than": "after",
    "past": "after",
    "starting from": "since",
    "starting at": "since",
    "onwards from": "since",
} | {word: word for word in ("after", "since", "before", "until", "till", "by")}
"""What limits a time on one side, and the shortest word for it."""
_SIDE = re.compile(rf"{_CLOSELY}\b(?P<side>{'|'.join(_SIDES)})\s+(?:about\s+|around\s+)?{_moment('a_')}", re.IGNORECASE)
_SINGLE = re.compile(_moment("a_"), re.IGNORECASE)

_JOINING = re.compile(r"(?:on|of|the|[\s,])*", re.IGNORECASE)
_END_OF_DAY = "24:00:00"
_LEAP_YEAR = 2000
_BOUNDS = {len("YYYY-MM-DD"): ("0000-01-01", "9999-12-31"), len("MM-DD"): ("01-01", "12-31")}
"""The first day and the last."""


class Moment(NamedTuple):
    """A day, a time of day, or both, as exact as it was written."""

    day: str | None
    """`YYYY-MM-DD`, or `MM-DD` where the year is left out."""
    start: str | None
    """Of the time of day that it covers."""
    end: str | None


@dataclass(frozen=True, slots=True)
class Period:
    """Conditions on lines, in the form of `LineWhere`, with the words they came from."""

    text: str
    clocks: tuple[str, str] | None = None
    days: tuple[str, str] | None = None
    instants: tuple[str, str] | None = None


def find(question: str) -> Period | None:
    """The first period that `question` names, with the day that stands beside it: "before 5:00 on Dec 4"."""
    period = _find(question)
    if period is None or period.clocks is None or period.days or period.instants:
        return period
    for single in _SINGLE.finditer(question):
        moment = _read(single, "a_")
        if moment is None or moment.day is None or moment.start is not None:
            continue
        first, last = sorted(((question.find(period.text), period.text), (single.start(), single[0])))
        between = question[first[0] + len(first[1]) : last[0]]
        if _JOINING.fullmatch(between):
            text = question[first[0] : last[0] + len(last[1])]
            return replace(period, text=text, days=(moment.day, moment.day))
    return period


def _find(question: str) -> Period | None:
    compact = _COMPACT.search(question)
    if compact:
        year, month, day, hour, minute, second = compact.groups()
        at = f"{hour}:{minute}:{second}"
        return _of(compact[0], Moment(f"20{year}-{month}-{day}", at, _later(at, 1_000_000)))
    spanning = _RANGE.search(question)
    if spanning:
        first, second = (("a_", "b_"), ("c_", "d_"), ("e_", "f_"))[_which(spanning)]
        return _between(spanning[0], _read(spanning, first), _read(spanning, second))
    sided = _SIDE.search(question)
    if sided:
        moment = _read(sided, "a_")
        if moment is not None:
            return _side(_SIDES[sided["side"].lower()], sided[0], moment)
    for single in _SINGLE.finditer(question):
        moment = _read(single, "a_")
        if moment is not None:
            return _of(single[0], moment)
    return None


def _which(found: re.Match[str]) -> int:
    for number, prefix in enumerate(("a_", "c_", "e_")):
        if _read(found, prefix) is not None:
            return number
    return 0


def _of(text: str, moment: Moment) -> Period:
    period = Period(text.strip())
    if moment.day is not None:
        period = replace(period, days=(moment.day, moment.day))
    if moment.start is not None and moment.end is not None:
        period = replace(period, clocks=(moment.start, moment.end))
    return period


def _between(text: str, first: Moment | None, second: Moment | None) -> Period | None:
    if first is None or second is None:
        return None
    day, last_day = first.day or second.day, second.day or first.day
    if first.start is None or second.end is None:
        return Period(text, days=(day, last_day)) if day and last_day else None
    if day and last_day and len(day) == len(last_day):
        return Period(text, instants=(f"{day}T{first.start}", f"{last_day}T{second.end}"))
    return Period(text, clocks=(first.start, second.end), days=(day, day) if day else None)


def _side(side: str, text: str, moment: Moment) -> Period | None:
    """A day is left out by "before" and "after", and is part of "since", "until", "till" and "by"."""
    after = side in {"after", "since"}
    if moment.day is None:
        if moment.start is None:
            return None
        return Period(text, clocks=(moment.start, _END_OF_DAY) if after else ("00:00:00", moment.start))
    earliest, latest = _BOUNDS[len(moment.day)]
    if moment.start is None:
        day = moment.day if side not in {"after", "before"} else _next_to(moment.day, 1 if after else -1)
        return Period(text, days=(day, latest) if after else (earliest, day))
    at = f"{moment.day}T{moment.start}"
    return Period(text, instants=(at, f"{latest}T24") if after else (f"{earliest}T00", at))


def _next_to(day: str, days: int) -> str:
    """The day before or after; of `MM-DD` in a year that has all days."""
    full = day if len(day) == len("YYYY-MM-DD") else f"{_LEAP_YEAR}-{day}"
    try:
        other = date.fromisoformat(full) + timedelta(days)
    except (ValueError, OverflowError):
        return day
    if full == day:
        return other.isoformat()
    # Before the first day of a year without a number, and after its last, there is none.
    return other.isoformat()[5:] if other.year == _LEAP_YEAR else ("00-00" if days < 0 else "13-00")


def _read(found: re.Match[str], prefix: str) -> Moment | None:
    group = found.groupdict()
    day = _day(group, prefix)
    for clock_prefix in (prefix, f"{prefix}c_"):
        hour = group.get(f"{clock_prefix}hour")
        if hour is not None:
            span = _clock(group, clock_prefix, int(hour))
            return Moment(day, *span) if span else None
    return Moment(day, None, None) if day else None


def _day(group: dict[str, str | None], prefix: str) -> str | None:
    if group.get(f"{prefix}year"):
        return f"{group[f'{prefix}year']}-{group[f'{prefix}month']}-{group[f'{prefix}day']}"
    if group.get(f"{prefix}yy"):
        return f"20{group[f'{prefix}yy']}-{group[f'{prefix}mm']}-{group[f'{prefix}dd']}"
    name = group.get(f"{prefix}name") or group.get(f"{prefix}name2")
    date = group.get(f"{prefix}date") or group.get(f"{prefix}date2")
    if not name or not date:
        return None
    month = _MONTHS.index(name[:3].lower()) + 1
    year = group.get(f"{prefix}year2")
    day = f"{month:02}-{int(date):02}"
    return f"{year}-{day}" if year else day


def _clock(group: dict[str, str | None], prefix: str, hour: int) -> tuple[str, str] | None:
    half = (group.get(f"{prefix}half") or group.get(f"{prefix}only") or "")[:1].lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    minute, second, fraction = (group.get(f"{prefix}{name}") for name in ("minute", "second", "fraction"))
    at = f"{hour:02}:{minute or '00'}:{second or '00'}"
    if second is None:
        return at, _later(at, (60 if minute else 3600) * 1_000_000)
    digits = (fraction or "")[:6]
    at += f".{digits.ljust(6, '0')}"
    return at, _later(at, 10 ** (6 - len(digits)))


def _later(at: str, microseconds: int) -> str:
    hour, minute, rest = at.split(":")
    second, _, fraction = rest.partition(".")
    total = ((int(hour) * 60 + int(minute)) * 60 + int(second)) * 1_000_000 + int(fraction.ljust(6, "0") or 0)
    total += microseconds
    seconds, micro = divmod(total, 1_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micro:06}"
