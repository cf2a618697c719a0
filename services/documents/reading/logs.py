"""Reads logs: the fields of a line (time, level, program), entries of several lines, and chunks of entries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from services.documents.prepared import LEVEL_LETTERS, LEVELS, Chunk, ChunkType, LineRecord
from services.documents.reading.times import Stamp, TimeReader, digits_needed, of_value, seconds_of, settle, timestamp

_SHORT = {
    "FATAL": "ftl",
    "CRITICAL": "crt",
    "ERROR": "eror",
    "WARN": "wrn",
    "INFO": "information informational inf",
    "DEBUG": "dbg fine verbose",
    "TRACE": "finer finest vrb",
}  # words for levels that only programs use
ALARMING = frozenset({"FATAL", "CRITICAL", "ERROR", "WARN"})

_BY_WORD = {word: level for level, words in LEVELS.items() for word in f"{words} {_SHORT[level]}".split()}
_BY_NUMBER = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}  # as in JavaScript

_REACH = 120  # the most characters from the end of the time to the end of the field
_MAX_FIELDS = 4  # the most words before it: process, thread, host, logger

_CASES = sorted(
    {form for word in _BY_WORD for form in (word, word.upper(), word.capitalize())}, key=lambda word: (-len(word), word)
)
_LEVEL_FIELD = re.compile(rf"(?<![\w.$%-])({'|'.join(_CASES)})(?![\w-]|\.\w)")
_NAMED_FIELD = re.compile(
    r"(?:^|[\s{,\"'])(?:log_?level|level|lvl|severity)[\"']?\s{0,3}[=:]\s{0,3}[\"']?(\w{1,14})", re.IGNORECASE
)
# level=warning, "level": "info": outside of these, a level is a word of the message
_STATED_FIELD = re.compile(
    r"(?:^|[\s{,])(?:(?:log_?level|level|lvl|severity)=|\"(?:log_?level|level|lvl|severity)\"\s{0,3}:\s{0,3})\"?(\w{1,14})",
    re.IGNORECASE,
)
_KLOG = re.compile(r"[IWEF](?=[0-9]{4} {1,2}[0-9]{2}:)")
_LOGCAT = re.compile(
    r"\s{1,4}(?:[0-9]{1,6}\s{1,6}[0-9]{1,6}\s{1,4})?([VDIWEF])(?:/|\s{1,4})(?=[\w.]{1,60}\s{0,20}(?:\(\s{0,6}[0-9]{1,6}\))?:)"
)
_BRACKETED = re.compile(r"\[[^\[\]]{0,100}\]|\([^()]{0,100}\)")

_KEYWORD = re.compile(
    r"(?<![\w./=-])(?<!\bno )(?<!without )(?<!\b0 )"
    r"(?:(panic|panicked|fatal|critical)"
    r"|(error|exception|traceback(?= \(most)|[\w.]{0,100}(?:error|exception)(?=:|$))|(warning|warn))"
    r"(?![\w/-]|\s{0,3}=|\.\w)",
    re.IGNORECASE,
)


class LevelField(NamedTuple):
    severity: str
    start: int
    end: int


def level_field(line: str, start: int, end: int) -> LevelField | None:
    """Return the severity field of a line whose time is between `start` and `end` (both 0 if it has none)."""
    for found in _LEVEL_FIELD.finditer(line, 0, end + _REACH):
        word = found[1]
        if start <= found.start() < end or not _is_field(line, found.start(), found.end(), word, end):
            continue
        before = line[end : found.start()] + line[:start] if found.start() >= end else line[: found.start()]
        if _fields(before) > _MAX_FIELDS:
            break
        if stated := _stated_field(line, found.start(), end):
            return stated
        return LevelField(_BY_WORD[word.lower()], found.start(), found.end())
    return _other_field(line, end)


def _stated_field(line: str, word: int, end: int) -> LevelField | None:
    """Return the level that a pair such as `level=warning` states, if the level word at `word` is part of a message:
    it is behind the pair, or in quotes.
    """
    if '"' not in line[:word] and "=" not in line[:word]:  # for speed
        return None
    for found in _STATED_FIELD.finditer(line, 0, end + 2 * _REACH):
        severity = _BY_WORD.get(found[1].lower())
        quoted = line.count('"', 0, word) % 2 > line.count('"', 0, found.start() + 1) % 2
        if severity and (found.start() < word or quoted):
            return LevelField(severity, found.start(1), found.end(1))
    return None


def level_of_value(value: object) -> str | None:
    """Return the severity that a field of a JSON record names; None: it names none."""
    if isinstance(value, str):
        return _BY_WORD.get(value.strip().lower())
    return _BY_NUMBER.get(value) if isinstance(value, int) else None


def level_keyword(message: str) -> str | None:
    """Return the severity that words of a message suggest; None: none does."""
    lowered = message.lower()
    if not any(word in lowered for word in ("error", "warn", "exception", "fatal", "panic", "critical", "traceback")):
        return None
    found = [match.lastindex or 0 for match in _KEYWORD.finditer(message)]
    return (None, "FATAL", "ERROR", "WARN")[min(found, default=0)]


def _is_field(line: str, start: int, end: int, word: str, timed: int) -> bool:
    """Return True if a level word is a field of the line, and no word of its message: it is in capitals, or between
    the marks of fields.

    `timed`: the end of the time, 0 if there is none.
    """
    before, after = line[start - 1 : start], line[end : end + 1]
    if before == "/":
        return after in ("]", ")")
    if word.isupper() or (before in ("[", "<", "(", "|", ":") and after in ("]", ">", ")", "|", ":", " ")):
        return True
    if timed and line[timed:start].isspace() and after == " ":
        return True
    return after in (":", "|", "]") or line.startswith((" - ", " | "), end)


def _fields(before: str) -> int:
    if len(before) <= 1:
        return 0
    bare = _BRACKETED.sub(" ", _BRACKETED.sub(" ", before)) if "[" in before or "(" in before else before
    return sum(any(map(str.isalnum, word)) for word in bare.split())


def _other_field(line: str, end: int) -> LevelField | None:
    named = _NAMED_FIELD.search(line, 0, end + 2 * _REACH)
    if named and (severity := _BY_WORD.get(named[1].lower())):
        return LevelField(severity, named.start(1), named.end(1))
    if klog := _KLOG.match(line):
        return LevelField(LEVEL_LETTERS[klog[0]], 0, 1)
    if end and (logcat := _LOGCAT.match(line, end)):
        return LevelField(LEVEL_LETTERS[logcat[1]], logcat.start(1), logcat.end(1))
    return None


_COMPONENT_REACH = 240
_LONGEST = 120

_NAME = r"[A-Za-z_][\w.$/-]{0,119}(?:::[A-Za-z_]\w{0,60}){0,6}"
_BRACKETS = r"(?:\[[^\[\]]{0,120}(?:\[[^\]]{0,60}\][^\[\]]{0,120}){0,3}\])"

_IN_BRACKETS = re.compile(r"[\s:|-]{0,6}\[[^\n]{0,200}?[:.\[]([A-Za-z][\w$]{0,80})@[0-9]{1,6}\]")
"""[QuorumPeer[myid=1]/0:0:0:0:2181:FastLeaderElection@774]"""
_BEHIND = re.compile(
    rf"[\])>]?(?:\s{{1,4}}[0-9]{{1,7}}(?=\s))?[\s:|-]{{0,6}}(?:{_BRACKETS}[\s:|-]{{0,4}}){{0,3}}({_NAME})"
    r"(?:\[[0-9]{1,10}\]|\([^()\s]{0,40}\))?(?:\s?:(?!/)|\s-\s|\s\[|[\])]|\s\|)"
)
"""INFO [main] org.apache.hadoop.ipc.Client: …"""
_SYSLOG = re.compile(
    r"(?:[A-Z]{3,5}\s)?\s{0,4}[\w.:-]{1,100}\s{1,4}([\w./-]{1,80}(?:\([\w:./-]{1,60}\))?)(?:\[[0-9]{1,10}\])?:(?:\s|$)"
)
"""Dec 10 06:55:46 host sshd[24200]: …"""
_BETWEEN = re.compile(
    r"(?:^|[\s|\[(])([A-Za-z_][\w$-]{0,60}(?:[.:/][\w$-]{1,60}){0,12})[\])]?\s{0,4}[-|:]?\s{0,4}[\[(<|]?$"
)
"""2026-02-01 12:00:00,000 - my.logger - ERROR - …"""
_NAMED = re.compile(r"(?:^|\s)(?:component|logger|service|module|target|caller)=\"?([\w.$:/@-]{1,120})")


def component_of(line: str, end: int, field: LevelField | None, *, timed: bool) -> str | None:
    """Return the component that a line names; None: none. `end`: of its time; `field`: its severity field."""
    syslog = _SYSLOG.match(line, end, end + _COMPONENT_REACH) if timed else None
    if field is None or not field.end or (syslog and syslog.end() <= field.start):
        return syslog[1] if syslog else None
    behind = max(end, field.end)
    found = (
        _IN_BRACKETS.match(line, behind, behind + _COMPONENT_REACH)
        or _BEHIND.match(line, behind, behind + _COMPONENT_REACH)
        or (_NAMED.search(line, 0, 2 * _COMPONENT_REACH) if "=" in line else None)
        or (_BETWEEN.search(line[end : field.start][-_LONGEST:]) if timed and end < field.start else None)
    )
    return found[1] if found else None


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

MAX_FOLLOWING = 60  # the most lines that continue another one


class Line(NamedTuple):
    """The fields of one line."""

    stamp: Stamp | None = None
    ts: str | None = None  # the time as written, if `stamp` has no position in the line
    severity: str | None = None
    component: str | None = None
    continues: bool = False  # True if it continues the entry of the line before; it has no severity then
    in_trace: bool = False  # it is part of a stack trace


def read_log_lines(lines: Iterable[str]) -> list[Line]:
    """Return one record for each line."""
    reader = _LineReader()
    read = [reader.read(text) for text in lines]
    settled = zip(read, settle([line.stamp for line in read]), strict=True)
    return [line if line.stamp is stamp else line._replace(stamp=stamp) for line, stamp in settled]


class _LineReader:
    """Reads a log line by line, and remembers the state of the entry."""

    def __init__(self) -> None:
        self._times = TimeReader()
        self._begun = False
        self._in_traceback = False
        self._following = 0
        """The number of further lines without a time that may continue the last line with one."""

    def read(self, text: str) -> Line:
        line = (_json_line(text) if text.startswith("{") else None) or self._line(text)
        if line.continues:
            self._following = max(0, self._following - 1)
        elif text.strip():
            self._following = MAX_FOLLOWING if line.stamp else 0
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
            if self._following and level_field(text, 0, 0) is None:
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
    if found := _record_behind(text, start, end):
        before, severity, name = found
        return Line(stamp, None, severity, name or component_of(before, min(end, len(before)), None, timed=end > 0))
    field = level_field(text, start, end)
    severity = field.severity if field else level_keyword(text[end:])
    return Line(stamp, None, severity, component_of(text, end, field, timed=stamp is not None))


def _record_behind(text: str, start: int, end: int) -> tuple[str, str, str | None] | None:
    """Read a JSON record behind the fields that a runtime puts before it: `2031-03-05T10:00:00Z stdout F {…}`.

    Returns:
        What precedes it, its level and its component; None: there is none that states a level, or one precedes it.
    """
    at = text.find('{"', 0, end + _REACH)
    before, timed = (text[:at], (start, end)) if at >= end else (text[: max(at, 0)], (0, 0))
    if at <= 0 or _fields(before[timed[1] :] + before[: timed[0]]) > _MAX_FIELDS or level_field(before, *timed):
        return None
    fields = _record(text[at:]) or {}
    severity, name = level_of_value(_first(fields, _LEVELS)), _first(fields, _COMPONENTS)
    return (before, severity, name if isinstance(name, str) and name else None) if severity else None


def _json_line(text: str) -> Line | None:
    fields = _record(text)
    if fields is None:
        return None
    time, message, name = (_first(fields, names) for names in (_TIMES, _MESSAGES, _COMPONENTS))
    stamp = of_value(time)
    severity = level_of_value(_first(fields, _LEVELS))
    if severity is None and isinstance(message, str):
        severity = _plain_line(message[:4000], TimeReader().read(message)).severity
    return Line(
        stamp._replace(start=0, end=0) if stamp else None,
        str(time) if stamp else None,
        severity,
        name if isinstance(name, str) and name else None,
    )


def _record(text: str) -> dict[str, Any] | None:
    try:
        record: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", record) if isinstance(record, dict) else None


def _first(fields: dict[str, Any], names: Iterable[str]) -> Any:
    return next((fields[name] for name in names if name in fields), None)


def names_error(text: str) -> bool:
    """Return True if a line within a stack trace names the error, rather than a place in the code."""
    bare = text.lstrip().removeprefix("Caused by: ")
    return len(bare) < len(text.lstrip()) or _EXCEPTION.match(bare) is not None


WINDOW_LINES = 20
GAP_SECONDS = 5 * 60
FEW_WINDOWS = 200  # of a log with more windows, none is embedded: that would take too long
MAX_PATTERNS = 2000
MAX_LISTED = 1000  # the most lines of a pattern that are listed
MAX_COMPONENTS = 20
_MASKED_CHARS = 400  # characters of a line that decide its pattern
_VARIABLE = re.compile(
    r"-?(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|0[xX][0-9a-fA-F]+"
    r"|\b(?:[a-f]+[0-9]|[0-9]+[a-f])[0-9a-f]*\b"
    r"|[0-9]+(?:[.,:-]?[0-9]+)*)"
)


def read_log(lines: Sequence[str]) -> tuple[list[Chunk], list[LineRecord]]:
    """Return the chunks of a log (windows in the order of the file, then patterns) and a record of each line."""
    read = read_log_lines(lines)
    records = _records(lines, read)
    spans = list(windows(read))
    embedded = len(spans) < FEW_WINDOWS
    chunks = [
        _chunk(Chunk(index, ChunkType.WINDOW, "\n".join(lines[a - 1 : b]), a, b, embedded=embedded), records[a - 1 : b])
        for index, (a, b) in enumerate(spans)
    ]
    for numbers in _patterns(lines, read, records):
        first, count = numbers[0], str(len(numbers))
        listed = tuple(numbers[:MAX_LISTED])
        chunk = Chunk(
            len(chunks), ChunkType.PATTERN, lines[first - 1], first, first, lines=listed, extra={"count": count}
        )
        chunks.append(_chunk(chunk, [records[number - 1] for number in numbers]))
    return chunks, records


def windows(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of each window. Every line is in exactly one."""
    start, last = 0, None
    for first, after in _entries(lines):
        stamp = lines[first].stamp
        seconds = last if stamp is None else seconds_of(stamp.moment)
        gap = seconds is not None and last is not None and abs(seconds - last) > GAP_SECONDS
        if start < first and (gap or after - start > WINDOW_LINES):
            yield start + 1, first
            start = first
        last = seconds
    if start < len(lines):
        yield start + 1, len(lines)


