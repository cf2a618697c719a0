"""Reads the level of a log line, and the component that wrote it."""

from __future__ import annotations

import re
from typing import NamedTuple

_WORDS = {
    "FATAL": "fatal panic emerg emergency ftl",
    "CRITICAL": "critical crit alert crt",
    "ERROR": "error err severe eror",
    "WARN": "warning warn wrn",
    "INFO": "info notice information informational inf",
    "DEBUG": "debug dbg fine verbose",
    "TRACE": "trace finer finest vrb",
}
SEVERITIES = tuple(_WORDS)  # the worst first
ALARMING = frozenset({"FATAL", "CRITICAL", "ERROR", "WARN"})

_BY_WORD = {word: severity for severity, words in _WORDS.items() for word in words.split()}
_BY_LETTER = {"I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL", "D": "DEBUG", "V": "TRACE"}
_BY_NUMBER = {10: "TRACE", 20: "DEBUG", 30: "INFO", 40: "WARN", 50: "ERROR", 60: "FATAL"}  # as in JavaScript

_REACH = 120  # how far behind the time the field may end
_MOST_FIELDS = 4  # how many words may come before it: process, thread, host, logger

_CASES = sorted(
    {form for word in _BY_WORD for form in (word, word.upper(), word.capitalize())}, key=lambda word: (-len(word), word)
)
_FIELD = re.compile(rf"(?<![\w.$%-])({'|'.join(_CASES)})(?![\w-]|\.\w)")
_NAMED_FIELD = re.compile(
    r"(?:^|[\s{,\"'])(?:log_?level|level|lvl|severity)[\"']?\s{0,3}[=:]\s{0,3}[\"']?(\w{1,14})", re.IGNORECASE
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


def field(line: str, start: int, end: int) -> LevelField | None:
    """The severity field of a line whose time is between `start` and `end` (both 0 when there is none)."""
    for found in _FIELD.finditer(line, 0, end + _REACH):
        word = found[1]
        if start <= found.start() < end or not _is_field(line, found.start(), found.end(), word, end):
            continue
        before = line[end : found.start()] + line[:start] if found.start() >= end else line[: found.start()]
        if _fields(before) > _MOST_FIELDS:
            break
        return LevelField(_BY_WORD[word.lower()], found.start(), found.end())
    return _other_field(line, end)


def of_value(value: object) -> str | None:
    """The severity that a field of a JSON record names."""
    if isinstance(value, str):
        return _BY_WORD.get(value.strip().lower())
    return _BY_NUMBER.get(value) if isinstance(value, int) else None


def keyword(message: str) -> str | None:
    """The severity that words of a message suggest."""
    lowered = message.lower()
    if not any(word in lowered for word in ("error", "warn", "exception", "fatal", "panic", "critical", "traceback")):
        return None
    found = [match.lastindex or 0 for match in _KEYWORD.finditer(message)]
    return (None, "FATAL", "ERROR", "WARN")[min(found, default=0)]


def _is_field(line: str, start: int, end: int, word: str, timed: int) -> bool:
    """In capitals a level word needs nothing more; else its surroundings must show that it is a field.

    `timed`: where the time ends, 0 without one.
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
        return LevelField(_BY_LETTER[klog[0]], 0, 1)
    if end and (logcat := _LOGCAT.match(line, end)):
        return LevelField(_BY_LETTER[logcat[1]], logcat.start(1), logcat.end(1))
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


def component(line: str, end: int, field: LevelField | None, *, timed: bool) -> str | None:
    """`end`: where the time ends; `field`: the severity field, if there is one."""
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
