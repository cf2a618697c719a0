"""Reads each line of a log: its time, severity and component, and whether it continues the line before."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from services.documents.reading import log_fields
from services.documents.reading.log_fields import component
from services.documents.reading.times import Stamp, TimeReader, of_value

_TIMES = ("timestamp", "ts", "time", "@timestamp", "datetime", "date", "eventTime")
_LEVELS = ("level", "severity", "lvl", "levelname", "log.level", "loglevel", "log_level")
_COMPONENTS = ("component", "logger", "logger_name", "service", "module", "name", "caller", "target", "source")
_MESSAGES = ("message", "msg", "log", "event")

_TRACE = re.compile(
    r"at \S|Caused by\b|Suppressed:|\.\.\. [0-9]+ (?:more|common)|Traceback \(most recent|During handling of the above"
    r"|The above exception was|goroutine [0-9]+ \[|stack backtrace:|note: run with|--- End of|[\])}]+[,;]?$"
)
_EXCEPTION = re.compile(r"[A-Za-z_][\w.$]{0,200}(?:Error|Exception|Warning|Exit|Interrupt|Failure)(?::|$)")
_TRACEBACK = "Traceback (most recent"

MOST_FOLLOWING = 60  # so many lines stay with the line that they belong to


class Line(NamedTuple):
    """What a line says."""

    stamp: Stamp | None = None
    ts: str | None = None  # the time as written, unless `stamp` says where it is in the line
    severity: str | None = None
    component: str | None = None
    continues: bool = False  # it belongs to the line before: then it is no entry of its own, and has no severity
    in_trace: bool = False  # it is part of a stack trace


def read(lines: Iterable[str]) -> list[Line]:
    """One record for each line."""
    reader = _Reader()
    return [reader.read(text) for text in lines]


class _Reader:
    """Reads one line after another, knowing what came before."""

    def __init__(self) -> None:
        self._times = TimeReader()
        self._begun = False
        self._in_traceback = False
        self._following = 0
        """How many more lines without a time may belong to the last line, if that had one."""

    def read(self, text: str) -> Line:
        line = (_json_line(text) if text.startswith("{") else None) or self._line(text)
        if line.continues:
            self._following = max(0, self._following - 1)
        elif text.strip():
            self._following = MOST_FOLLOWING if line.stamp else 0
        self._in_traceback = text.lstrip().startswith(_TRACEBACK) or (
            self._in_traceback and line.continues and text[:1].isspace()
        )
        self._begun = True
        return line

    def _line(self, text: str) -> Line:
        stamp = _stamp(self._times, text)
        if self._begun and stamp is None and text.strip():
            if text[0] in " \t" or _TRACE.match(text) or self._in_traceback:
                return Line(continues=True, in_trace=True)
            if self._following and log_fields.field(text, 0, 0) is None:
                return Line(continues=True)
        return _plain_line(text, stamp)


def _stamp(reader: TimeReader, text: str) -> Stamp | None:
    if not text[:1].isspace():
        return reader.read(text)
    bare = text.lstrip()
    indent = len(text) - len(bare)
    stamp = reader.read(bare)
    # Further inside an indented line, a time is part of the message.
    if stamp is None or stamp.start > 1:
        return None
    return stamp._replace(start=stamp.start + indent, end=stamp.end + indent)


def _plain_line(text: str, stamp: Stamp | None) -> Line:
    start, end = (stamp.start, stamp.end) if stamp else (0, 0)
    field = log_fields.field(text, start, end)
    severity = field.severity if field else log_fields.keyword(text[end:])
    return Line(stamp, None, severity, component(text, end, field, timed=stamp is not None))


def _json_line(text: str) -> Line | None:
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    fields = cast(dict[str, Any], record)
    time, message, name = (_first(fields, names) for names in (_TIMES, _MESSAGES, _COMPONENTS))
    stamp = of_value(time)
    severity = log_fields.of_value(_first(fields, _LEVELS))
    if severity is None and isinstance(message, str):
        severity = _plain_line(message[:4000], TimeReader().read(message)).severity
    return Line(
        stamp._replace(start=0, end=0) if stamp else None,
        str(time) if stamp else None,
        severity,
        name if isinstance(name, str) and name else None,
    )


def _first(fields: dict[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if name in fields), None)


def says_what_broke(text: str) -> bool:
    """Whether a line within a stack trace names the error, not a place in the code."""
    bare = text.lstrip().removeprefix("Caused by: ")
    return len(bare) < len(text.lstrip()) or _EXCEPTION.match(bare) is not None
