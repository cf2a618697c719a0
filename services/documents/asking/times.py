"""Reads times that a question names as conditions on lines: "at 14:32", "between 9:00 and 9:05"."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple

from services.documents.asking.vocabulary import MONTHS, SIDES

_EAST = r"[+-](?:0\d|1[0-4]):?(?:00|15|30|45)"
_CLOCK = (
    r"(?:[01]?\d|2[0-3])(?::[0-5]\d(?::(?:[0-5]\d|60)(?:[.,]\d{1,9})?)?(?:\s?[ap]\.?m\b\.?)?|\s?[ap]\.?m\b\.?)"
    rf"(?:\s?(?:Z|UTC|GMT|{_EAST})\b)?"
)
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY = (
    rf"(?:\d{{4}}[-/]\d{{2}}[-/]\d{{2}}|\d{{2}}/\d{{2}}/\d{{2}}"
    rf"|(?:{MONTH}\s++\d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}(?:st|nd|rd|th)?\s++(?:of\s++)?{MONTH})(?:,?\s++\d{{4}})?)"
)
_COMPACT = r"\d{6}\s(?:[01]\d|2[0-3])[0-5]\d[0-5]\d"
MOMENT = rf"(?:{_COMPACT}|{_DAY}(?:(?:[T ]|,?\sat\s|,\s)\s*+{_CLOCK})?|{_CLOCK})(?![\w:\]]|[.,]\d)"
"""A day, a time of day, or both."""
_SIDE = "|".join(word.replace("_", r"\s++") for words in SIDES.values() for word in words.split())
_FREE = r"(?<![\w.:\[/-])"
# Not that of a zone: `10:15:00-05:00`, `10:15 -05:00`.
_HYPHEN = (
    r"(?:-(?=\s)|(?<!\s)(?:(?<!:\d\d:\d\d)(?<![.,]\d)(?<![.,]\d{2})(?<![.,]\d{3})(?<![.,]\d{6})"
    rf"|(?!{_EAST}(?![:\d])))-)"
)
PERIOD = (
    rf"(?:\bbetween\s++({MOMENT})\s++(?:and|to|-|–)\s++({MOMENT})"
    rf"|(?:\bfrom\s++|{_FREE})({MOMENT})\s*+(?:{_HYPHEN}|–|\b(?:to|until|till|through)\b)\s*+({MOMENT})"
    rf"|\b(?:{_SIDE})\s++(?:(?:about|around)\s++)?({MOMENT})|{_FREE}({MOMENT}))"
)
"""A moment, from one to another, or all before or after one; with a group for each moment."""

_SIDED = tuple(
    (side, re.compile(words.replace(" ", "|").replace("_", r"\s++"), re.IGNORECASE)) for side, words in SIDES.items()
)
_TIME_OF_DAY = re.compile(
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?)?(?:\s?(?P<half>[ap])\.?m\b\.?)?"
    rf"(?:\s?(?P<zone>Z|UTC|GMT|{_EAST})\b)?",
    re.IGNORECASE,
)
_END_OF_DAY = "24:00:00"
_LEAP_YEAR = 2000
_BOUNDS = {len("YYYY-MM-DD"): ("0000-01-01", "9999-12-31"), len("MM-DD"): ("01-01", "12-31")}


class _Moment(NamedTuple):
    """A moment as exact as it was written: the day may be `MM-DD`; the time of day is a span."""

    day: str | None
    start: str | None = None
    end: str | None = None
    zone: int | None = None  # minutes east of UTC


@dataclass(frozen=True, slots=True)
class Period:
    """Conditions on the time of lines, in the form of `LineWhere`."""

    text: str  # the words they came from
    clocks: tuple[str, str] | None = None
    days: tuple[str, str] | None = None
    instants: tuple[str, str] | None = None
    n_moments: int = 0  # the number of moments in the text: two of a span, one of "before" or "after"
    zone: int | None = None  # minutes east of UTC, of days and times of day that the text gives with a zone


def read(text: str) -> Period:
    """Read a text that fits `PERIOD`."""
    found = _period().fullmatch(text)
    moments = [_moment(said) for said in (found.groups() if found else (text,)) if said]
    zone = _zone_of(moments)
    if len(moments) > 1:
        return replace(_between(text, *moments), n_moments=2, zone=zone)
    side = next((side for side, words in _SIDED if words.match(text)), None)
    period = replace(_before_or_after(text, side, moments[0]), n_moments=1) if side else _at(text, moments[0])
    return replace(period, zone=zone)


def window(since: str | None, until: str | None) -> Period | None:
    """Return the period between two moments, both included (`10:05` is the whole minute); None: neither is given.

    Raises:
        ValueError: one of them is no day or time of day; the message is that text.
    """
    for said in (since, until):
        if said is not None and not _one_moment().fullmatch(said.strip()):
            raise ValueError(said)
    first, last = (_moment(said.strip()) if said else _Moment(None) for said in (since, until))
    period = _window(since, until, first, last)
    return period and replace(period, zone=_zone_of((first, last)))


def _window(since: str | None, until: str | None, first: _Moment, last: _Moment) -> Period | None:
    text = " ".join(f"{word} {said}" for word, said in (("since", since), ("until", until)) if said)
    start, end = first.start or "00:00:00", last.end or _END_OF_DAY
    if not text:
        return None
    if first.day is None and last.day is None:
        return Period(text, clocks=(start, end))
    known = first.day or last.day or ""
    earliest, latest = _BOUNDS[len(known)]
    day = first.day or (known if since else earliest)
    last_day = last.day or (known if until else latest)
    if len(day) != len(last_day):
        raise ValueError(until)
    if first.start is None and last.end is None:
        return Period(text, days=(day, last_day))
    return Period(text, instants=(f"{day}T{start}", f"{last_day}T{end}"))


def without_year(period: Period) -> Period:
    """Return the same period for a log that leaves the year out."""

    def cut(span: tuple[str, str] | None) -> tuple[str, str] | None:
        return span if span is None or span[0][2:3] == "-" else (span[0][5:], span[1][5:])

    return replace(period, days=cut(period.days), instants=cut(period.instants))


@cache
def _one_moment() -> re.Pattern[str]:
    return re.compile(MOMENT, re.IGNORECASE)


@cache
def _period() -> re.Pattern[str]:
    """Return the pattern, compiled at its first use: it takes too long for start-up."""
    return re.compile(PERIOD, re.IGNORECASE)


def _at(text: str, moment: _Moment) -> Period:
    clocks = (moment.start, moment.end) if moment.start and moment.end else None
    return Period(text, clocks, (moment.day, moment.day) if moment.day else None)


def _between(text: str, first: _Moment, last: _Moment) -> Period:
    day, last_day = first.day or last.day, last.day or first.day
    days = (day, last_day) if day and last_day else None
    if first.start is None or last.end is None:
        return Period(text, days=days)
    if days and len(days[0]) == len(days[1]):
        return Period(text, instants=(f"{day}T{first.start}", f"{last_day}T{last.end}"))
    return Period(text, clocks=(first.start, last.end), days=(days[0], days[0]) if days else None)


def _before_or_after(text: str, side: str, moment: _Moment) -> Period:
    """Return the period on one side of a moment. "Before" and "after" exclude a day, "since" and "until" include it."""
    after = side in {"after", "since"}
    if moment.day is None:
        start = moment.start or ""
        return Period(text, clocks=(start, _END_OF_DAY) if after else ("00:00:00", start))
    earliest, latest = _BOUNDS[len(moment.day)]
    if moment.start is None:
        day = moment.day if side not in {"after", "before"} else _next_to(moment.day, 1 if after else -1)
        return Period(text, days=(day, latest) if after else (earliest, day))
    at = f"{moment.day}T{moment.start}"
    return Period(text, instants=(at, f"{latest}T24") if after else (f"{earliest}T00", at))


def _next_to(day: str, days: int) -> str:
    """Return the day before or after; for `MM-DD`, in a leap year."""
    full = day if len(day) == len("YYYY-MM-DD") else f"{_LEAP_YEAR}-{day}"
    try:
        other = date.fromisoformat(full) + timedelta(days)
    except (ValueError, OverflowError):
        return day
    if full == day:
        return other.isoformat()
    # A year without a number has no day before its first or after its last.
    return other.isoformat()[5:] if other.year == _LEAP_YEAR else ("00-00" if days < 0 else "13-00")


def _moment(text: str) -> _Moment:
    if re.match(_COMPACT, text):
        return _Moment(f"20{text[:2]}-{text[2:4]}-{text[4:6]}", *_span(text[7:9], text[9:11], text[11:13]))
    named = re.match(_DAY, text, re.IGNORECASE)
    day = _day(named[0]) if named else None
    clock = _TIME_OF_DAY.search(text, named.end() if named else 0)
    if clock is None:
        return _Moment(day)
    hour, half = clock["hour"], (clock["half"] or "").lower()
    if half:
        hour = str(int(hour) % 12 + (12 if half == "p" else 0))
    start, end = _span(hour, clock["minute"], clock["second"], clock["fraction"])
    return _Moment(day, start, end, _minutes_east(clock["zone"]))


def _zone_of(moments: Iterable[_Moment]) -> int | None:
    """Return the zone of the last moment that has one: "between 21:30 and 21:50 UTC" means both in UTC."""
    return next((moment.zone for moment in reversed([*moments]) if moment.zone is not None), None)


def _minutes_east(zone: str | None) -> int | None:
    if zone is None or zone[0] not in "+-":
        return None if zone is None else 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return -minutes if zone[0] == "-" else minutes


def _day(text: str) -> str:
    month = re.search(MONTH, text, re.IGNORECASE)
    numbers = re.findall(r"\d+", text)
    if month is None:
        return "-".join([f"20{numbers[0]}" if len(numbers[0]) == 2 else numbers[0], *numbers[1:]])  # noqa: PLR2004 (31/03/04)
    day = f"{MONTHS.index(month[0][:3].lower()) + 1:02}-{int(numbers[0]):02}"
    return f"{numbers[1]}-{day}" if len(numbers) > 1 else day


def _span(hour: str, minute: str | None, second: str | None, fraction: str | None = None) -> tuple[str, str]:
    """Return the span from a time of day to the end of the hour, minute, second or fraction that it names."""
    digits = (fraction or "")[:6]
    step = 10 ** (6 - len(digits)) if second else (60 if minute else 3600) * 1_000_000
    parts = f".{digits.ljust(6, '0')}" if second else ""
    total = ((int(hour) * 60 + int(minute or 0)) * 60 + int(second or 0)) * 1_000_000 + int(digits.ljust(6, "0")) + step
    seconds, micro = divmod(total, 1_000_000)
    end = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{micro:06}"
    return f"{int(hour):02}:{minute or '00'}:{second or '00'}{parts}", end
