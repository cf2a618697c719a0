"""What the operators tell, added up."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator

import pytest

from dashboard import flow
from dashboard.flow import Figures, FlowMeter, StepDuration
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed
from services.conversations import WorkCancelled
from services.telemetry import current_part


def part_of(message_id: int, author_id: int = 1) -> Part:
    message = Message(message_id, 11, Author(author_id, "ada"), "How?", 1.0)
    return Part(message_id, (message,), AuthorType.COMMUNITY_USER, Place(11, PlaceKind.CHANNEL), 1.0)


def ended(part: Part) -> Outcome:
    return Outcome(part, 2.0, OutcomeKind.REPLIED)


@pytest.fixture
def at() -> list[float]:
    return [0.0]


@pytest.fixture
def meter(at: list[float]) -> FlowMeter:
    return FlowMeter(lambda: at[0])


@pytest.fixture(autouse=True)
def nothing_about() -> Generator[None]:
    token = current_part.set(None)
    yield
    current_part.reset(token)


def test_counts_and_durations_of_an_operator_add_up(meter: FlowMeter, at: list[float]) -> None:
    for seconds, error in ((1.0, None), (2.0, None), (4.0, ValueError("no")), (8.0, WorkCancelled(Reason.DELETED))):
        end = meter.on_begin("gate")
        at[0] += seconds
        end(error)
    meter("gate", 3)
    meter.on_waiting("gate", 2)
    assert meter.figures == {"gate": Figures(3, 2, done=2, failed=1, seconds=deque([1.0, 2.0, 4.0, 8.0]))}
    assert (meter.figures["gate"].percentile(0.5), meter.figures["gate"].percentile(0.95)) == (2.0, 8.0)


def test_an_operator_that_only_counts_is_done_with_what_it_holds_no_more(meter: FlowMeter) -> None:
    for count in (1, 2, 1, 0):
        meter("quiet_window", count)
        meter("gate", count)
    assert meter.figures == {"quiet_window": Figures(done=2), "gate": Figures()}


def test_other_gauges_are_told_and_listeners_hear_of_changes() -> None:
    counts: list[tuple[str, int]] = []
    heard: list[int] = []
    meter = FlowMeter(lambda: 0.0, lambda operator, count: counts.append((operator, count)))
    meter.on_change.append(lambda: heard.append(1))
    meter("gate", 1)
    meter.on_waiting("queue", 0)
    assert (counts, len(heard)) == ([("gate", 1)], 1)
    meter.on_waiting("queue", 1)
    assert (counts, len(heard)) == ([("gate", 1)], 2)


def test_a_part_is_followed_from_step_to_step_until_its_result(meter: FlowMeter, at: list[float]) -> None:
    part = part_of(10)
    current_part.set(part)
    for name, seconds in (("gather", 0.5), ("gate", 1.5), ("classify", 9.0)):
        end = meter.on_begin(name)
        at[0] += seconds
        end(None)
    (one,) = meter.in_progress()
    assert (one.part, one.steps) == (part, (StepDuration("gather", 0.5), StepDuration("gate", 1.5)))
    assert meter.durations_of((10,)) == ()
    meter.add(ended(part))
    assert meter.in_progress() == []
    assert meter.durations_of((10,)) == one.steps
    assert meter.results == {"replied": 1}


def test_a_result_without_steps_and_ignored_messages_count(meter: FlowMeter) -> None:
    meter.add(ended(part_of(10)))
    meter.add(Ignored(Reason.BOT, 11, (12, 13)))
    meter.add(Removed(11, 14))
    assert meter.results == {"replied": 1, "ignored": 2}


def test_what_is_remembered_is_bounded(meter: FlowMeter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "MAX_IN_PROGRESS", 2)
    monkeypatch.setattr(flow, "MAX_FINISHED", 1)
    parts = [part_of(number, author_id=number) for number in (10, 11, 12)]
    for part in parts:
        current_part.set(part)
        meter.on_begin("gate")(None)
    assert [one.part for one in meter.in_progress()] == [parts[2], parts[1]]
    meter.add(ended(parts[1]))
    meter.add(ended(parts[2]))
    assert meter.in_progress() == []
    assert (meter.durations_of((11,)), len(meter.durations_of((12,)))) == ((), 1)
