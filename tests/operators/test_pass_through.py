from collections.abc import Callable

import pytest
from reactivex import Observable, compose
from reactivex import operators as ops
from reactivex.subject import Subject

from dataflow import map_async, pass_through, quiet_window
from tests.marbles import play
from tests.operators.slow import lost, takes


def slow(seconds: float) -> Callable[[Observable[str]], Observable[str]]:
    return map_async(takes(seconds), on_failure=lost, max_concurrent=9)


def letter(item: str) -> str:
    return item[0]


PASS = {"p": 1, "q": 2}
"""Numbers go by."""


async def test_one_type_goes_by_at_once_and_the_others_through_the_operator() -> None:
    assert await play("--1-p-2----|", pass_through(int, slow(3)), values={"p": 7}) == "----71---2-|"


async def test_what_goes_by_does_not_wait_for_the_end_of_what_goes_through() -> None:
    assert await play("ap-|", pass_through(int, slow(5)), values=PASS) == "-1---(a |)"


async def test_an_operator_that_holds_back_holds_nothing_that_goes_by() -> None:
    def total(batch: list[str]) -> str:
        return str(len(batch))

    window: Callable[[Observable[str]], Observable[str]] = compose(quiet_window(3, letter), ops.map(total))
    assert await play("aaap---|", pass_through(int, window), values=PASS) == "---1-3-|"


async def test_it_completes_when_the_operator_has() -> None:
    assert await play("a-p-b-|", pass_through(int, ops.take(1)), values=PASS) == "(a |)"


async def test_an_error_of_the_source_goes_through_the_operator() -> None:
    assert await play("a-#", pass_through(int, slow(9))) == "--#"


async def test_an_error_of_the_operator_ends_both_ways() -> None:
    assert await play("a-x-p-|", pass_through(float, ops.map(int)), values={"a": "7"}) == "7-#"


def test_dispose_leaves_the_source_alone() -> None:
    source: Subject[str | int] = Subject()
    subscription = source.pipe(pass_through(int, ops.map(str.upper))).subscribe()
    subscription.dispose()
    assert source.observers == []


def test_a_raising_subscriber_is_heard_by_whoever_pushed_and_gets_the_next_item() -> None:
    source, got = Subject[str | int](), list[float]()
    source.pipe(pass_through(int, ops.map(len))).subscribe(lambda item: got.append(1 / item))
    for zero in (0, ""):
        with pytest.raises(ZeroDivisionError):
            source.on_next(zero)
    source.on_next(1)
    source.on_next("ab")
    assert got == [1.0, 0.5]
