"""Detects what an answer must contain (a figure, a name), and whether a passage contains it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_UNITS = r"(?:milli|micro)?(?:sec(?:ond)?|minute|min|hour|day|week|month|year)s?"
_NUMBERS = (
    (
        re.compile(r"\bhow\s+(?:long|often|old)\b|\b(?:time-?out|interval|lifetime)\b.{0,40}\bdefault", re.IGNORECASE),
        re.compile(
            rf"\d\s*(?:ms|s|m|h|d|{_UNITS})\b|\b(?:a|an|one|two|three|every|each|per|in)\s+{_UNITS}\b"
            rf"|\b(?:daily|weekly|hourly|monthly|forever|never|immediately|{_UNITS})\b|\b(?:timedelta|until|till|(?:19|20)\d\d\b)",
            re.IGNORECASE,
        ),
    ),
    (
        re.compile(
            r"\b(?:which|what|minimum|min|lowest|latest|newest|oldest)\s+(?:\w+\s+){0,2}(?:versions?|ports?|numbers?|limits?)"
            r"|\bhow\s+(?:many|much|large|big)\b|\bmax(?:imum)?\s+(?:size|number|length)|\bsince\s+which\b",
            re.IGNORECASE,
        ),
        re.compile(r"\d|\b(?:one|two|three|four|five|ten|no|unlimited|any)\b", re.IGNORECASE),
    ),
)
"""What asks for a figure, and what such a figure looks like."""
_NAMES = re.compile(
    r"(?<![\w.-])(?:--[a-z][\w-]+|[A-Z]{1,8}[-_]?\d{2,}|v?\d+\.\d+(?:\.\d+)*|[A-Za-z]\w*_\w+|\w+::\w+|\w[\w.]{2,}\(\))"
)
"""Options, error codes, versions, identifiers and calls."""
_INTRODUCTION = re.compile(
    r"(?:introduction|intro|overview|welcome\b.*|(?:table of )?contents|getting started|get started|quick ?start|about)"
    r"[\W_]*",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\bwhat(?:['’]?s| is| are| does)\b|\b(?:introduction|overview|summary|begin|beginner|start(?:ed|ing)?|new to)\b",
    re.IGNORECASE,
)


class AskedFor(NamedTuple):
    """The requirements of an answer. `figures`: patterns of a time, a version, a port or a limit, where one is asked
    for; `names`: options, error codes and identifiers in the question, in lower case.
    """

    figures: tuple[re.Pattern[str], ...]
    names: frozenset[str]


def asked_for(question: str) -> AskedFor:
    """Return what an answer to `question` must contain."""
    figures = tuple(figure for asks, figure in _NUMBERS if asks.search(question))
    return AskedFor(figures, frozenset(each.lower() for each in _NAMES.findall(question)))


def is_too_general(headings: Sequence[str], question: str) -> bool:
    """Return whether a section is an introduction while the question asks for something particular. `headings`: its
    path.
    """
    return bool(headings and _INTRODUCTION.fullmatch(headings[-1].strip())) and not _GENERAL.search(question)


def holds(text: str, asked: AskedFor) -> bool:
    """Return whether `text` has a figure where one is asked for, and one of the names where the question has some."""
    if not all(figure.search(text) for figure in asked.figures):
        return False
    lower = text.lower()
    return not asked.names or any(name.removesuffix("()") in lower for name in asked.names)
