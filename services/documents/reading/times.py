"""The time formats of log lines.

A time in UTC is written with `Z`, the writer's local time without. Where a log leaves the year out it is written as
0000 (0001 after the turn of the year), and where the day is not known either, as 0000-00-01 (the next day after
midnight): so that times still sort, and times of day are found in their usual place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import NamedTuple

REACH = 160  # characters of a line in which its time is searched

_MAX_FRACTION = 6
_HALF_A_YEAR = 6
_NOON = "12"
_MAX_MONTHS, _MAX_DAYS, _MAX_UNKNOWN_DAYS = 12, 31, 99
_EPOCH_SECONDS = range(10**9, 10**10)  # from 2001 to 2286
_LATEST = 10**19  # in nanoseconds; JSON can hold what no float does, and Python reads NaN and 1e400 in it

_MONTH_NAMES = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_MONTHS = {name: f"{number:02d}" for number, name in enumerate(_MONTH_NAMES.split("|"), start=1)}
_MONTH = rf"(?P<month>{_MONTH_NAMES})"
_DAYS = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MARK = re.compile("[./-]")
_DATE = r"(?P<month>0[1-9]|1[0-2]){}(?P<day>0[1-9]|[12][0-9]|3[01])"
# 18:01:47,978 · 06:01:47 PM · 6:01:47 p.m.: an hour has one digit only before AM or PM
_HOUR = r"(?:[01][0-9]|2[0-3]|[1-9](?=[0-9:.,]{6,16}\s?[AaPp]\.?[Mm]))"
_HALF = r"(?:\s?(?P<half>[AaPp]\.?[Mm](?![\w-])\.?))?"
_CLOCK = rf"(?P<clock>{_HOUR}:[0-5][0-9]:(?:[0-5][0-9]|60))(?:[.,](?P<fraction>[0-9]{{1,9}}))?{_HALF}"
_ZONE = r"(?:\s?(?P<zone>Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})(?![\w:]))?"
_LEAD = r"(?:[\w.-]{1,60} {0,40}\| {0,4})?[\[(<\"']?"
"""A time may follow the name that docker compose writes, or a bracket."""


class Stamp(NamedTuple):
    """A time in a line."""

    start: int  # the positions in the line of its begin and, in `end`, of its end
    end: int
    moment: str  # such as `2015-10-18T18:01:47`
    fraction: str  # the digits behind the second: `978`
    zone: str  # `Z` or nothing
    local: str  # the moment in the writer's local time, as in the file
    date: str = ""  # a date in which day and month may be swapped, such as `3/5/2031`

    @property
    def local_time(self) -> str:
        return f"{self.local}.{self.fraction[:_MAX_FRACTION].ljust(_MAX_FRACTION, '0')}"


def _format(pattern: str) -> re.Pattern[str]:
    # Groups that a format lacks never match, so that all formats are read alike.
    for group in ("fraction", "zone", "year", "month", "day", "clock", "half", "date", "digits", "seconds"):
        if f"(?P<{group}>" not in pattern:
            pattern += f"(?P<{group}>(?!))?"
    return re.compile(pattern)


_FORMATS = (
    # 2015-10-18 18:01:47,978 · 2015-10-18T18:01:47.978+02:00 · 2015/10/18 18:01:47, perhaps behind some fields
    rf"(?s:.{{0,120}}?)(?<![0-9])(?P<stamp>(?P<year>(?:19|20)[0-9]{{2}})[-/]{_DATE.format('[-/]')}[T ]{_CLOCK}{_ZONE})",
    # [Sun Dec 04 04:47:44 2005]
    rf"{_LEAD}(?P<stamp>{_DAYS} {_MONTH} {{1,2}}(?P<day>[0-9]{{1,2}}) {_CLOCK} (?P<year>[0-9]{{4}}))",
    # Jun 14 15:16:01
    rf"(?:<[0-9]{{1,3}}>)?{_LEAD}(?P<stamp>{_MONTH} {{1,2}}(?P<day>[0-9]{{1,2}}) {_CLOCK})",
    # 081109 203615
    rf"(?P<stamp>(?P<year>[0-9]{{2}}){_DATE.format('')} (?P<digits>(?:[01][0-9]|2[0-3])(?:[0-5][0-9]){{2}}))(?![0-9])",
    # 17/06/09 20:10:40
    rf"{_LEAD}(?P<stamp>(?P<year>[0-9]{{2}})/{_DATE.format('/')} {_CLOCK})",
    # 10/Oct/2000:13:55:36 -0700, of web servers, behind address and user
    rf"[^\[]{{0,120}}\[(?P<stamp>(?P<day>[0-9]{{2}})/{_MONTH}/(?P<year>[0-9]{{4}}):{_CLOCK}{_ZONE})",
    # 18-Oct-2015 18:01:47.978 · 18 Oct 2015 18:01:47
    rf"{_LEAD}(?P<stamp>(?P<day>[0-9]{{1,2}})[- ]{_MONTH}[- ](?P<year>[0-9]{{4}}) {_CLOCK}{_ZONE})",
    # E0611 15:23:01.123456
    rf"[IWEF](?P<stamp>{_DATE.format('')} {{1,2}}{_CLOCK})",
    # 05-01 18:01:47.978
    rf"(?P<stamp>{_DATE.format('-')} {_CLOCK})",
    # Oct 18, 2015 6:01:47 PM
    rf"{_LEAD}(?P<stamp>{_MONTH} (?P<day>[0-9]{{1,2}}), (?P<year>[0-9]{{4}}),? {_CLOCK})",
    # 10/18/2015 6:01:47 PM, 18-10-2015 18:01:47: `settle` finds out which number is the day
    rf"{_LEAD}(?P<stamp>(?P<date>[0-9]{{1,2}}[./-][0-9]{{1,2}}[./-][0-9]{{4}}),? {_CLOCK})",
    # 1445144423.722, 1445144423722
    rf"{_LEAD}(?P<stamp>(?P<seconds>1[0-9]{{9}})(?:[.,]?(?P<fraction>[0-9]{{3,9}}))?)(?![\w.])",
    # 18:01:47.978
    rf"{_LEAD}(?P<stamp>{_CLOCK})(?![\w:])",
)
_COMPILED = tuple(map(_format, _FORMATS))


class TimeReader:
    """Reads the times of one file line by line. A file keeps to one format, so the format found last is tried first."""

    def __init__(self) -> None:
        self._formats = list(_COMPILED)
        self._first_month = 0
        self._last_clock = ""
        self._day = 1

    def read(self, line: str) -> Stamp | None:
        """Return the first time near the beginning of `line`; None: there is none."""
        for rank, form in enumerate(self._formats):
            if found := form.match(line, 0, REACH):
                if rank:
                    self._formats.insert(0, self._formats.pop(rank))
                return self._stamp(found)
        return None

    def _stamp(self, found: re.Match[str]) -> Stamp:
        if found["seconds"]:
            local = moment = of_epoch(float(found["seconds"])).moment
            zone = "Z"
        elif given := found["zone"]:
            local = _moment(found)
            moment, zone = _in_utc(local, given)
        else:
            local = moment = self._with_date(_moment(found), dayless=found["month"] is None)
            zone = ""
        return Stamp(
            found.start("stamp"), found.end("stamp"), moment, found["fraction"] or "", zone, local, found["date"] or ""
        )

    def _with_date(self, moment: str, *, dayless: bool) -> str:
        if not moment.startswith("0000"):
            return moment
        if dayless:
            clock = moment[11:]
            if clock[:2] < _NOON <= self._last_clock[:2] and self._day < _MAX_UNKNOWN_DAYS:  # past midnight
                self._day += 1
            self._last_clock = clock
            return f"{_unknown_day(self._day)}T{clock}"
        month = int(moment[5:7])
        self._first_month = self._first_month or month
        return "0001" + moment[4:] if self._first_month - month > _HALF_A_YEAR else moment


def _moment(found: re.Match[str]) -> str:
    """Build the moment of a match. Without a month the date is ambiguous or missing, and is left out: 0000-00-01."""
    year, month, clock = found["year"] or "0000", found["month"], found["clock"]
    if len(year) == len("17"):
        year = f"20{year}"
    if digits := found["digits"]:
        clock = f"{digits[:2]}:{digits[2:4]}:{digits[4:]}"
    if half := found["half"]:
        hour, rest = clock.split(":", 1)
        if hour <= _NOON or len(hour) == 1:  # some programs write 18:01:47 PM
            clock = f"{int(hour) % 12 + (12 if half[0] in 'Pp' else 0):02d}:{rest}"
    if month is None:
        return f"{_unknown_day(1)}T{clock}"
    return f"{year}-{_MONTHS.get(month, month)}-{int(found['day']):02d}T{clock}"


def settle(stamps: Sequence[Stamp | None]) -> list[Stamp | None]:
    """Return the times of one file with the days of dates in which day and month may be swapped.

    A number over 12 is the day, and shows the order for the whole file; where none does, dates with dots begin with the
    day. Other days stay unknown, also where dates contradict each other; they sort as they first appear.
    """
    readings = {said: _readings(said) for said in {stamp.date: None for stamp in stamps if stamp and stamp.date}}
    shown = {(_MARK.findall(said)[0], *orders) for said, orders in readings.items() if len(orders) == 1}
    days: dict[str, str] = {}
    for said, orders in readings.items():
        mark = _MARK.findall(said)[0]
        usual = {order for order in orders if (mark, order) in shown} or ({True} if mark == "." else set(orders))
        possible = {day for order, day in orders.items() if len(orders) == 1 or order in usual}
        days[said] = possible.pop() if len(possible) == 1 else _unknown_day(len(days) + 1)
    return [_on_day(stamp, days[stamp.date]) if stamp and stamp.date else stamp for stamp in stamps]


def _readings(said: str) -> dict[bool, str]:
    """Return the days that a date such as `3/16/2031` may be: by True with the day first, by False with the month."""
    first, second, year = map(int, _MARK.split(said))
    pairs = {True: (first, second), False: (second, first)}
    return {
        day_first: f"{year:04d}-{month:02d}-{day:02d}"
        for day_first, (day, month) in pairs.items()
        if 0 < day <= _MAX_DAYS and 0 < month <= _MAX_MONTHS
    }


def _unknown_day(number: int) -> str:
    return f"0000-00-{min(number, _MAX_UNKNOWN_DAYS):02d}"


def _on_day(stamp: Stamp, day: str) -> Stamp:
    moment = day + stamp.moment[len(day) :]
    return stamp._replace(moment=moment, local=moment)


def of_epoch(seconds: float) -> Stamp:
    """Return the time that is so many seconds after 1970, to the millisecond."""
    whole, millis = divmod(round(seconds * 1000), 1000)
    moment = f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}"
    return Stamp(0, 0, moment, f"{millis:03d}" if millis else "", "Z", moment)


def of_value(value: object) -> Stamp | None:
    """Return the time in a field of a JSON record: text in any of the formats, or seconds to nanoseconds since 1970."""
    if isinstance(value, str):
        return TimeReader().read(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _LATEST:
        return None
    seconds = float(value)
    for _ in range(4):  # from seconds down to nanoseconds
        if int(seconds) in _EPOCH_SECONDS:
            return of_epoch(seconds)
        seconds /= 1000
    return None


def timestamp(stamp: Stamp, digits: int) -> str:
    """Format a time with a fixed number of fraction digits: the same number in one file, so that times sort as text."""
    fraction = stamp.fraction[:digits].ljust(digits, "0")
    return f"{stamp.moment}.{fraction}{stamp.zone}" if digits else stamp.moment + stamp.zone


def digits_needed(stamps: list[Stamp | None]) -> int:
    return min(_MAX_FRACTION, max((len(stamp.fraction) for stamp in stamps if stamp), default=0))


def seconds_of(moment: str) -> int:
    """Return the seconds from a fixed day to `moment`. A day that does not exist counts roughly."""
    hours, minutes, seconds = map(int, moment[11:19].split(":"))
    return _ordinal(moment[:10]) * 86400 + hours * 3600 + minutes * 60 + seconds


@lru_cache(maxsize=1000)
def _ordinal(day: str) -> int:
    year, month, number = map(int, day.split("-"))
    try:
        return date(year + 400, month, number).toordinal()  # there is no year 0, and the calendar repeats after 400
    except ValueError:
        return (year * 12 + month) * 31 + number


def _in_utc(moment: str, zone: str) -> tuple[str, str]:
    if zone[0] not in "+-":
        return moment, "Z"
    minute = _minute_in_utc(moment[:16], zone)
    return (minute + moment[16:], "Z") if minute else (moment, "")


@lru_cache(maxsize=10_000)
def _minute_in_utc(minute: str, zone: str) -> str:
    try:
        return f"{datetime.fromisoformat(minute + ':00' + zone).astimezone(UTC):%Y-%m-%dT%H:%M}"
    except (ValueError, OverflowError):
        return ""
