"""When a line was logged: the time formats of logs (DOCUMENT_QA 4.4).

A time in UTC is written with `Z`, the writer's local time without. Where a log leaves the year out it is written as
0000 (0001 after the turn of the year), and where it leaves the day out as well, as 0000-01-01 (the next day after
midnight): so that times still sort, and times of day are found in their usual place.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from services.documents.time_formats import ABSOLUTE, DAYLESS, FORMATS, Format, Stamp, of_epoch

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
