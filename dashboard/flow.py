"""The dataflow: a meter counts the items, failures and durations of each operator, and a picture shows these figures in
boxes, with edges between them. It follows the picture in `streams/graph.py`; its boxes are the steps of
`model/steps.py`, which a test compares with the metered operators.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, NamedTuple

from dashboard.display import DisplayRules, duration, minute
from dataflow.metering import Gauge
from model.messages import AuthorType, Part
from model.outcomes import Ignored, Outcome, Result
from model.steps import STEP_NAMES, STEPS, Lane, StepInfo
from services.conversations import WorkCancelled
from services.telemetry import current_part

MAX_DURATIONS = 256
"""The number of the last items whose durations make an operator's median and 95th percentile."""
MAX_FINISHED = 1_000
"""The most finished parts whose steps are remembered."""
STEPS_OF_PARTS = frozenset(each.name for each in STEPS if each.handles_parts)
COUNT_ONLY_STEPS = frozenset(each.name for each in STEPS if not each.is_timed)
MAX_IN_PROGRESS = 200
"""The most parts in flight whose steps are remembered; the oldest is dropped first."""


@dataclass(slots=True)
class Figures:
    """Counts of one operator since the start, and the durations of its last items."""

    in_flight: int = 0
    waiting: int = 0
    done: int = 0
    failed: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque[float](maxlen=MAX_DURATIONS))

    def percentile(self, share: float) -> float | None:
        """Return the smallest duration such that at least this share of them is not longer; None: there are none."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


class StepDuration(NamedTuple):
    """A step of one part, with its duration."""

    step: str
    seconds: float


class PartInProgress(NamedTuple):
    """A part in flight, with its finished steps."""

    part: Part
    steps: tuple[StepDuration, ...]


class FlowMeter:
    """Counts the items and results of one run (`dataflow.Meter`).

    Attributes:
        on_change: functions that are called after each change; they must not fail.
        figures: of all metered operators, by name.
        results: the number of results of each kind; ignored messages as `ignored`.
    """

    def __init__(self, clock: Callable[[], float], also: Gauge | None = None) -> None:
        """`clock`: gives seconds that pass while work is done, in a replay too. `also`: a gauge that is called too."""
        self.on_change: list[Callable[[], object]] = []
        self.figures: defaultdict[str, Figures] = defaultdict(Figures)
        self.results: Counter[str] = Counter()
        self._clock = clock
        self._also = also
        self._steps: OrderedDict[tuple[int, ...], tuple[Part, list[StepDuration]]] = OrderedDict()
        self._finished: OrderedDict[tuple[int, ...], tuple[StepDuration, ...]] = OrderedDict()

    def __call__(self, operator: str, count: int) -> None:
        known = self.figures[operator]
        if operator in COUNT_ONLY_STEPS and count < known.in_flight:
            known.done += known.in_flight - count
        known.in_flight = count
        if self._also is not None:
            self._also(operator, count)
        self._tell()

    def on_waiting(self, operator: str, count: int) -> None:
        known = self.figures[operator]
        if known.waiting != count:
            known.waiting = count
            self._tell()

    def on_begin(self, operator: str) -> Callable[[Exception | None], object]:
        began = self._clock()

        def ended(error: Exception | None) -> None:
            took, known = self._clock() - began, self.figures[operator]
            known.seconds.append(took)
            if error is None:
                known.done += 1
            elif not isinstance(error, WorkCancelled):  # a cancelled item is no failure
                known.failed += 1
            part = current_part.get() if operator in STEPS_OF_PARTS else None
            if part is not None:
                self._steps.setdefault(part.message_ids, (part, []))[1].append(StepDuration(operator, took))
                _bound(self._steps, MAX_IN_PROGRESS)
            self._tell()

        return ended

    def add(self, result: Result) -> None:
        """Count a result (`streams.wiring.Sinks.results`)."""
        if isinstance(result, Outcome):
            self.results[result.result] += 1
            ids = result.part.message_ids
            part_and_steps = self._steps.pop(ids, None)
            if part_and_steps is not None:
                self._finished[ids] = tuple(part_and_steps[1])
                _bound(self._finished, MAX_FINISHED)
        elif isinstance(result, Ignored):
            self.results["ignored"] += len(result.message_ids)
        self._tell()

    def in_progress(self) -> list[PartInProgress]:
        """Return the parts in flight that have a finished step, newest first."""
        return [PartInProgress(part, tuple(steps)) for part, steps in reversed(self._steps.values())]

    def durations_of(self, message_ids: tuple[int, ...]) -> tuple[StepDuration, ...]:
        """Return the durations of a finished part's steps; empty if they are not remembered any more."""
        return self._finished.get(message_ids, ())

    def _tell(self) -> None:
        for tell in self.on_change:
            tell()


