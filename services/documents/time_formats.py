"""The forms in which logs write times, each with what makes it a moment (DOCUMENT_QA 4.4)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
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
