"""A subscriber's scheduler reaches the source through every operator, as in Rx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import ImmediateScheduler

from dataflow import fork, supervise
from dataflow.basics import Handlers, concat_map_iterable, make_operator, of_type, pass_through
from dataflow.serialize_by_key import serialize_by_key
from tests.marbles import Operator


def doing_nothing(_: abc.ObserverBase[Any]) -> Handlers[Any]:
    return Handlers(lambda _: None)


def cleaning_up(_: abc.ObserverBase[Any]) -> Handlers[Any]:
    return Handlers(lambda _: None, on_dispose=lambda: None)


def first(item: Any) -> Any:
    return item


def twice(item: Any) -> list[Any]:
    return [item, item]


@pytest.mark.parametrize(
    "through",
    [
        make_operator(doing_nothing),
        make_operator(cleaning_up),
        fork("items"),
        supervise("items"),
        of_type(str),
        concat_map_iterable(twice),
        pass_through(str, of_type(int)),
        serialize_by_key(first, of_type(int), key_of_result=first, max_active=1, max_waiting=1, on_overflow=first),
    ],
    ids=["operator", "with an end", "fork", "supervise", "only", "concat_map", "pass_through", "serialize_by_key"],
)
def test_the_scheduler_of_a_subscription_reaches_the_source(through: Operator) -> None:
    seen: list[object] = []

    def subscribe(_: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        seen.append(scheduler)
        return Disposable()

    mine = ImmediateScheduler()
    given: Callable[[Observable[Any]], Observable[Any]] = through
    Observable(subscribe).pipe(given).subscribe(scheduler=mine).dispose()
    assert seen == [mine]


def test_the_scheduler_reaches_a_pipeline_that_items_of_one_key_pass() -> None:
    seen: list[object] = []

    def noting(_: Observable[Any]) -> Observable[Any]:
        def subscribe(_: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            seen.append(scheduler)
            return Disposable()

        return Observable(subscribe)

    mine, nothing = ImmediateScheduler(), Observable[Any](lambda _, __: Disposable())
    in_turn = serialize_by_key(first, noting, key_of_result=first, max_active=1, max_waiting=1, on_overflow=first)
    nothing.pipe(in_turn).subscribe(scheduler=mine).dispose()
    assert seen == [mine]
