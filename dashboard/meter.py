"""Counts items, failures and durations of each operator in one run."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dataflow.metering import Gauge
from model.messages import Part
from model.outcomes import Ignored, Outcome, Result
from model.steps import STEPS
from services.conversations import WorkCancelled
from services.telemetry import current_part

TIMED = 256
"""The number of the last durations of an operator for its median and 95th percentile."""
FOLLOWED = 1_000
"""The most finished parts whose steps are remembered."""
STEPS_OF_PARTS = frozenset(each.name for each in STEPS if each.handles_parts)
COUNT_ONLY_STEPS = frozenset(each.name for each in STEPS if not each.is_timed)
MOST_IN_PROGRESS = 200
"""The most parts in flight whose steps are remembered; the oldest is dropped first."""


@dataclass(slots=True)
class Figures:
    """Counts of one operator since the start, and the durations of its last items."""

    in_flight: int = 0
    waiting: int = 0
    done: int = 0
    failed: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque[float](maxlen=TIMED))

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
        changed: called after each change; must not fail.
        figures: of all metered operators, by name.
        results: the number of results of each kind; ignored messages as `ignored`.
    """

    def __init__(self, clock: Callable[[], float], also: Gauge | None = None) -> None:
        """`clock`: gives seconds that pass while work is done, in a replay too. `also`: a gauge that is called too."""
        self.changed: list[Callable[[], object]] = []
        self.figures: defaultdict[str, Figures] = defaultdict(Figures)
        self.results: Counter[str] = Counter()
        self._clock = clock
        self._also = also
        self._steps: OrderedDict[tuple[int, ...], tuple[Part, list[StepDuration]]] = OrderedDict()
        self._ended: OrderedDict[tuple[int, ...], tuple[StepDuration, ...]] = OrderedDict()

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
            seconds, known = self._clock() - began, self.figures[operator]
            known.seconds.append(seconds)
            if error is None:
                known.done += 1
            elif not isinstance(error, WorkCancelled):  # a cancelled item is no failure
                known.failed += 1
            part = current_part.get() if operator in STEPS_OF_PARTS else None
            if part is not None:
                self._steps.setdefault(part.message_ids, (part, []))[1].append(StepDuration(operator, seconds))
                _bound(self._steps, MOST_IN_PROGRESS)
            self._tell()

        return ended

    def add(self, result: Result) -> None:
        """Count a result (`streams.wiring.Sinks.results`)."""
        if isinstance(result, Outcome):
            self.results[result.result] += 1
            ids = result.part.message_ids
            part_and_steps = self._steps.pop(ids, None)
            if part_and_steps is not None:
                self._ended[ids] = tuple(part_and_steps[1])
                _bound(self._ended, FOLLOWED)
        elif isinstance(result, Ignored):
            self.results["ignored"] += len(result.message_ids)
        self._tell()

    def in_progress(self) -> list[PartInProgress]:
        """Return the parts in flight that have a finished step, newest first."""
        return [PartInProgress(part, tuple(steps)) for part, steps in reversed(self._steps.values())]

    def steps_of(self, message_ids: tuple[int, ...]) -> tuple[StepDuration, ...]:
        """Return the durations of a finished part's steps; empty if they are not remembered any more."""
        return self._ended.get(message_ids, ())

    def _tell(self) -> None:
        for tell in self.changed:
            tell()


def _bound(kept: OrderedDict[tuple[int, ...], Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
