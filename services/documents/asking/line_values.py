"""What lines are grouped by: columns that the store has, and values that are read from the text of each line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from services.documents.asking.line_query import Pattern
from services.documents.asking.vocabulary import LEVELS

STORED: Mapping[str, str] = {
    "level": "severity",
    **{column: column for column in ("severity", "component", "day", "hour", "minute")},
}
"""What the store counts by, and how it calls that."""
IN_ORDER = frozenset({"day", "hour", "minute"})  # their groups stand in the order of time, others by their size

Values = Callable[[str], Iterable[str]]

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(
    rf"(?<![\w.]){_OCTET}(?:\.{_OCTET}){{3}}(?![\w]|\.\d)"
    # Nothing is given back: a run of hex digits can be cut in one way only, or a line of them would take half a second.
    r"|(?<![\w:.])(?>(?:[0-9a-f]{1,4}+:){2,7}):?[0-9a-f]{1,4}+(?>(?::[0-9a-f]{1,4}+){0,6})(?![\w:])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"[0-9]{1,2}(?::[0-9]{1,2}){1,2}")
_THREAD = re.compile(r"\bthread(?:[_.-]?(?:name|id))?[\"']?\s?[=:]\s?[\"']?([\w.#-]{1,60})", re.IGNORECASE)
_BRACKETS = re.compile(r"(?<!\S)\[([A-Za-z][^\[\]\n]{0,79})\]")
_RUN = re.compile(r"[\w.:/-]+")
_SHAPE_CHARS = 160
_REPEATED = re.compile(r"\bmessage repeated (\d{1,6}) times\b", re.IGNORECASE)

REPEATED = "message repeated"


def addresses(text: str) -> list[str]:
    """Return the IP addresses of a line, each once, without ports."""
    return list(dict.fromkeys(found[0] for found in _ADDRESS.finditer(text) if not _CLOCK.fullmatch(found[0])))


def threads(text: str) -> list[str]:
    """Return the thread that wrote a line: `thread=worker-3`, `[main]`."""
    if named := _THREAD.search(text):
        return [named[1]]
    return [found[1] for found in _BRACKETS.finditer(text) if found[1].lower() not in LEVELS][:1]


def values_of(key: str) -> Values:
    """Return a function that reads the values of `key=value`, `key: value`, `"key": "value"`."""
    spelt = re.compile(
        rf"(?<![\w.-]){re.escape(key)}[\"']?\s?[=:]\s?(?:\"([^\"\n]{{0,200}})\"|'([^'\n]{{0,200}})'|([^\s,;|()\[\]{{}}\"']{{1,200}}))",
        re.IGNORECASE,
    )
    return lambda text: dict.fromkeys(next(filter(None, found.groups()), "") for found in spelt.finditer(text))


def captured(pattern: Pattern, longest: int) -> Values:
    """Return a function that reads the pattern's first group; without a group, the whole match."""

    def read(text: str) -> list[str]:
        found = pattern.search(text[:longest])
        if found is None:
            return []
        return [next((group for group in found.groups() if group is not None), found[0])]

    return read


def messages(text: str) -> list[str]:
    """Return the message of a line with its numbers masked: lines of one shape are one message."""
    shape = " ".join(_RUN.sub(_masked, text[: 4 * _SHAPE_CHARS]).split()).lstrip("# ,.:-")
    return [shape[:_SHAPE_CHARS]] if shape else []


def _masked(run: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, run[0])) else run[0]


READ: Mapping[str, Values] = {"address": addresses, "thread": threads, "message": messages}
"""What is read from each line, by the name of the column."""


def times_said(text: str) -> int:
    """Return how many messages a line stands for: five, for `message repeated 5 times: […]`."""
    found = _REPEATED.search(text)
    return max(1, int(found[1])) if found else 1
