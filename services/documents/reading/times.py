"""When a line was logged: the time formats of logs (DOCUMENT_QA 4.4).

A time in UTC is written with `Z`, the writer's local time without. Where a log leaves the year out it is written as
0000 (0001 after the turn of the year), and where it leaves the day out as well, as 0000-01-01 (the next day after
midnight): so that times still sort, and times of day are found in their usual place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import NamedTuple


class Stamp(NamedTuple):
    start: int
    end: int
    """Where in the line it stands."""
    moment: str
    """`2015-10-18T18:01:47`"""
    fraction: str
    """Digits of the second: `978`."""
    zone: str
    """`Z` or nothing."""


_MONTHS = {
    name: f"{number:02d}"
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}

_MONTH = r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAYS = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"(?P<clock>(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60))(?:[.,](?P<fraction>[0-9]{1,9}))?"
_ZONE = r"(?:\s?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})(?![\w:]))?"
_HALF = r"(?P<clock>(?:0?[1-9]|1[0-2]):[0-5][0-9]:[0-5][0-9])(?:[.,](?P<fraction>[0-9]{1,9}))?\s(?P<half>[AaPp][Mm])"
_LEAD = r"(?:[\w.-]{1,60} {0,40}\| {0,4})?[\[(<\"']?"
"""What may stand in front: the name that docker compose writes, a bracket."""


def _iso(found: re.Match[str]) -> str:
    return f"{found['year']}-{found['month']}-{found['day']}T{found['clock']}"


def _short(found: re.Match[str]) -> str:
    return f"20{found['year']}-{found['month']}-{found['day']}T{found['clock']}"


def _compact(found: re.Match[str]) -> str:
    clock = found["digits"]
    return f"20{found['year']}-{found['month']}-{found['day']}T{clock[:2]}:{clock[2:4]}:{clock[4:]}"


def _named(found: re.Match[str]) -> str:
    return f"{found['year']}-{_MONTHS[found['month'].lower()]}-{int(found['day']):02d}T{found['clock']}"


def _yearless(found: re.Match[str]) -> str:
    return f"0000-{_MONTHS[found['month'].lower()]}-{int(found['day']):02d}T{found['clock']}"


def _klog(found: re.Match[str]) -> str:
    return f"0000-{found['month']}-{found['day']}T{found['clock']}"


def _dayless(found: re.Match[str]) -> str:
    return f"0000-01-01T{found['clock']}"


def _half_day(found: re.Match[str]) -> str:
    """Hours up to twelve, twice a day; with the name of the month, or with a date that may be read in two ways."""
    hour, rest = found["clock"].split(":", 1)
    clock = f"{int(hour) % 12 + (12 if found['half'].upper() == 'PM' else 0):02d}:{rest}"
    if "month" not in found.re.groupindex:
        return f"0000-01-01T{clock}"
    return f"{found['year']}-{_MONTHS[found['month'].lower()]}-{int(found['day']):02d}T{clock}"


def _epoch(found: re.Match[str]) -> str:
    return of_epoch(float(found["seconds"])).moment


class Format(NamedTuple):
    pattern: re.Pattern[str]
    moment: Callable[[re.Match[str]], str]


def _format(pattern: str, moment: Callable[[re.Match[str]], str]) -> Format:
    # Patterns without a fraction or a zone get groups that never match, so that all are read alike.
    for group in ("fraction", "zone"):
        if f"(?P<{group}>" not in pattern:
            pattern += f"(?P<{group}>(?!))?"
    return Format(re.compile(pattern), moment)


_DATE = r"(?P<month>0[1-9]|1[0-2]){s}(?P<day>0[1-9]|[12][0-9]|3[01])"

FORMATS = (
    # 2015-10-18 18:01:47,978 · 2015-10-18T18:01:47.978+02:00 · 2015/10/18 18:01:47, perhaps behind some fields
    _format(
        r"(?s:.{0,120}?)(?<![0-9])(?P<stamp>"
        rf"(?P<year>(?:19|20)[0-9]{{2}})[-/]{_DATE.format(s='[-/]')}[T ]{_CLOCK}{_ZONE})",
        _iso,
    ),
    # [Sun Dec 04 04:47:44 2005]
    _format(
        rf"{_LEAD}(?P<stamp>{_DAYS} {_MONTH} {{1,2}}(?P<day>[0-9]{{1,2}}) {_CLOCK} (?P<year>[0-9]{{4}}))",
        _named,
    ),
    # Jun 14 15:16:01
    _format(rf"(?:<[0-9]{{1,3}}>)?{_LEAD}(?P<stamp>{_MONTH} {{1,2}}(?P<day>[0-9]{{1,2}}) {_CLOCK})", _yearless),
    # 081109 203615
    _format(
        rf"(?P<stamp>(?P<year>[0-9]{{2}}){_DATE.format(s='')} "
        r"(?P<digits>(?:[01][0-9]|2[0-3])[0-5][0-9][0-5][0-9]))(?![0-9])",
        _compact,
    ),
    # 17/06/09 20:10:40
    _format(rf"{_LEAD}(?P<stamp>(?P<year>[0-9]{{2}})/{_DATE.format(s='/')} {_CLOCK})", _short),
    # 10/Oct/2000:13:55:36 -0700, of web servers, behind address and user
    _format(
        rf"[^\[]{{0,120}}\[(?P<stamp>(?P<day>[0-9]{{2}})/{_MONTH}/(?P<year>[0-9]{{4}}):{_CLOCK}{_ZONE})",
        _named,
    ),
    # 18-Oct-2015 18:01:47.978 · 18 Oct 2015 18:01:47
    _format(rf"{_LEAD}(?P<stamp>(?P<day>[0-9]{{1,2}})[- ]{_MONTH}[- ](?P<year>[0-9]{{4}}) {_CLOCK}{_ZONE})", _named),
    # E0611 15:23:01.123456
    _format(rf"[IWEF](?P<stamp>{_DATE.format(s='')} {{1,2}}{_CLOCK})", _klog),
    # 05-01 18:01:47.978
    _format(rf"(?P<stamp>{_DATE.format(s='-')} {_CLOCK})", _klog),
    # Oct 18, 2015 6:01:47 PM
    _format(rf"{_LEAD}(?P<stamp>{_MONTH} (?P<day>[0-9]{{1,2}}), (?P<year>[0-9]{{4}}),? {_HALF})", _half_day),
    # 10/18/2015 6:01:47 PM, 18-10-2015 18:01:47: day and month may stand the other way round
    _format(rf"{_LEAD}(?P<stamp>[0-9]{{1,2}}[./-][0-9]{{1,2}}[./-][0-9]{{4}},? {_HALF})", _half_day),
    _format(rf"{_LEAD}(?P<stamp>[0-9]{{1,2}}[./-][0-9]{{1,2}}[./-][0-9]{{4}},? {_CLOCK})", _dayless),
    # 1445144423.722, 1445144423722
    _format(rf"{_LEAD}(?P<stamp>(?P<seconds>1[0-9]{{9}})(?:[.,]?(?P<fraction>[0-9]{{3,9}}))?)(?![\w.])", _epoch),
    # 18:01:47.978
    _format(rf"{_LEAD}(?P<stamp>{_CLOCK})(?![\w:])", _dayless),
)
ABSOLUTE = frozenset({_epoch})
DAYLESS = frozenset({_dayless, _half_day})


def of_epoch(seconds: float) -> Stamp:
    """So many seconds since 1970, to the millisecond."""
    whole, millis = divmod(round(seconds * 1000), 1000)
    moment = datetime.fromtimestamp(whole, UTC)
    return Stamp(0, 0, f"{moment:%Y-%m-%dT%H:%M:%S}", f"{millis:03d}" if millis else "", "Z")


REACH = 160
"""How far into a line its time is looked for."""

_MOST_FRACTION = 6
_HALF_A_YEAR = 6
_NOON = "12"
_SHORTEST_MONTH = 28
_EPOCH_SECONDS = range(10**9, 10**10)
"""From 2001 to 2286."""


class TimeReader:
    """Reads the times of one file, line by line: a file keeps to one format, so that is tried first."""

    def __init__(self) -> None:
        self._formats = list(FORMATS)
        self._utc: dict[tuple[str, str], str] = {}
        self._first_month = 0
        self._last_clock = ""
        self._day = 1

    def read(self, line: str) -> Stamp | None:
        """The first time near the beginning of `line`."""
        for rank, form in enumerate(self._formats):
            found = form.pattern.match(line, 0, REACH)
            if found is None:
                continue
            if rank:
                self._formats.insert(0, self._formats.pop(rank))
            return self._stamp(form, found)
        return None

    def _stamp(self, form: Format, found: re.Match[str]) -> Stamp:
        moment = form.moment(found)
        zone = "Z" if form.moment in ABSOLUTE else ""
        if given := found["zone"]:
            moment, zone = self._in_utc(moment, given)
        elif moment.startswith("0000"):
            moment = self._dated(moment, form.moment in DAYLESS)
        return Stamp(found.start("stamp"), found.end("stamp"), moment, found["fraction"] or "", zone)

    def _in_utc(self, moment: str, zone: str) -> tuple[str, str]:
        if zone[0] not in "+-":
            return moment, "Z"
        key = moment[:16], zone
        if key not in self._utc:
            self._utc[key] = _minute_in_utc(*key)
        return (self._utc[key] + moment[16:], "Z") if self._utc[key] else (moment, "")

    def _dated(self, moment: str, dayless: bool) -> str:
        if dayless:
            clock = moment[11:]
            if clock[:2] < _NOON <= self._last_clock[:2] and self._day < _SHORTEST_MONTH:  # past midnight
                self._day += 1
            self._last_clock = clock
            return f"0000-01-{self._day:02d}T{clock}"
        month = int(moment[5:7])
        self._first_month = self._first_month or month
        return "0001" + moment[4:] if self._first_month - month > _HALF_A_YEAR else moment


def of_value(value: object) -> Stamp | None:
    """The time in a field of a JSON record: text of any of the formats, or seconds or milliseconds since 1970."""
    if isinstance(value, str):
        return TimeReader().read(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = float(value)
    for _ in range(4):  # from seconds down to nanoseconds
        if int(seconds) in _EPOCH_SECONDS:
            return of_epoch(seconds)
        seconds /= 1000
    return None


def written(stamp: Stamp, digits: int) -> str:
    """The time as text, with so many digits of fraction: equally many in one file, so that it sorts as text."""
    fraction = stamp.fraction[:digits].ljust(digits, "0")
    return f"{stamp.moment}.{fraction}{stamp.zone}" if digits else stamp.moment + stamp.zone


def digits_needed(stamps: list[Stamp | None]) -> int:
    return min(_MOST_FRACTION, max((len(stamp.fraction) for stamp in stamps if stamp), default=0))


class Gaps:
    """Tells where much time lies between two lines."""

    def __init__(self, seconds: int) -> None:
        self._most = seconds
        self._days: dict[str, int] = {}
        self._last = ""
        self._last_seconds = 0

    def before(self, moment: str) -> bool:
        """Whether more than so many seconds lie between the moment that was asked about last and this one."""
        if moment == self._last:
            return False
        seconds = self._seconds(moment)
        gap = bool(self._last) and abs(seconds - self._last_seconds) > self._most
        self._last, self._last_seconds = moment, seconds
        return gap

    def _seconds(self, moment: str) -> int:
        day = moment[:10]
        if day not in self._days:
            self._days[day] = _ordinal(day)
        return self._days[day] * 86400 + int(moment[11:13]) * 3600 + int(moment[14:16]) * 60 + int(moment[17:19])


def _ordinal(day: str) -> int:
    year, month, number = map(int, day.split("-"))
    try:
        return date(year + 400, month, number).toordinal()  # there is no year 0, and the calendar repeats after 400
    except ValueError:
        return (year * 12 + month) * 31 + number


def _minute_in_utc(minute: str, zone: str) -> str:
    try:
        return f"{datetime.fromisoformat(minute + ':00' + zone).astimezone(UTC):%Y-%m-%dT%H:%M}"
    except (ValueError, OverflowError):
        return ""
