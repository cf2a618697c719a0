"""The values by which lines are counted: columns of the store, and values read from each line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from services.documents.asking.passages import Scope
from services.documents.store.protocol import LineWhere, StoredLine

STORED = {"level": "severity", "day": "day", "hour": "hour", "component": "component"}
"""What the store counts by, and how it calls that."""

PAGE = 10_000  # lines that are read at once

_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_ADDRESS = re.compile(
    rf"(?<![\w.]){_OCTET}(?:\.{_OCTET}){{3}}(?![\w]|\.\d)"
    r"|(?<![\w:.])(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){1,7}(?![\w:])",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"[0-9]{1,2}(?::[0-9]{1,2}){1,2}")
_THREAD = re.compile(r"\bthread(?:[_.-]?(?:name|id))?[\"']?\s?[=:]\s?[\"']?([\w.#-]{1,60})", re.IGNORECASE)
_BRACKETS = re.compile(r"(?<!\S)\[([A-Za-z][^\[\]\n]{0,79})\]")
_LEVEL = re.compile(
    r"(?:fatal|critical|crit|error|err|warn|warning|notice|info|debug|trace|emerg|alert)", re.IGNORECASE
)
_RUN = re.compile(r"[\w.:/-]+")
_SHAPE_CHARS = 160
_REPEATED = re.compile(r"\bmessage repeated (\d{1,6}) times\b", re.IGNORECASE)

REPEATED = "message repeated"
_YEARLESS = re.compile(r"^000[01]-")

Values = Callable[[str], Iterable[str]]


def addresses(text: str) -> list[str]:
    """The IP addresses of a line, each once, without ports."""
    return list(dict.fromkeys(found[0] for found in _ADDRESS.finditer(text) if not _CLOCK.fullmatch(found[0])))


def threads(text: str) -> list[str]:
    """The thread that wrote a line: `thread=worker-3`, `[main]`."""
    if named := _THREAD.search(text):
        return [named[1]]
    return [found[1] for found in _BRACKETS.finditer(text) if not _LEVEL.fullmatch(found[1])][:1]


def values_of(key: str) -> Values:
    """Reads the values of `key=value`, `key: value`, `"key": "value"`."""
    spelt = re.compile(
        rf"(?<![\w.-]){re.escape(key)}[\"']?\s?[=:]\s?(?:\"([^\"\n]{{0,200}})\"|'([^'\n]{{0,200}})'|([^\s,;|()\[\]{{}}\"']{{1,200}}))",
        re.IGNORECASE,
    )
    return lambda text: dict.fromkeys(next(filter(None, found.groups()), "") for found in spelt.finditer(text))


def captured(pattern: re.Pattern[str], longest: int) -> Values:
    """Reads what the pattern's first group holds; without a group, what the pattern matches."""

    def read(text: str) -> list[str]:
        found = pattern.search(text[:longest])
        if found is None:
            return []
        return [next((group for group in found.groups() if group is not None), found[0])]

    return read


def messages(text: str) -> list[str]:
    """What a line says, whatever numbers it says it with: lines of one shape are one message."""
    shape = " ".join(_RUN.sub(_masked, text[: 4 * _SHAPE_CHARS]).split()).lstrip("# ,.:-")
    return [shape[:_SHAPE_CHARS]] if shape else []


def _masked(run: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, run[0])) else run[0]


READ: Mapping[str, Values] = {"address": addresses, "thread": threads, "message": messages}
"""What is read from each line, by the name of the column."""


def times_said(text: str) -> int:
    """How many messages a line stands for: five, of `message repeated 5 times: […]`."""
    found = _REPEATED.search(text)
    return max(1, int(found[1])) if found else 1


async def repetitions(scope: Scope, where: LineWhere) -> tuple[StoredLine, ...]:
    """Those of the lines that fit which stand for several messages."""
    there = replace(where, holding=(*where.holding, REPEATED))
    return (await scope.lines(there, PAGE)).lines


async def pages(scope: Scope, where: LineWhere) -> AsyncIterator[Sequence[StoredLine]]:
    """All lines that fit, file by file in the order of each, a limited number at a time."""
    for doc_id in where.doc_ids:
        end = min(where.last or scope.document(doc_id).n_lines, scope.document(doc_id).n_lines)
        for first in range(where.first or 1, end + 1, PAGE):
            some = replace(where, doc_ids=(doc_id,), first=first, last=min(first + PAGE - 1, end))
            if lines := (await scope.lines(some, PAGE)).lines:
                yield lines


async def counted_by(scope: Scope, where: LineWhere, values: Values) -> tuple[Counter[str], int]:
    """How many messages name each value, and how many name none. A line with two values counts for both."""
    counts = Counter[str]()
    without = 0
    async for lines in pages(scope, where):
        without += add(counts, lines, values)
    return counts, without


def add(counts: Counter[str], lines: Iterable[StoredLine], values: Values) -> int:
    """Counts the lines' values; gives how many messages have none."""
    without = 0
    for line in lines:
        weight = times_said(line.text)
        named = [value for value in values(line.text) if value]
        for value in named:
            counts[value] += weight
        without += 0 if named else weight
    return without


def yearless(text: str) -> str:
    """A day or hour of a log that leaves the year out, without the one it is kept under: `06-14`."""
    return _YEARLESS.sub("", text)
