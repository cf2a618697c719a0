"""What the columns of a table hold: range and mean, and the rows that stand out."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

SIGMAS = 3
MOST_OUTLIERS = 20
"""So many rows are named for each column."""

_LARGEST = 1e150
"""Its square is still a number."""

_NUMBER = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?\s*%?\s*")


@dataclass(slots=True)
class Column:
    """One column. `values` and `lines` hold its numbers and where they stand."""

    name: str
    values: list[float] = field(default_factory=list[float])
    lines: list[int] = field(default_factory=list[int])
    others: int = 0
    """How many cells are neither empty nor a number."""

    def take(self, cell: str, line: int) -> None:
        value = number(cell)
        if value is not None:
            self.values.append(value)
            self.lines.append(line)
        elif cell.strip():
            self.others += 1

    @property
    def numeric(self) -> bool:
        return len(self.values) > self.others

    def outliers(self) -> list[tuple[int, float]]:
        """Line and value of what is more than three standard deviations from the mean, the farthest first."""
        mean = self.mean
        deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in self.values) / len(self.values))
        far = [
            (line, value) for line, value in zip(self.lines, self.values, strict=True) if _far(value, mean, deviation)
        ]
        return sorted(far, key=lambda at: -abs(at[1] - mean))[:MOST_OUTLIERS]

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.values)


def number(cell: str) -> float | None:
    """The number in a cell, a per cent sign aside; None for anything else, infinities included."""
    if not _NUMBER.fullmatch(cell):
        return None
    value = float(cell.strip().removesuffix("%"))
    return value if abs(value) < _LARGEST else None


def described(columns: Sequence[Column]) -> tuple[str, tuple[int, ...]]:
    """A line for each column of numbers, and the lines of the table that stand out."""
    told: list[str] = []
    lines: dict[int, None] = {}
    for column in columns:
        if not column.values or not column.numeric:
            continue
        far = column.outliers()
        lines |= dict.fromkeys(line for line, _ in far)
        low, high = min(column.values), max(column.values)
        text = f"{column.name}: min {low:g}, max {high:g}, mean {column.mean:.6g} of {len(column.values)} values"
        if far:
            text += f"; more than {SIGMAS} standard deviations away: "
            text += ", ".join(f"{value:g} (line {line})" for line, value in far)
        told.append(text)
    return "\n".join(told), tuple(sorted(lines))


def _far(value: float, mean: float, deviation: float) -> bool:
    return abs(value - mean) > SIGMAS * deviation > 0
