"""The branch that tells people when something is wrong: samples in, incidents out.

    ticks, changes ──► sample ──► incidents ──► alert sink

Nothing else waits for it. It has no tick, and does nothing, where no target of alerts is set.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from clock import now
from dataflow import Overflow, map_async, of_type
from model.health import Condition, HealthTopic
from model.outcomes import Outcome
from operators.incidents import IncidentUpdate, Sample, States, track_incidents
from services.conversations import WorkCancelled
from streams.ticks import ticks

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertParts:
    """The services and rules of the branch.

    Attributes:
        sample: gives the conditions that are known now.
        states: gives the states of all topics, for a start.
        tell: the sink: it stores the states and posts the notices.
        is_told: returns True if there is an open incident of a topic, and all of its messages are posted.
        changes: emits when a sample is worth taking before the next tick.
        after: as in `track_incidents`.
    """

    sample: Callable[[], Awaitable[Sequence[Condition]]]
    states: Callable[[], States]
    tell: Callable[[IncidentUpdate], Coroutine[Any, Any, None]]
    is_told: Callable[[HealthTopic], bool]
    changes: Observable[None]
    after: Mapping[HealthTopic, float]
    every_seconds: float


def alerts(events: Observable[object], parts: AlertParts) -> Observable[Outcome]:
    """Sample at each tick and change, until `events` completes; the sample under way is finished. Emits
    nothing, and is an Observable of outcomes so that it can be merged.

    events   ----------------------|
    sampled  s----s--s----s----s---|     at each tick, and at a change
    notices  ------------B---------|     posted by `parts.tell`
    """

    async def sample(_: object) -> Sample | None:
        conditions = await parts.sample()
        return Sample(now(), conditions)

    def updates(_: object) -> Observable[IncidentUpdate]:
        over = events.pipe(ops.ignore_elements(), ops.default_if_empty(None))
        triggers = rx.merge(ticks(parts.every_seconds), parts.changes).pipe(ops.take_until(over))
        # One more trigger may wait: a change during a sample is seen by the next one.
        samples = triggers.pipe(map_async(sample, on_failure=_not_sampled, max_concurrent=1, max_waiting=1))
        return samples.pipe(of_type(Sample), track_incidents(parts.states(), parts.after))

    told = rx.defer(updates).pipe(map_async(parts.tell, on_failure=_not_told, max_concurrent=1))
    return told.pipe(of_type(Outcome))


def _not_sampled(_: object, error: Exception) -> None:
    if not isinstance(error, Overflow):
        log.error("alerts: the conditions could not be sampled", exc_info=error)


def _not_told(_: IncidentUpdate, error: Exception) -> None:
    if not isinstance(error, WorkCancelled):  # another process posts by now
        log.error("alerts: a bug", exc_info=error)
