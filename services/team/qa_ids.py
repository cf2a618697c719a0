"""Ids, time stamps and week files of QA pairs (SPEC 6, "Ids").

An id is made of the capture's time stamp: `2026-02-01T03:10:56.228000Z` → `qa_20260201_031056.228000`. Ours carry six
digits of fraction; ids written by others, with any number or none, are read and compared as instants.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from clock import rfc3339

_TIMESTAMP = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,30}))?Z")
_ID = re.compile(r"qa_([0-9]{4})([0-9]{2})([0-9]{2})_([0-9]{2})([0-9]{2})([0-9]{2})(?:\.([0-9]{1,30}))?")


class BadId(ValueError):
    """Not the id of a pair, or not a time stamp: the message shows it and the form it should have."""


def qa_id(timestamp: str) -> str:
    """The id of the pair captured at `timestamp` (RFC 3339, UTC, `Z`), with as many digits of fraction.

    Raises:
        BadId: it is no time stamp.
    """
    timestamp_instant(timestamp)
    return "qa_" + timestamp.removesuffix("Z").replace("-", "").replace(":", "").replace("T", "_")


def instant(pair_id: str) -> Decimal:
    """When the pair of this id was captured, in seconds since 1970, exactly: ids are in the order of these.

    Raises:
        BadId: it is no id of a pair.
    """
    return _instant(_ID, pair_id, "qa_20260201_031056.228000")


def timestamp_instant(timestamp: str) -> Decimal:
    """Seconds since 1970 of a time stamp of the archive, exactly.

    Raises:
        BadId: it is no time stamp.
    """
    return _instant(_TIMESTAMP, timestamp, "2026-02-01T03:10:56.228000Z")


def next_timestamp(now: float, last: str | None) -> str:
    """The time stamp of a capture at `now` (seconds since 1970), later than `last`, that of the newest pair.

    Within one archive time stamps strictly increase: a microsecond after `last` when the clock says no later.
    """
    timestamp = rfc3339(now, digits=6)
    if last is None or timestamp_instant(timestamp) > (before := timestamp_instant(last)):
        return timestamp
    micros = int(before * 1_000_000) + 1
    whole = datetime.fromtimestamp(micros // 1_000_000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{micros % 1_000_000:06d}Z"


def week_file(timestamp: str) -> str:
    """The name of the archive file for a capture at `timestamp`: its ISO year and week, in UTC.

    Raises:
        BadId: it is no time stamp.
    """
    return week_of(timestamp_instant(timestamp))


def week_of(moment_of_capture: Decimal) -> str:
    """`week_file`, for seconds since 1970."""
    moment = datetime.fromtimestamp(int(moment_of_capture), UTC)
    year, week, _ = moment.isocalendar()
    return f"{year}-W{week:02d}.txt"


@lru_cache(maxsize=4096)
def _instant(form: re.Pattern[str], text: str, example: str) -> Decimal:
    found = form.fullmatch(text)
    if found is None:
        raise BadId(f"{text!r} is not of the form {example}")
    *fields, fraction = found.groups()
    year, month, day, hour, minute, second = map(int, fields)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise BadId(f"{text!r} is no time: {error}") from None
    # Made from digits, not by arithmetic, which would round.
    return Decimal(f"{int(moment.timestamp())}.{fraction or 0}")
