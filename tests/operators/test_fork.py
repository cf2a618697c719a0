import logging

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject

from dataflow import fork, supervise
from dataflow.fork import MAX_RESTARTS
from tests.marbles import play

FATAL = logging.CRITICAL


def deaths(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == FATAL]


async def test_a_branch_that_died_is_subscribed_anew(caplog: pytest.LogCaptureFixture) -> None:
    assert await play("--1--x--2--|", ops.map(int), supervise("numbers")) == "--1-----2--|"
    assert deaths(caplog) == ["numbers died of a bug and was restarted"]


async def test_what_killed_it_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    await play("x-|", ops.map(int), supervise("numbers"))
    (record,) = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_an_undisturbed_branch_goes_through_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    assert await play("1-2-|", supervise("numbers")) == "1-2-|"
    assert deaths(caplog) == []


def test_after_too_many_deaths_the_error_goes_through(caplog: pytest.LogCaptureFixture) -> None:
    source, errors = Subject[str](), list[Exception]()
    source.pipe(ops.map(int), supervise("numbers")).subscribe(on_error=errors.append)
    for _ in range(MAX_RESTARTS - 1):
        source.on_next("x")
    assert errors == []
    source.on_next("x")
    assert [type(error) for error in errors] == [ValueError]
    assert len(deaths(caplog)) == MAX_RESTARTS


def test_a_source_that_is_dead_for_good_ends_the_branch_instead_of_spinning(caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Exception] = []
    rx.throw(ValueError("dead")).pipe(supervise("numbers")).subscribe(on_error=errors.append)
    assert [str(error) for error in errors] == ["dead"]
    assert len(deaths(caplog)) == MAX_RESTARTS


def test_dispose_leaves_the_source_alone() -> None:
    source: Subject[str] = Subject()
    subscription = source.pipe(supervise("numbers")).subscribe()
    subscription.dispose()
    assert source.observers == []


async def test_each_subscriber_of_a_fork_gets_every_item() -> None:
    source, left, right = Subject[str](), list[str](), list[str]()
    forked = source.pipe(fork("items"))
    forked.subscribe(left.append)
    forked.subscribe(right.append)
    for item in "12":
        source.on_next(item)
    assert left == right == ["1", "2"]
    assert await play("--1--2--|", fork("items")) == "--1--2--|"


def test_what_comes_before_a_fork_runs_once() -> None:
    source, runs = Subject[str](), list[str]()
    forked = source.pipe(ops.do_action(runs.append), fork("items"))
    forked.subscribe()
    forked.subscribe()
    source.on_next("1")
    assert runs == ["1"]


def test_a_bug_above_a_fork_costs_the_branches_that_one_item(caplog: pytest.LogCaptureFixture) -> None:
    source, left, right = Subject[str](), list[int](), list[int]()
    forked = source.pipe(ops.map(int), fork("numbers"))
    forked.subscribe(left.append)
    forked.subscribe(right.append)
    for item in "1x2":
        source.on_next(item)
    assert left == right == [1, 2]
    assert deaths(caplog) == ["numbers died of a bug and was restarted"]


def test_a_bug_in_one_branch_is_not_heard_of_in_the_other(caplog: pytest.LogCaptureFixture) -> None:
    source, left, right = Subject[str](), list[int](), list[str]()
    forked = source.pipe(fork("items"))
    forked.pipe(ops.map(int), supervise("left")).subscribe(left.append)
    forked.pipe(supervise("right")).subscribe(right.append)
    for item in "1x2":
        source.on_next(item)
    assert (left, right) == ([1, 2], ["1", "x", "2"])
    assert deaths(caplog) == ["left died of a bug and was restarted"]


def test_the_last_who_leaves_a_fork_unsubscribes_it() -> None:
    source: Subject[str] = Subject()
    forked = source.pipe(fork("items"))
    subscriptions = [forked.subscribe(), forked.subscribe()]
    subscriptions[0].dispose()
    assert len(source.observers) == 1
    subscriptions[1].dispose()
    assert source.observers == []


def test_a_fork_that_died_too_often_tells_all_branches(caplog: pytest.LogCaptureFixture) -> None:
    source, errors = Subject[str](), list[str]()
    forked = source.pipe(ops.map(int), fork("numbers"))
    for branch in ("left", "right"):
        forked.subscribe(on_error=lambda error, branch=branch: errors.append(f"{branch}: {type(error).__name__}"))
    for _ in range(MAX_RESTARTS):
        source.on_next("x")
    assert errors == ["left: ValueError", "right: ValueError"]
    assert len(deaths(caplog)) == MAX_RESTARTS
