"""When it is looked whether all is well, and that nothing of it outlasts the events or ends the branch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from reactivex.subject import Subject

from clock import now
from dataflow import supervise
from model.health import Condition, HealthTopic, Stage, Trouble
from model.outcomes import Reason
from operators.incidents import IncidentUpdate, States
from services.conversations import WorkCancelled
from streams.alerts import AlertParts, alerts
from tests.leaks import crashes

__all__ = ["crashes"]

EVERY = 30.0
LOST = [Condition(topic=HealthTopic.DISK, troubles={"": Trouble(0, 0)})]


@dataclass
class Watched:
    """The branch over scripted samples: `conditions`, or an error, or nothing before `seconds` have passed."""

    conditions: Sequence[Condition] | Exception = ()
    seconds: float = 0.0
    failure: Exception | None = None
    events: Subject[object] = field(default_factory=Subject[object])
    changes: Subject[None] = field(default_factory=Subject[None])
    sampled: list[float] = field(default_factory=list[float])
    kept: list[IncidentUpdate] = field(default_factory=list[IncidentUpdate])
    states: States = field(default_factory=dict[HealthTopic, object])  # pyright: ignore[reportAssignmentType] (empty)
    done: bool = False

    def __post_init__(self) -> None:
        self.began = now()
        parts = AlertParts(
            sample=self.sample,
            states=lambda: self.states,
            tell=self.tell,
            is_told=lambda _topic: False,
            changes=self.changes,
            after={HealthTopic.DISK: 0.0},
            every_seconds=EVERY,
        )
        branch = alerts(self.events, parts).pipe(supervise("alerts"))
        self.subscription = branch.subscribe(on_completed=self.complete)

    async def sample(self) -> Sequence[Condition]:
        self.sampled.append(now() - self.began)
        await asyncio.sleep(self.seconds)
        if isinstance(self.conditions, Exception):
            raise self.conditions
        return self.conditions

    async def tell(self, tracked: IncidentUpdate) -> None:
        if self.failure is not None:
            raise self.failure
        self.kept.append(tracked)
        self.states = tracked.states

    def complete(self) -> None:
        self.done = True

    @property
    def stages(self) -> list[Stage]:
        return [notice.stage for each in self.kept for notice in each.notices]


async def test_samples_are_taken_at_once_at_each_tick_and_at_changes_until_the_events_end() -> None:
    watched = Watched()
    await asyncio.sleep(40)
    watched.changes.on_next(None)
    watched.events.on_next("a message")
    await asyncio.sleep(30)
    watched.events.on_completed()
    await asyncio.sleep(300)
    assert watched.sampled == [0, 30, 40, 60]
    assert watched.done


async def test_a_sample_under_way_at_the_end_is_finished_and_kept() -> None:
    watched = Watched(seconds=5, conditions=LOST)
    await asyncio.sleep(1)
    watched.events.on_completed()
    assert not watched.done
    await asyncio.sleep(5)
    assert watched.done
    assert watched.stages == [Stage.BEGUN]


async def test_changes_during_a_sample_cause_one_more() -> None:
    watched = Watched(seconds=5)
    await asyncio.sleep(1)
    for _ in range(10):
        watched.changes.on_next(None)
    await asyncio.sleep(20)
    assert watched.sampled == [0, 5]
    watched.subscription.dispose()


async def test_a_sample_that_fails_changes_nothing_and_the_next_one_counts(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(conditions=LOST)
    await asyncio.sleep(1)
    watched.conditions = ZeroDivisionError()
    await asyncio.sleep(EVERY)
    watched.conditions = [Condition(topic=HealthTopic.DISK)]
    await asyncio.sleep(14 * EVERY)
    assert watched.stages == [Stage.BEGUN, Stage.ENDED]
    assert caplog.text.count("the conditions could not be sampled") == 1
    watched.subscription.dispose()


async def test_a_sink_that_fails_is_logged_unless_another_process_tells_by_now(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched(failure=WorkCancelled(Reason.SHUTDOWN))
    await asyncio.sleep(1)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    watched.failure = ZeroDivisionError()
    await asyncio.sleep(EVERY)
    watched.failure = None
    await asyncio.sleep(EVERY)
    assert caplog.text.count("alerts: a bug") == 1
    assert len(watched.kept) == 1
    watched.subscription.dispose()


async def test_a_branch_that_died_of_a_bug_goes_on_with_what_was_told() -> None:
    watched = Watched(conditions=LOST)
    await asyncio.sleep(1)
    watched.changes.on_error(ZeroDivisionError())
    watched.changes = Subject()
    await asyncio.sleep(10 * EVERY)
    assert watched.stages == [Stage.BEGUN]
    watched.subscription.dispose()
