"""The levels that a question names, as a set: "ERROR or FATAL", "WARN and above", "not INFO" (DOCUMENT_QA 5.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

ORDER = ("FATAL", "CRITICAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
"""The worst first."""

ENTRY = r"(?:entr(?:y|ies)|lines?|messages?|records?|events?|logs?|level|lvl|severity|statements?|output)"

_LEVELS = {
    "fatal": ("FATAL", "CRITICAL"),
    "critical": ("CRITICAL", "FATAL"),
    "panic": ("FATAL", "CRITICAL"),
    "emerg": ("FATAL", "CRITICAL"),
    "emergency": ("FATAL", "CRITICAL"),
    "alert": ("CRITICAL", "FATAL"),
    "crit": ("CRITICAL", "FATAL"),
    "error": ("ERROR",),
    "err": ("ERROR",),
    "severe": ("ERROR",),
    "warn": ("WARN",),
    "warning": ("WARN",),
    "info": ("INFO",),
    "notice": ("INFO",),
    "debug": ("DEBUG",),
    "trace": ("TRACE",),
}
LEVEL = r"(?:fatal|critical|crit|panic|emerg(?:ency)?|alert|error|err|severe|warn(?:ing)?|info|notice|debug|trace)"
_SHOUTED = r"(?:FATAL|CRIT(?:ICAL)?|PANIC|EMERG(?:ENCY)?|ALERT|ERR(?:OR)?|SEVERE|WARN(?:ING)?|INFO|NOTICE|DEBUG|TRACE)"
_UPPER = re.compile(rf"(?<![\w.:/-])\[?(?:non-)?(?P<word>{_SHOUTED})\]?(?:s\b|S\b)?(?![\w-]|/(?!{_SHOUTED}))")
_AFTER_SLASH = re.compile(rf"(?<=[A-Z]/)(?P<word>{_SHOUTED})S?(?![\w-]|/(?![A-Z]))")
# As klog and logcat write levels.
_LETTER = re.compile(rf"(?<![\w.:/-])(?P<word>[EWFIDV])(?=[- ]{ENTRY}\b)")
_BY_LETTER = {"e": "error", "w": "warn", "f": "fatal", "i": "info", "d": "debug", "v": "trace"}
_NAMED = (
    re.compile(rf"\b(?P<word>{LEVEL})[- ](?:(?:or|and) (?:above|worse|higher) )?{ENTRY}\b", re.IGNORECASE),
    re.compile(
        rf"\b(?:level|severity|logged as|logged at|of (?:the )?(?:type|kind|class|category|priority))"
        rf"\s*(?:of|is|=|:)?\s*[\"'`]?(?P<word>{LEVEL})\b",
        re.IGNORECASE,
    ),
)
_PLAIN = re.compile(r"\b(?P<word>errors?|warn(?:ing)?s?|fatals?|criticals?|crits?|emergs?)\b", re.IGNORECASE)
_ANY = re.compile(rf"\b(?P<word>{LEVEL})s?\b", re.IGNORECASE)
_JOINED = re.compile(
    rf"\s*(?:[,/|&+]|\b(?:or|and|nor)\b)[\s,]*(?:(?:an?|the)\s+)?|\s+{ENTRY}\s+(?:or|and)\s+", re.IGNORECASE
)

_NOT = re.compile(
    r"(?:\bnon-?|\b(?:not|isn't|aren't|wasn't|weren't|except(?: for)?|excluding|without|other than|apart from|besides"
    r"|(?:all|any|every|anything|everything) but|but (?:not|no)|different from)\s+)(?:(?:an?|at|of|the|level|severity)\s+)*\[?$",
    re.IGNORECASE,
)
_ABOVE = re.compile(r"\b(?:or|and) (?:above|worse|higher|more severe)\b|\bat least\b", re.IGNORECASE)
_BELOW = re.compile(r"\b(?:or|and) (?:below|lower|less severe)\b|\bat most\b", re.IGNORECASE)
_BEYOND = re.compile(r"\b(?:above|worse than|higher than|more severe than)\s+(?:level\s+)?\[?$", re.IGNORECASE)
_QUOTED = re.compile(r"\"[^\"\n]+\"|“[^”\n]+”|`[^`\n]+`")


@dataclass(frozen=True, slots=True)
class Severity:
    levels: tuple[str, ...]
    hard: bool
    """A level by its name; a plain "errors" is hard only where entries are counted, listed or put in order."""
    text: str
    """As the question says it."""


def severity(question: str) -> Severity | None:
    return find(question)[0]


def find(question: str) -> tuple[Severity | None, str]:
    """The levels named, and the question without their names."""
    masked = _QUOTED.sub(_unless_a_level, question)
    named = [*_UPPER.finditer(masked), *_AFTER_SLASH.finditer(masked), *_LETTER.finditer(masked)]
    named += [found for pattern in _NAMED for found in pattern.finditer(masked)]
    hard = bool(named)
    words = _with_joined(masked, named) if hard else [found.span("word") for found in _PLAIN.finditer(masked)]
    if not words:
        return None, question
    wanted: set[str] = set()
    unwanted: set[str] = set()
    refused, before = False, 0
    for start, end in words:
        goes_on = refused and _JOINED.fullmatch(masked[_word_end(masked, before) : start])
        refused, before = bool(goes_on or _NOT.search(masked[:start])), end
        (unwanted if refused else wanted).update(_meant(masked, start, end, hard=hard))
    chosen = (wanted or set(ORDER)) - unwanted
    text = _said(masked, words, unwanted)
    start, end = words[0]
    return Severity(_in_order(chosen, masked[start:end]), hard, text), _without(question, words)


def _meant(question: str, start: int, end: int, *, hard: bool) -> tuple[str, ...]:
    levels = _levels_of(question[start:end])
    at = min(ORDER.index(level) for level in levels)
    if _ABOVE.search(question) or (levels == ("ERROR",) and not hard):
        return ORDER[: max(ORDER.index(level) for level in levels) + 1]
    if _BELOW.search(question):
        return ORDER[at:]
    return ORDER[:at] if _BEYOND.search(question[:start]) else levels


def _levels_of(said: str) -> tuple[str, ...]:
    word = said.lower().removesuffix("s")
    return _LEVELS[_BY_LETTER.get(word, word)]


def _in_order(chosen: set[str], first: str) -> tuple[str, ...]:
    """The worst first; of FATAL and CRITICAL, which may stand for each other, first the one that was said."""
    said = _levels_of(first)
    return said if set(said) == chosen else tuple(level for level in ORDER if level in chosen)


def _with_joined(question: str, named: Iterable[re.Match[str]]) -> list[tuple[int, int]]:
    """Also the levels that stand in one list with a named one: "error and fatal entries"."""
    spans = {found.span("word") for found in named}
    candidates = [found.span("word") for found in _ANY.finditer(question)]
    for ordered in (candidates, candidates[::-1]):
        for one, other in pairwise(ordered):
            first, second = sorted((one, other))
            if one in spans and _JOINED.fullmatch(question[_word_end(question, first[1]) : second[0]]):
                spans.add(other)
    return sorted(spans)


def _word_end(question: str, end: int) -> int:
    """Behind a plural's ending."""
    return end + (question[end : end + 1] in {"s", "S"})


def _said(question: str, words: list[tuple[int, int]], unwanted: set[str]) -> str:
    said = " or ".join(dict.fromkeys(question[start:end] for start, end in words))
    if not unwanted:
        return said
    return "levels other than " + ", ".join(level for level in ORDER if level in unwanted)


def _without(question: str, words: list[tuple[int, int]]) -> str:
    for start, end in reversed(words):
        left = _BEYOND.sub(" ", _NOT.sub(" ", question[:start]))
        question = f"{left.rstrip('[')} {question[_word_end(question, end) :].lstrip(']')}"
    return _BELOW.sub(" ", _ABOVE.sub(" ", question))


def _unless_a_level(quoted: re.Match[str]) -> str:
    """Quoted text is meant letter by letter; a level in quotes is a level."""
    inner = quoted[0][1:-1].strip()
    return quoted[0] if _ANY.fullmatch(inner) else " " * len(quoted[0])
