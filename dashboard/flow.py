"""The dataflow as a picture: the box of each operator, the edges between them, and their current figures.

The layout follows the picture in `streams/graph.py`. Its boxes are the steps of `model/steps.py`; a test keeps them
the ones that are metered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from dashboard.display import DisplayRules, link_to, minute, seconds
from dashboard.meter import Figures, FlowMeter, PartInProgress
from model.messages import AuthorType
from model.steps import STEPS, Lane

BOX_WIDTH, BOX_HEIGHT = 190, 42
_ACROSS, _DOWN, _MARGIN = 206, 51, 10
_END_WIDTH, _END_ACROSS = 126, 135
_LANE_GAP = 0.45


class Operator(NamedTuple):
    """A box: the operator's name in the meter, what people read, and its column and row."""

    name: str
    title: str
    column: float
    row: float
    says: str


def _in(lane: Lane) -> list[str]:
    return [each.name for each in STEPS if each.lane is lane]


_ARRIVALS, _ANSWERS = _in(Lane.ARRIVALS), _in(Lane.ANSWERS)
_LANES_FROM = 1 + len(_ARRIVALS)
"""From this row on there is room above for the names of lanes."""
_LAST = _LANES_FROM + len(_ANSWERS) - 1
"""The row of the last answering step."""


def _waits_for_files() -> float:
    """A row a little below the step that waits for files: an edge leads there from the lane beside it."""
    waiting = next(each.feeds for each in STEPS if each.lane is Lane.FILES and each.feeds)
    return _LANES_FROM + _ANSWERS.index(waiting) + _ASIDE


_ASIDE = 0.3
_PLACES: Mapping[Lane, tuple[float, float]] = {
    Lane.ARRIVALS: (0.5, 1),
    Lane.ANSWERS: (0, _LANES_FROM),
    Lane.TEAM: (1, _LANES_FROM),
    Lane.KNOWLEDGE: (2, _LANES_FROM),
    Lane.FILES: (2, _waits_for_files()),
}
"""The column and the first row of each lane."""


def _operators() -> Iterator[Operator]:
    for each in STEPS:
        column, first = _PLACES[each.lane]
        row = first + _in(each.lane).index(each.name)
        yield Operator(each.name, each.title, column, row, each.says)


OPERATORS = tuple(_operators())
_FIXED = (
    Operator("discord", "Discord, or a recording", 0.5, 0, ""),
    Operator("updates", "start, timer, file change", 2, _LANES_FROM - 1, ""),
    Operator("attachments", "attached files", 2, _waits_for_files() - 1, ""),
)
ENDS = (
    ("skipped", 0, _LAST - 1),
    ("cancelled", 1, _LAST - 1),
    ("failed", 2, _LAST - 1),
    ("replied", 0, _LAST),
    ("captured", 1, _LAST),
    ("ignored", 2, _LAST),
)
"""Kinds of results, with their places beside the end of the first lane."""

_CHAINS = (
    ("discord", *_ARRIVALS, *_ANSWERS, "replied"),
    (_ARRIVALS[-1], *_in(Lane.TEAM)),
    ("updates", *_in(Lane.KNOWLEDGE)),
    ("attachments", *_in(Lane.FILES)),
    *((each.name, each.feeds) for each in STEPS if each.feeds),
)
LANES = (
    (Lane.ANSWERS.value, 0, _LANES_FROM),
    (Lane.TEAM.value, 1, _LANES_FROM),
    (Lane.KNOWLEDGE.value, 2, _LANES_FROM),
    (Lane.FILES.value, 2, _waits_for_files() - 1),
    ("results", 1, _LAST - 1),
)
_ABOVE = 7


class Box(NamedTuple):
    """A box of the picture: position, size and texts."""

    name: str
    title: str
    says: str
    x: float
    y: float
    width: float
    height: float


class Edge(NamedTuple):
    """`into`: the operator whose progress it shows; `path`: for SVG."""

    into: str
    path: str


@dataclass(frozen=True, slots=True)
class FlowPicture:
    width: float
    height: float
    operators: Sequence[Box]
    fixed: Sequence[Box]
    ends: Sequence[Box]
    edges: Sequence[Edge]
    lanes: Sequence[tuple[str, float, float]]