def _bound(kept: OrderedDict[tuple[int, ...], Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)


BOX_WIDTH, BOX_HEIGHT = 200, 56
_COLUMN_STEP, _ROW_STEP, _MARGIN = 214, 65, 10
_END_WIDTH, _END_STEP = 132, 141
_LANE_GAP, _LANE_NAME_GAP = 0.35, 6


ENDS = (("skipped", "cancelled", "failed"), ("replied", "captured", "ignored"))
"""Kinds of results, in two rows beside the end of the first lane."""
_FILES_LANE_DROP = 0.3
"""How much lower than a row the lane of files begins, in rows."""


class Box(NamedTuple):
    """A box of the picture: position, size and texts."""

    name: str
    title: str
    subtitle: str
    x: float
    y: float
    width: float
    height: float


class Edge(NamedTuple):
    """An arrow of the picture. `into`: the name of the box that it leads to; `path`: its line, as SVG writes it."""

    into: str
    path: str


@dataclass(frozen=True, slots=True)
class FlowPicture:
    """The fixed part of the picture, in pixels.

    Attributes:
        operators: the boxes with current figures.
        sources: the boxes where items come from.
        ends: the boxes of results.
        lanes: the name of each lane, with its position (x, y).
    """

    width: float
    height: float
    operators: Sequence[Box]
    sources: Sequence[Box]
    ends: Sequence[Box]
    edges: Sequence[Edge]
    lanes: Sequence[tuple[str, float, float]]


class OperatorCells(NamedTuple):
    """The figures of an operator, as texts. `times`: median and 95th percentile; `state`: of `busy`, `failing`, `idle`
    those that hold.
    """

    in_flight: str
    line: str
    times: str
    state: str


class InProgressRow(NamedTuple):
    """A part in flight, as texts for a row of the page. `since`: when its batch closed; `steps`: the finished ones with
    their durations.
    """

    kind: str
    who: str
    where: str
    since: str
    steps: str


@dataclass(frozen=True, slots=True)
class NowView:
    """The figures of the picture, sent again with each event."""

    cells: Mapping[str, OperatorCells]
    ends: Mapping[str, str]
    in_progress: Sequence[InProgressRow]
    at: str


def picture(steps: Sequence[StepInfo] = STEPS) -> FlowPicture:
    """Compute the fixed part of the picture: boxes, edges and lanes. Lanes may have any number of steps."""
    lanes = {lane: [each for each in steps if each.lane is lane] for lane in Lane}
    names = {lane: [each.name for each in some] for lane, some in lanes.items()}
    top_row = 1 + len(lanes[Lane.ARRIVALS])  # from this row on there is room above for the names of lanes
    # The lane of files begins a little below the answer step that it feeds, so that the edge between them is seen, and
    # below the whole lane of the knowledge base, which is in the same column.
    fed_step = next(each.feeds for each in lanes[Lane.FILES] if each.feeds)
    files_row = top_row + max(names[Lane.ANSWERS].index(fed_step), len(lanes[Lane.KNOWLEDGE]) + 1) + _FILES_LANE_DROP
    last_row = max(top_row + len(lanes[Lane.ANSWERS]) - 1, math.ceil(files_row) + len(lanes[Lane.FILES]) + 1)

    def box(name: str, title: str, column: float, row: float, subtitle: str = "") -> Box:
        return Box(name, title, subtitle, _MARGIN + column * _COLUMN_STEP, _y(row, top_row), BOX_WIDTH, BOX_HEIGHT)

    places = {
        Lane.ARRIVALS: (0.5, 1),
        Lane.ANSWERS: (0, top_row),
        Lane.TEAM: (1, top_row),
        Lane.KNOWLEDGE: (2, top_row),
        Lane.FILES: (2, files_row),
    }
    rows = {name: places[lane][1] + at for lane in Lane for at, name in enumerate(names[lane])}
    operators = [box(each.name, each.title, places[each.lane][0], rows[each.name], each.subtitle) for each in steps]
    sources = [
        box("discord", "Discord, or a recording", 0.5, 0),
        box("updates", "start, timer, file change", 2, top_row - 1),
        box("attachments", "attached files", 2, files_row - 1),
    ]
    ends = [
        Box(name, name, "", _MARGIN + _COLUMN_STEP + at * _END_STEP, _y(row, top_row), _END_WIDTH, BOX_HEIGHT)
        for row, some in enumerate(ENDS, last_row - 1)
        for at, name in enumerate(some)
    ]
    chains = (
        ("discord", *names[Lane.ARRIVALS], *names[Lane.ANSWERS], "replied"),
        (names[Lane.ARRIVALS][-1], *names[Lane.TEAM]),
        ("updates", *names[Lane.KNOWLEDGE]),
        ("attachments", *names[Lane.FILES]),
        *((each.name, each.feeds) for each in steps if each.feeds),
    )
    boxes = {each.name: each for each in (*operators, *sources, *ends)}
    edges = [Edge(into, _path(boxes[start], boxes[into])) for each in chains for start, into in pairwise(each)]
    titles = (
        *((lane.value, column, top_row) for lane, (column, row) in places.items() if row == top_row),
        (Lane.FILES.value, 2, files_row - 1),
        ("results", 1, last_row - 1),
    )
    shown = [
        (title, _MARGIN + column * _COLUMN_STEP, _y(row, top_row) - _LANE_NAME_GAP) for title, column, row in titles
    ]
    height = max(each.y for each in boxes.values()) + BOX_HEIGHT + _MARGIN
    return FlowPicture(_MARGIN * 2 + 2 * _COLUMN_STEP + BOX_WIDTH, height, operators, sources, ends, edges, shown)


def now_view(meter: FlowMeter, rules: DisplayRules, at: float) -> NowView:
    """Make the view of current figures and parts in progress."""
    return NowView(
        {name: cells(meter.figures.get(name, Figures())) for name in STEP_NAMES},
        {name: f"{meter.results.get(name, 0):,}" for name in chain.from_iterable(ENDS)},
        [_row(each, rules) for each in meter.in_progress()[:SHOWN_IN_PROGRESS]],
        minute(at),
    )


SHOWN_IN_PROGRESS = 12


def cells(figures: Figures) -> OperatorCells:
    counts = (figures.done, "done"), (figures.waiting, "waiting"), (figures.failed, "failed")
    line = " · ".join(f"{count:,} {what}" for count, what in counts if count)
    median, p95 = figures.percentile(0.5), figures.percentile(0.95)
    times = "" if median is None else f"{duration(median)} / {duration(p95)}"
    states = (
        ("busy", figures.in_flight > 0),
        ("failing", figures.failed > 0),
        ("idle", not figures.in_flight and not figures.done),
    )
    in_flight = f"{figures.in_flight} now" if figures.in_flight else ""
    return OperatorCells(in_flight, line or "–", times, " ".join(name for name, holds in states if holds))


def _row(each: PartInProgress, rules: DisplayRules) -> InProgressRow:
    part = each.part
    steps = ", ".join(f"{took.step} {duration(took.seconds)}" for took in each.steps)
    return InProgressRow(
        kind="capture" if part.author_type is AuthorType.TEAM_MEMBER else "question",
        who=rules.person(part.author.id),
        where=rules.place(part.place.id),
        since=minute(part.closed_at),
        steps=steps,
    )


def _y(row: float, top_row: int) -> float:
    """Return the upper edge of a box. `top_row`: the first row below the names of the lanes."""
    return _MARGIN + (row + (_LANE_GAP if row >= top_row else 0)) * _ROW_STEP


def _path(start: Box, into: Box) -> str:
    """Draw an edge from box to box: down, straight to one beside it, or out of the side and up to a higher one."""
    overlap_top, overlap_bottom = max(start.y, into.y), min(start.y, into.y) + BOX_HEIGHT
    if overlap_top < overlap_bottom:  # they are side by side
        leaves, comes = (start.x + start.width, into.x) if start.x < into.x else (start.x, into.x + into.width)
        return f"M{leaves:g} {(overlap_top + overlap_bottom) / 2:g} H{comes:g}"
    if into.y < start.y:
        beside, half = start.x - _MARGIN / 2, BOX_HEIGHT / 2
        return f"M{start.x:g} {start.y + half:g} H{beside:g} V{into.y + half:g} H{into.x + into.width:g}"
    x, y, to_x = start.x + start.width / 2, start.y + start.height, into.x + into.width / 2
    return f"M{x:g} {y:g} V{(y + into.y) / 2:g} H{to_x:g} V{into.y:g}"
