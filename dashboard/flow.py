"""The dataflow as a picture: the box of each operator, the edges between them, and their current figures.

The layout follows the picture in `streams/graph.py`; a test keeps its operators the ones that are metered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from dashboard.display import DisplayRules, link_to, minute, seconds
from dashboard.meter import Figures, FlowMeter, PartInProgress
from model.messages import AuthorType

BOX_WIDTH, BOX_HEIGHT = 190, 42
_ACROSS, _DOWN, _MARGIN = 206, 51, 10
_END_WIDTH, _END_ACROSS = 126, 135
_LANES_FROM, _LANE_GAP = 3, 0.45
"""From this row on there is room above for the names of lanes."""


class Operator(NamedTuple):
    """A box: the operator's name in the meter, what people read, and its column and row."""

    name: str
    title: str
    column: float
    row: float
    says: str


OPERATORS = (
    Operator("quiet_window", "quiet window", 0.5, 1, "collects what one person writes until they fall quiet"),
    Operator("route", "cut, route", 0.5, 2, "cuts where the conversation changes; who is it for?"),
    Operator("queue", "one asker at a time", 0, 3, "waits for the same asker's earlier question"),
    Operator("gather", "gather", 0, 4, "the conversation, the thread, images"),
    Operator("permit", "permit", 0, 5, "ends what could not be posted"),
    Operator("announce", "announce", 0, 6, "which files there are"),
    Operator("gate", "gate", 0, 7, "is it a question that can be answered?"),
    Operator("select", "select", 0, 8, "which sources may answer it"),
    Operator("load", "load", 0, 9, "their texts"),
    Operator("retrieve", "retrieve", 0, 10, "waits for files that are being read"),
    Operator("generate", "generate", 0, 11, "the draft"),
    Operator("point", "point", 0, 12, "without an answer: the nearest pages, for who addressed the bot"),
    Operator("verify", "verify", 0, 13, "a second look at the draft"),
    Operator("hold", "hold", 0, 14, "while a team member types"),
    Operator("reply", "reply", 0, 15, "posts it"),
    Operator("extract", "extract", 1, 3, "the conversation that a team member answered in"),
    Operator("summarise_images", "describe images", 1, 4, "before anything is stored"),
    Operator("archive", "archive", 1, 5, "one append, flushed to the disk"),
    Operator("classify", "classify", 1, 6, "which topic does it belong to?"),
    Operator("integrate", "integrate", 1, 7, "what it replaces there"),
    Operator("describe", "describe", 1, 8, "the topics that changed"),
    Operator("chunk", "read files", 2, 10.3, "what people attach, cut up for searching"),
    Operator("embed", "embed files", 2, 11.3, "their vectors"),
    Operator("discover", "discover", 2, 3, "which sources there are"),
    Operator("examine", "examine files", 2, 4, "those that have changed"),
    Operator("fetch", "fetch pages", 2, 5, "those that are due"),
    Operator("copy", "copy repositories", 2, 6, "of git: what has changed"),
    Operator("summarise", "summarise", 2, 7, "a description of what is new"),
    Operator("write", "write index", 2, 8, "index and cache"),
)
_FIXED = (
    Operator("discord", "Discord, or a recording", 0.5, 0, ""),
    Operator("updates", "start, timer, file change", 2, 2, ""),
    Operator("attachments", "attached files", 2, 9.3, ""),
)
ENDS = (
    ("skipped", 0, 14),
    ("cancelled", 1, 14),
    ("failed", 2, 14),
    ("replied", 0, 15),
    ("captured", 1, 15),
    ("ignored", 2, 15),
)
"""Kinds of results, with their places beside the end of the first lane."""

_CHAINS = (
    ("discord", "quiet_window", "route", "queue", "gather", "permit", "announce", "gate", "select", "load", "retrieve"),
    ("retrieve", "generate", "point", "verify", "hold", "reply", "replied"),
    ("route", "extract", "summarise_images", "archive", "classify", "integrate", "describe"),
    ("updates", "discover", "examine", "fetch", "copy", "summarise", "write"),
    ("attachments", "chunk", "embed"),
    ("chunk", "retrieve"),
)
LANES = (("answers", 0, 3), ("the team", 1, 3), ("knowledge base", 2, 3), ("files", 2, 9.3), ("results", 1, 14))
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
