"""Counts items, failures and durations of each operator in one run."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping
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


class Figures(NamedTuple):
    """Counts and durations of one operator since the start.

    Attributes:
        median, p95: of the seconds of its last items; None: there was no item.
    """

    in_flight: int = 0
    waiting: int = 0
    done: int = 0
    failed: int = 0
    median: float | None = None
    p95: float | None = None


class StepDuration(NamedTuple):
    """A step of one part, with its duration."""

    step: str
    seconds: float


class PartInProgress(NamedTuple):
    """A part in flight, with its finished steps."""

    part: Part
    steps: tuple[StepDuration, ...]


@dataclass(slots=True)
class _Operator:
    in_flight: int = 0
    waiting: int = 0
    done: int = 0
    failed: int = 0
    seconds: deque[float] = field(default_factory=lambda: deque[float](maxlen=TIMED))


class FlowMeter:
    """Counts the items and results of one run (`dataflow.Meter`).

    Attributes:
        changed: called after each change; must not fail.
        results: the number of results of each kind; ignored messages as `ignored`.
    """

    def __init__(self, clock: Callable[[], float], also: Gauge | None = None) -> None:
        """`clock`: gives seconds that pass while work is done, in a replay too. `also`: a gauge that is called too."""
        self.changed: list[Callable[[], object]] = []
        self.results: Counter[str] = Counter()
        self._clock = clock
        self._also = also
        self._operators: dict[str, _Operator] = {}
        self._steps: OrderedDict[tuple[int, ...], tuple[Part, list[StepDuration]]] = OrderedDict()
        self._ended: OrderedDict[tuple[int, ...], tuple[StepDuration, ...]] = OrderedDict()

    def __call__(self, operator: str, count: int) -> None:
        known = self._of(operator)
        if operator in COUNT_ONLY_STEPS and count < known.in_flight:
            known.done += known.in_flight - count
        known.in_flight = count
        if self._also is not None:
            self._also(operator, count)
        self._tell()

    def on_waiting(self, operator: str, count: int) -> None:
        known = self._of(operator)
        if known.waiting != count:
            known.waiting = count
            self._tell()

    def on_begin(self, operator: str) -> Callable[[Exception | None], object]:
        began = self._clock()

        def ended(error: Exception | None) -> None:
            seconds, known = self._clock() - began, self._of(operator)
            known.seconds.append(seconds)
            if error is None:
                known.done += 1
            elif not isinstance(error, WorkCancelled):  # a cancelled item is no failure
                known.failed += 1
            part = current_part.get() if operator in STEPS_OF_PARTS else None
            if part is not None:
                self._follow(part, StepDuration(operator, seconds))
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

    def figures(self) -> Mapping[str, Figures]:
        """Return the figures of all metered operators, by name."""
        return {name: _figures(known) for name, known in self._operators.items()}

    def in_progress(self) -> list[PartInProgress]:
        """Return the parts in flight that have a finished step, newest first."""
        return [PartInProgress(part, tuple(steps)) for part, steps in reversed(self._steps.values())]

    def steps_of(self, message_ids: tuple[int, ...]) -> tuple[StepDuration, ...]:
        """Return the durations of a finished part's steps; empty if they are not remembered any more."""
        return self._ended.get(message_ids, ())

    def _of(self, operator: str) -> _Operator:
        known = self._operators.get(operator)
        if known is None:
            known = self._operators[operator] = _Operator()
        return known

    def _follow(self, part: Part, took: StepDuration) -> None:
        ids = part.message_ids
        self._steps.setdefault(ids, (part, []))[1].append(took)
        _bound(self._steps, MOST_IN_PROGRESS)

    def _tell(self) -> None:
        for tell in self.changed:
            tell()


def _figures(known: _Operator) -> Figures:
    ordered = sorted(known.seconds)
    return Figures(
        known.in_flight,
        known.waiting,
        known.done,
        known.failed,
        percentile(ordered, 0.5),
        percentile(ordered, 0.95),
    )


def percentile(ordered: list[float], share: float) -> float | None:
    """Return the smallest value such that at least this share of the values is not larger; None: there are no
    values.
    """
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _bound(kept: OrderedDict[tuple[int, ...], Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
