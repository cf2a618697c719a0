"""Lines that a question names by their numbers: `line 42`, `lines 40-60`, `app.log:42`, `L42`, `the 42nd line`."""

from __future__ import annotations

import re

_NUMBER = r"(\d{1,3}(?:,\d{3})+(?![\d,])|\d+)"
_LINE = re.compile(
    rf"\b(?:lines?|rows?|ln|L)(?:\s*(?:no\.?|number(?:s|ed)?|nr\.?|#))?\s*[#:]?\s*{_NUMBER}"
    rf"(?:\s*(?:-|–|to|through|until|\.\.|and)\s*(?:line\s*)?{_NUMBER})?\b(?![.:]\d)",
    re.IGNORECASE,
)
_NTH = re.compile(rf"\b{_NUMBER}(?:st|nd|rd|th)\s+(?:line|row|entry)\b", re.IGNORECASE)
_COLON = re.compile(r"(?<=[\w)])(\.[A-Za-z]\w{0,9}):(\d+)(?:-(\d+))?(?![\d:.])")
_QUOTED = re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|`[^`\n]*`")
_MOST_DIGITS = 15
"""More make no number of a line, and none that a store could compare."""


def find(question: str) -> tuple[int, int] | None:
    """The first line and the last. What is quoted is looked for, and names no line."""
    plain = _QUOTED.sub(" ", question)
    for pattern, at in ((_LINE, 1), (_COLON, 2)):
        found = pattern.search(plain)
        if found:
            first = _read(found[at])
            last = _read(found[at + 1]) if found[at + 1] else first
            return min(first, last), max(first, last)
    nth = _NTH.search(plain)
    return (_read(nth[1]), _read(nth[1])) if nth else None


def without(question: str) -> str:
    """The question, but for the lines that it names."""
    return _NTH.sub(" ", _COLON.sub(r"\1", _LINE.sub(" ", question)))


def _read(digits: str) -> int:
    return int(digits.replace(",", "")[:_MOST_DIGITS])