class OperatorCells(NamedTuple):
    """One operator's figures, as they are written."""

    in_flight: str
    waiting: str
    done: str
    failed: str
    median: str
    p95: str
    line: str


class InHandRow(NamedTuple):
    """A part on its way."""

    kind: str
    who: str
    where: str
    link: str
    since: str
    steps: str


@dataclass(frozen=True, slots=True)
class NowView:
    """The figures of the page "NowView", sent again with each event."""

    cells: Mapping[str, OperatorCells]
    ends: Mapping[str, int]
    in_hand: Sequence[InHandRow]
    at: str


def picture() -> FlowPicture:
    """Compute the fixed part of the picture: boxes, edges and lanes."""
    operators = [_box(each) for each in OPERATORS]
    fixed = [_box(each) for each in _FIXED]
    beside = _MARGIN + _ACROSS
    ends = [
        Box(name, name, "", beside + place * _END_ACROSS, _MARGIN + _down(row), _END_WIDTH, BOX_HEIGHT)
        for name, place, row in ENDS
    ]
    boxes = {box.name: box for box in (*operators, *fixed, *ends)}
    edges = [Edge(into, _path(boxes[start], boxes[into])) for chain in _CHAINS for start, into in pairwise(chain)]
    lanes = [
        (title, _MARGIN + column * _ACROSS, _MARGIN + row * _DOWN + BOX_HEIGHT / 2) for title, column, row in LANES
    ]
    height = 2 * _MARGIN + _down(max(each.row for each in OPERATORS)) + BOX_HEIGHT
    return FlowPicture(_MARGIN * 2 + 2 * _ACROSS + BOX_WIDTH, height, operators, fixed, ends, edges, lanes)


def now_view(meter: FlowMeter, showing: DisplayRules, at: float) -> NowView:
    """Make the view of current figures and parts in progress."""
    figures = meter.figures()
    return NowView(
        {each.name: cells(figures.get(each.name, Figures())) for each in OPERATORS},
        {name: meter.results.get(name, 0) for name, _, _ in ENDS},
        [_row(each, showing) for each in meter.in_hand()[:SHOWN_IN_HAND]],
        minute(at),
    )


SHOWN_IN_HAND = 12


def cells(figures: Figures) -> OperatorCells:
    median, p95 = seconds(figures.median), seconds(figures.p95)
    parts = [f"{figures.done} done"] if figures.done else []
    parts += [f"{figures.waiting} waiting"] if figures.waiting else []
    parts += [f"{figures.failed} failed"] if figures.failed else []
    parts += [f"{median} / {p95}"] if figures.median is not None else []
    counts = (figures.in_flight, figures.waiting, figures.done, figures.failed)
    in_flight, waiting, done, failed = map(str, counts)
    return OperatorCells(in_flight, waiting, done, failed, median, p95, " · ".join(parts) or "–")


def _row(each: PartInProgress, showing: DisplayRules) -> InHandRow:
    part = each.part
    steps = ", ".join(f"{took.step} {seconds(took.seconds)}" for took in each.steps)
    return InHandRow(
        "capture" if part.author_type is AuthorType.TEAM_MEMBER else "question",
        showing.person(part.author.id),
        showing.place(part.place.id),
        link_to(part.place.guild_id, part.place.id, part.last.id),
        minute(part.closed_at),
        steps,
    )


def _box(each: Operator) -> Box:
    x, y = _MARGIN + each.column * _ACROSS, _MARGIN + _down(each.row)
    return Box(each.name, each.title, each.says, x, y, BOX_WIDTH, BOX_HEIGHT)


def _down(row: float) -> float:
    return (row + (_LANE_GAP if row >= _LANES_FROM else 0)) * _DOWN


def _path(start: Box, into: Box) -> str:
    """Down from the middle of one box to the middle of another; straight to one that stands beside it."""
    top, bottom = max(start.y, into.y), min(start.y, into.y) + BOX_HEIGHT
    if top < bottom:
        leaves, comes = (start.x + start.width, into.x) if start.x < into.x else (start.x, into.x + into.width)
        return f"M{leaves:g} {(top + bottom) / 2:g} H{comes:g}"
    x, y, to_x = start.x + start.width / 2, start.y + start.height, into.x + into.width / 2
    return f"M{x:g} {y:g} V{(y + into.y) / 2:g} H{to_x:g} V{into.y:g}"
