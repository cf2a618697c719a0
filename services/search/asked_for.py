"""What a question asks for, as far as its words tell, and whether a passage can have it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_NUMBER = re.compile(
    r"\b(?:(?:which|what|minimum|min|lowest|latest|newest|oldest)\s+(?:\w+\s+){0,2}(?:versions?|ports?|numbers?|limits?)"
    r"|how\s+(?:many|much|long|large|big|old|often)|max(?:imum)?\s+(?:size|number|length)|since\s+which)\b",
    re.IGNORECASE,
)
_NAMES = re.compile(
    r"(?<![\w.-])(?:--[a-z][\w-]+|[A-Z]{1,8}[-_]?\d{2,}|v?\d+\.\d+(?:\.\d+)*|[A-Za-z]\w*_\w+|\w+::\w+|\w{3,}\(\))"
)
"""Options, error codes, versions, identifiers and calls."""
_INTRODUCTION = re.compile(
    r"(?:introduction|intro|overview|welcome\b.*|(?:table of )?contents|getting started|get started|quick ?start|about)"
    r"[\W_]*",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\bwhat(?:['’]?s| is| are| does)\b|\b(?:introduction|overview|summary|begin|beginner|start(?:ed|ing)?|new to)\b",  # noqa: RUF001 (as people type it)
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")


class AskedFor(NamedTuple):
    """`number`: a version, a port, a limit; `names`: those that it names, in lower case."""

    number: bool
    names: frozenset[str]


def asked_for(question: str) -> AskedFor:
    """What an answer to `question` has to have."""
    return AskedFor(bool(_NUMBER.search(question)), frozenset(each.lower() for each in _NAMES.findall(question)))


def is_too_general(headings: Sequence[str], question: str) -> bool:
    """Whether a section under these headings introduces a subject, and the question asks for something particular."""
    return bool(headings and _INTRODUCTION.fullmatch(headings[-1].strip())) and not _GENERAL.search(question)


def holds(text: str, asked: AskedFor) -> bool:
    """Whether `text` has a number where one is asked for, and one of the names where some are given."""
    if asked.number and not _DIGIT.search(text):
        return False
    lower = text.lower()
    return not asked.names or any(name.removesuffix("()") in lower for name in asked.names)
