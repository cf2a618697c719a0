"""Which lines belong together and must not be parted: code in fences, literal and delimited blocks."""

from __future__ import annotations

import re
from collections.abc import Sequence

LARGEST_FENCE = 24_000
"""Characters. A larger one would fit into no prompt: it is cut like text."""

_FENCE = re.compile(r"\s*(?:(?:[-*+>]|[0-9]{1,9}[.)])\s*){0,9}(`{3,}|~{3,})([^`\n]*)")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|={4,}|\+{4,}|_{4,}|\*{4,}|/{4,}|\|={3,})\s*")


def fenced(lines: Sequence[str], *, delimiters: bool = False) -> list[bool]:
    """For each line, whether no cut may be made in front of it: all lines of a fence but its first.

    `delimiters`: blocks between two equal rows of characters, as AsciiDoc has them, count as well.
    """
    inside = [False] * len(lines)
    unclosed: set[str] = set()
    at = 0
    while at < len(lines):
        end = _end(lines, at, unclosed, delimiters=delimiters)
        if end > at and sum(map(len, lines[at : end + 1])) <= LARGEST_FENCE:
            inside[at + 1 : end + 1] = [True] * (end - at)
        at = max(at, end) + 1
    return inside


def _end(lines: Sequence[str], at: int, unclosed: set[str], *, delimiters: bool) -> int:
    """Where the fence that begins at `at` is closed; -1 when none begins, or it never is."""
    found = _FENCE.fullmatch(lines[at])
    if found:
        mark = found[1]
    elif delimiters and (row := _DELIMITER.fullmatch(lines[at])):
        mark = row[1]
    else:
        return -1
    # Of a fence that was never closed, no later one of its kind is.
    if mark in unclosed:
        return -1
    for number in range(at + 1, len(lines)):
        if _closes(lines[number], mark, fence=found is not None):
            return number
    unclosed.add(mark)
    return -1


def _closes(line: str, mark: str, *, fence: bool) -> bool:
    bare = line.strip().lstrip("> ")
    if fence:
        return len(bare) >= len(mark) and bare == mark[0] * len(bare)
    return line.rstrip() == mark
