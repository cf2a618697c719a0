"""Cuts tables and metrics into chunks: rows below their header, and a summary of the columns."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from model.words import number_of
from services.documents.prepared import Chunk, ChunkType, LineRecord
from services.documents.reading.source_code import blocks
from services.documents.reading.times import TimeReader, digits_needed, settle, timestamp

SIGMAS = 3
MAX_OUTLIERS = 20  # so many rows are named for each column
CHUNK_ROWS = 50
CHUNK_CHARS = 8000
_MAX_COLUMNS = 500
_LONGEST_NAME = 100
_LARGEST = 1e150  # its square is still a number
_SEPARATORS = ",\t;|"
_BETWEEN = re.compile(f"[{_SEPARATORS}]")  # behind a time begins the next cell: it is no fraction of the second
_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\s*+%?\s*+")
_LIKE_NUMBER = re.compile(r"[0-9]|^\s*[-+]?inf(?:inity)?\s*$", re.IGNORECASE)
_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{[^\n]*\})?\s+(\S+)(?:\s+-?[0-9]+)?")


@dataclass(slots=True)
class _Column:
    """The numbers of one column."""

    name: str
    values: list[float] = field(default_factory=list[float])  # its numbers; `lines`: the line of each
    lines: list[int] = field(default_factory=list[int])
    others: int = 0  # the number of cells that are neither empty nor a number
    unread: int = 0  # those of them that look like numbers (`1,500.00`, `12 ms`), and rows of too many cells

    def take(self, cell: str, line: int) -> None:
        value = _number(cell)
        if value is not None:
            self.values.append(value)
            self.lines.append(line)
        elif cell.strip():
            self.others += 1
            self.unread += _LIKE_NUMBER.search(cell) is not None

    def describe(self) -> tuple[str, list[int]]:
        """Return range and mean in words, and the lines beyond three standard deviations, the farthest first. Where a
        cell may be a number that cannot be read, there is no range and no mean.
        """
        if self.unread:
            number = number_of(len(self.values), "value is a number", "values are numbers")
            return f"{self.name}: min, max and mean cannot be told: {number}, {self.unread} more may be", []
        mean = math.fsum(self.values) / len(self.values)
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / len(self.values))
        cells = zip(self.lines, self.values, strict=True)
        far = [(line, value) for line, value in cells if abs(value - mean) > SIGMAS * deviation > 0]
        far = sorted(far, key=lambda at: -abs(at[1] - mean))[:MAX_OUTLIERS]
        low, high = min(self.values), max(self.values)
        text = f"{self.name}: min {low:g}, max {high:g}, mean {mean:.6g} of {len(self.values)} values"
        if self.others:
            text += f" ({self.others} left out: no {'number' if self.others == 1 else 'numbers'})"
        if far:
            text += f"; more than {SIGMAS} standard deviations away: "
            text += ", ".join(f"{value:g} (line {line})" for line, value in far)
        return text, [line for line, _ in far]


def _number(cell: str) -> float | None:
    """Return the number in a cell, without a per cent sign; None for anything else, infinities included."""
    if not _NUMBER.fullmatch(cell):
        return None
    value = float(cell.strip().removesuffix("%"))
    return value if abs(value) < _LARGEST else None


class _Row(NamedTuple):
    cells: list[str]
    first: int
    last: int


def table_chunks(lines: Sequence[str], *, tabs: bool = False) -> list[Chunk]:
    """Return a chunk with a summary of the columns, then chunks of rows."""
    if _is_prometheus(lines):
        return _metrics(lines)
    separator = "\t" if tabs else max(_SEPARATORS, key=lambda mark: _width(lines, mark))
    rows = _rows(lines, separator)
    if not rows:
        return []
    header = None if any(_number(cell) is not None for cell in rows[0].cells) else rows[0]
    names = header.cells if header else [f"column {at + 1}" for at in range(len(rows[0].cells))]
    # The table has only a header.
    body = rows[1:] if header and len(rows) > 1 else rows
    columns = [_Column(name.strip()[:_LONGEST_NAME] or "column") for name in names[:_MAX_COLUMNS]]
    for row in body:
        for column, cell in zip(columns, row.cells, strict=False):
            column.take(cell, row.first)
        if any(map(str.strip, row.cells[len(names) :])):  # a mark within a number may have cut it
            for column in columns:
                column.unread += 1
    head = lines[header.first - 1 : header.last] if header else ()
    return _with_summary(columns, [_rows_chunk(lines, head, group) for group in _groups(body)], len(lines), names)


def table_records(lines: Sequence[str]) -> tuple[LineRecord, ...]:
    """Return a record of each line that begins with a time, so that rows can be found by time."""
    reader = TimeReader()
    stamps = settle([reader.read(_BETWEEN.sub(" ", line)) for line in lines])
    digits = digits_needed(stamps)
    offsets = accumulate((len(line) + 1 for line in lines), initial=0)
    return tuple(
        LineRecord(line_no, offset, line[stamp.start : stamp.end], timestamp(stamp, digits), stamp.local_time)
        for line_no, (line, stamp, offset) in enumerate(zip(lines, stamps, offsets, strict=False), start=1)
        if stamp is not None
    )


def _rows(lines: Sequence[str], separator: str) -> list[_Row]:
    """Return rows with their lines. A quoted cell may span several; one that is never closed counts as not quoted."""
    try:
        rows = list(_quoted_rows(lines, separator))
    except csv.Error:
        rows = []
    if (
        not rows
        or (rows[0].last == len(lines) > rows[0].first)
        or any(row.last - row.first > CHUNK_ROWS for row in rows)
    ):
        rows = [_Row(line.split(separator), at, at) for at, line in enumerate(lines, start=1) if line]
    return rows


def _quoted_rows(lines: Sequence[str], separator: str) -> Iterator[_Row]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
    first = 1
    for cells in reader:
        if cells:
            yield _Row(cells, first, reader.line_num)
        first = reader.line_num + 1


def _width(lines: Sequence[str], mark: str) -> int:
    """Return the number of cells that the first rows have if split by `mark`; doubled when all agree."""
    counts = {line.count(mark) for line in lines[:20] if line.strip()}
    return min(counts, default=0) * (2 if len(counts) == 1 else 1)


def _groups(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    group: list[_Row] = []
    size = 0
    for row in rows:
        chars = sum(map(len, row.cells)) + len(row.cells)
        if group and (len(group) == CHUNK_ROWS or size + chars > CHUNK_CHARS):
            yield group
            group, size = [], 0
        group.append(row)
        size += chars
    if group:
        yield group


def _rows_chunk(lines: Sequence[str], head: Sequence[str], rows: Sequence[_Row]) -> Chunk:
    first, last = rows[0].first, rows[-1].last
    reader = TimeReader()
    times = [timestamp(stamp, 0) for row in rows if (stamp := reader.read(lines[row.first - 1]))]
    return Chunk(
        0,
        ChunkType.ROWS,
        "\n".join([*head, *lines[first - 1 : last]]),
        first,
        last,
        ts_min=min(times, default=None),
        ts_max=max(times, default=None),
        extra={"rows": str(len(rows))},
    )


def _is_prometheus(lines: Sequence[str]) -> bool:
    sample = [line for line in lines[:50] if line.strip() and not line.startswith("#")][:10]
    return bool(sample) and all(_SAMPLE.fullmatch(line.strip()) for line in sample)


def _metrics(lines: Sequence[str]) -> list[Chunk]:
    columns: dict[str, _Column] = {}
    for at, line in enumerate(lines, start=1):
        found = None if line.startswith("#") else _SAMPLE.fullmatch(line.strip())
        if found:
            columns.setdefault(found[1], _Column(found[1])).take(found[2], at)
    pieces: list[Chunk] = []
    for first, last in blocks(lines, 1, len(lines), CHUNK_ROWS):
        piece = lines[first - 1 : last]
        rows = sum(bool(line.strip()) and not line.startswith("#") for line in piece)
        pieces.append(Chunk(0, ChunkType.ROWS, "\n".join(piece), first, last, extra={"rows": str(rows)}))
    return _with_summary(list(columns.values())[:_MAX_COLUMNS], pieces, len(lines), list(columns))


def _with_summary(columns: Sequence[_Column], pieces: list[Chunk], last: int, names: Sequence[str]) -> list[Chunk]:
    """Put a chunk with a summary of the whole table's columns in front of `pieces`."""
    listed = ", ".join(name.strip()[:_LONGEST_NAME] for name in names[:_MAX_COLUMNS])
    found = [column.describe() for column in columns if len(column.values) > column.others]
    if found:
        text, lines = "\n".join(text for text, _ in found), tuple(sorted({line for _, far in found for line in far}))
        summary = Chunk(0, ChunkType.ROWS, text, 1, last, lines=lines, extra={"computed": "over the whole file"})
        pieces = [summary, *pieces]
    return [replace(piece, index=index, extra={**piece.extra, "columns": listed}) for index, piece in enumerate(pieces)]
