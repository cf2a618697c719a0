"""Ids, timestamps and week files of QA pairs (SPEC 6, "Ids"). Functions raise BadId for anything else.

An id is the time stamp of its capture (RFC 3339, UTC): `2026-02-01T03:10:56.228000Z` → `qa_20260201_031056.228000`.
Ours have six digits of fraction. Others may have any number or none, so ids are compared as instants.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache

from clock import rfc3339

_TIMESTAMP = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,30}))?Z")
_ID = re.compile(r"qa_([0-9]{4})([0-9]{2})([0-9]{2})_([0-9]{2})([0-9]{2})([0-9]{2})(?:\.([0-9]{1,30}))?")


class Malformed(ValueError):
    """A block cannot be read, or the fields of a pair do not fit together; the message says why."""


class BadId(Malformed):
    """Not the id of a pair, or not a time stamp: the message shows it and the form expected."""


def qa_id(timestamp: str) -> str:
    """The id of the pair captured at `timestamp`, with as many digits of fraction."""
    timestamp_instant(timestamp)
    return "qa_" + timestamp.removesuffix("Z").replace("-", "").replace(":", "").replace("T", "_")


def instant(pair_id: str) -> Decimal:
    """Return when the pair with this id was captured, in exact seconds since 1970."""
    return _instant(_ID, pair_id, "qa_20260201_031056.228000")


def timestamp_instant(timestamp: str) -> Decimal:
    """Return a timestamp as exact seconds since 1970."""
    return _instant(_TIMESTAMP, timestamp, "2026-02-01T03:10:56.228000Z")


def check(pair_id: str, timestamp: str) -> Decimal:
    """Return the instant that id and timestamp both name. Raises Malformed: one is invalid, or they differ."""
    key = instant(pair_id)
    if key != timestamp_instant(timestamp):
        raise Malformed(f"id {pair_id} and timestamp {timestamp} differ")
    return key


def next_timestamp(now: float, last: str | None) -> str:
    """Return the timestamp for a capture at `now` (seconds since 1970); `last`: that of the newest pair.

    Time stamps of one archive strictly increase: it is a microsecond after `last` if the clock is not past that.
    """
    timestamp = rfc3339(now, digits=6)
    if last is None or timestamp_instant(timestamp) > (before := timestamp_instant(last)):
        return timestamp
    micros = int(before * 1_000_000) + 1
    whole = datetime.fromtimestamp(micros // 1_000_000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{micros % 1_000_000:06d}Z"


def week_file(captured: Decimal) -> str:
    """The archive file of a capture at this instant: its ISO year and week, in UTC."""
    year, week, _ = datetime.fromtimestamp(int(captured), UTC).isocalendar()
    return f"{year}-W{week:02d}.txt"


@lru_cache(maxsize=512)  # pairs know theirs; decisions and texts ask about the newest
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
