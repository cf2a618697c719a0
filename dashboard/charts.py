"""Charts as pictures: the positions of columns, lines and labels, from numbers by day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

WIDTH, HEIGHT = 480, 170
_LEFT, _TOP, _BOTTOM = 38, 8, 44
_SHARE = 0.68
"""The share of a day's width that its column takes."""
_STEPS = (1, 2, 5, 10)
_LINES = 4
MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class Series(NamedTuple):
    """One number for each day. `kind`: the class of its columns in the style sheet."""

    kind: str
    label: str
    values: Sequence[int]


class Column(NamedTuple):
    """A part of a column, with a text that browsers show beside the pointer."""

    kind: str
    says: str
    x: float
    y: float
    width: float
    height: float


class Label(NamedTuple):
    text: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of stacked columns. `says`: its content in a sentence; `lines`: the marks of the axis."""

    title: str
    says: str
    series: Sequence[Series]
    columns: Sequence[Column]
    days: Sequence[Label]
    lines: Sequence[Label]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT


def draw_columns(title: str, days: Sequence[str], series: Sequence[Series]) -> Chart:
    """Draw a column for each day (`2026-11-28`), with the series on top of each other, the first one lowest."""
    totals = [sum(values) for values in zip(*(each.values for each in series), strict=True)]
    top, step = _scale(max(totals, default=0))
    floor, across = HEIGHT - _BOTTOM, (WIDTH - _LEFT) / max(1, len(days))
    unit = (floor - _TOP) / top
    columns: list[Column] = []
    for at, day in enumerate(days):
        y, x = float(floor), _LEFT + across * (at + (1 - _SHARE) / 2)
        for each in series:
            value = each.values[at]
            y -= value * unit
            if value:
                says = f"{day}: {value} {each.label}"
                columns.append(
                    Column(each.kind, says, round(x, 1), round(y, 1), round(across * _SHARE, 1), value * unit)
                )
    labels: list[Label] = []
    for at, day in enumerate(days):
        x = round(_LEFT + across * (at + 0.5), 1)
        labels.append(Label(day[8:].lstrip("0"), x, floor + 17))
        if at == 0 or day.endswith("-01"):
            labels.append(Label(MONTHS[int(day[5:7])], x, floor + 36))
    lines = [Label(f"{value:,}", _LEFT - 6, round(floor - value * unit, 1)) for value in range(0, top + 1, step)]
    sums = ", ".join(f"{sum(each.values):,} {each.label}" for each in series)
    return Chart(title, f"{sums}; in {len(days)} days.", series, columns, labels, lines)


def _scale(most: int) -> tuple[int, int]:
    """Return the upper end of the axis and the distance of its lines, as round numbers."""
    power = 1
    while True:
        for factor in _STEPS:
            step = factor * power
            if step * _LINES >= most:
                return max(step, -(-most // step) * step), step
        power *= 10