def _entries(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each entry: a line together with the lines that continue it."""
    first = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or not lines[at].continues or at - first >= MAX_FOLLOWING:
            yield first, at
            first = at


def _records(lines: Sequence[str], read: Sequence[Line]) -> list[LineRecord]:
    digits = digits_needed([line.stamp for line in read])
    records: list[LineRecord] = []
    offset = 0
    for number, (text, line) in enumerate(zip(lines, read, strict=True), start=1):
        stamp = line.stamp
        ts = line.ts or (text[stamp.start : stamp.end] if stamp else None)
        utc = timestamp(stamp, digits) if stamp else None
        local = stamp.local_time if stamp else None
        records.append(LineRecord(number, offset, ts, utc, local, line.severity, line.component))
        offset += len(text) + 1
    return records


def mask(line: str) -> str:
    """Replace the variable parts of a line: `Found child 6725 in slot 10` → `Found child # in slot #`."""
    return _VARIABLE.sub("#", line[:_MASKED_CHARS])


def _patterns(lines: Sequence[str], read: Sequence[Line], records: Sequence[LineRecord]) -> list[list[int]]:
    """Group line numbers by pattern: alarming patterns first, then rare ones."""
    shapes: dict[str, list[int]] = {}
    for number, (text, line) in enumerate(zip(lines, read, strict=True), start=1):
        if text.strip() and (not line.in_trace or names_error(text)):
            shapes.setdefault(mask(text), []).append(number)
    ranked = sorted(shapes.values(), key=lambda of: (records[of[0] - 1].severity not in ALARMING, len(of), of[0]))
    return ranked[:MAX_PATTERNS]


def _chunk(chunk: Chunk, records: Sequence[LineRecord]) -> Chunk:
    """Return `chunk` with the times, severities and components of its lines' `records`."""
    times = [record.ts_utc for record in records if record.ts_utc]
    found = {record.severity for record in records}
    components = dict.fromkeys(record.component for record in records if record.component)
    return replace(
        chunk,
        ts_min=min(times, default=None),
        ts_max=max(times, default=None),
        severities=tuple(severity for severity in LEVELS if severity in found),
        components=tuple(components)[:MAX_COMPONENTS],
    )
