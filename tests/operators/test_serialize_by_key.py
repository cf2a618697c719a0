import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable, compose
from reactivex import operators as ops
from reactivex.subject import Subject

from clock import VirtualLoop
from dataflow import map_async, serialize_by_key
from tests.marbles import Operator, play, watch
from tests.operators.slow import lost, takes


def letter(item: str) -> str:
    return item[0]


def dropped(item: str) -> str:
    return f"{item}:dropped"


def turns(
    pipeline: Callable[[Observable[str]], Observable[str]], *, max_active: int = 9, max_waiting: int = 9
) -> Callable[[Observable[str]], Observable[str]]:
    return serialize_by_key(
        letter,
        pipeline,
        key_of_result=letter,
        max_active=max_active,
        max_waiting=max_waiting,
        on_overflow=dropped,
    )


def slow(seconds: float) -> Callable[[Observable[str]], Observable[str]]:
    return map_async(takes(seconds), on_failure=lost, max_concurrent=99)


# Order


async def test_one_keys_items_go_in_one_after_another_and_other_keys_do_not_wait() -> None:
    """Pitfall 27."""
    assert await play("--aab----------------|", turns(slow(6))) == "--------a-b---a------|"


async def test_no_result_of_a_key_overtakes_an_earlier_one_however_quick_it_is() -> None:
    """Pitfall 26 and 27."""

    async def ever_quicker(item: str) -> str:
        await asyncio.sleep(9 - int(item[1]))
        return item

    pipeline = map_async(ever_quicker, on_failure=lost, max_concurrent=99)
    seen = await watch("(a1 a5 b1 a8)-|", turns(pipeline))
    assert seen == [(8, "a1"), (8, "b1"), (12, "a5"), (13, "a8"), (13, "|")]


async def test_several_steps_are_passed_as_one() -> None:
    """Pitfall 27: the second question is not even begun before the first is answered."""
    begun: list[tuple[float, str]] = []

    def note(item: str) -> None:
        begun.append((asyncio.get_running_loop().time(), item))

    await play("(a1 a2)|", turns(compose(slow(2), ops.do_action(note), slow(3))))
    assert begun == [(2, "a1"), (7, "a2")]


async def test_who_came_first_goes_in_first_whatever_the_key() -> None:
    seen = await watch("(a1 b1 a2 c1)------|", turns(slow(2), max_active=1))
    assert [item for _, item in seen] == ["a1", "b1", "a2", "c1", "|"]


# Bounds


async def test_no_more_keys_are_inside_than_may() -> None:
    assert await play("(abc)------|", turns(slow(2), max_active=2)) == "--(a b)-c--|"


async def test_beyond_what_may_wait_the_oldest_leaves() -> None:
    seen = await watch("(a1 a2 a3 a4)----|", turns(slow(1), max_waiting=1))
    assert seen == [(0, "a2:dropped"), (0, "a3:dropped"), (1, "a1"), (2, "a4"), (5, "|")]


async def test_without_an_overflow_any_number_may_wait() -> None:
    unbounded = serialize_by_key(letter, slow(1), key_of_result=letter, max_active=1)
    assert await play("(abcd)-----|", unbounded) == "-abcd-|"


async def test_the_oldest_leaves_also_if_only_room_kept_it_waiting() -> None:
    seen = await watch("(a1 b1 b2 c1)----|", turns(slow(1), max_active=1, max_waiting=2))
    assert seen == [(0, "b1:dropped"), (1, "a1"), (2, "b2"), (3, "c1"), (5, "|")]
    seen = await watch("(a1 b1 c1)----|", turns(slow(1), max_active=1, max_waiting=1))
    assert [item for _, item in seen] == ["b1:dropped", "a1", "c1", "|"]


async def test_with_no_room_to_wait_what_can_go_in_does() -> None:
    seen = await watch("(a1 a2)-(a3 b1)--|", turns(slow(1), max_waiting=0))
    assert seen == [(0, "a2:dropped"), (1, "a1"), (3, "a3"), (3, "b1"), (5, "|")]


# Ends


async def test_completion_lets_everything_waiting_through_first() -> None:
    """Pitfall 8."""
    assert await play("(aab)|", turns(slow(3), max_active=1)) == "---a--a--(b |)"


async def test_completion_of_an_idle_stream_is_at_once() -> None:
    assert await play("-|", turns(slow(3))) == "-|"


async def test_an_error_of_the_source_goes_through_and_ends_what_is_inside() -> None:
    assert await play("(aa)-#", turns(slow(3))) == "--#"


async def test_an_error_of_the_pipeline_goes_through() -> None:
    assert await play("a-x-|", turns(ops.map(lambda item: item[:1] + item[1]))) == "#"


async def test_a_raising_key_ends_the_stream() -> None:
    assert await play("(aa)-x-|", turns(slow(9)), values={"x": ""}) == "--#"


async def test_dispose_drops_what_waits_and_what_is_inside() -> None:
    source, got = Subject[str](), list[str]()
    subscription = source.pipe(turns(slow(3))).subscribe(got.append)
    for item in ("a1", "a2", "b1"):
        source.on_next(item)
    await asyncio.sleep(1)
    subscription.dispose()
    await asyncio.sleep(9)
    assert (got, source.observers) == ([], [])


async def test_whoever_leaves_at_the_first_result_leaves_in_peace_while_that_key_waits() -> None:
    assert await play("(aab)|", turns(slow(3)), ops.take(1)) == "---(a |)"


# Pipelines that answer at once, subscribers that raise or push


async def test_a_pipeline_that_answers_at_once_lets_thousands_through_however_many_wait() -> None:
    first_is_slow = Subject[str]()

    def at_once(items: Observable[str]) -> Observable[str]:
        return items.pipe(ops.filter(lambda item: item != "a"), ops.merge(first_is_slow))

    source, got, ended = Subject[str](), list[str](), list[bool]()
    source.pipe(turns(at_once, max_waiting=9999)).subscribe(got.append, on_completed=lambda: ended.append(True))
    for item in ("a", *(f"a{number}" for number in range(3000))):
        source.on_next(item)
    assert got == []
    source.on_completed()
    first_is_slow.on_next("a")
    first_is_slow.on_completed()
    assert len(got) == 3001
    assert ended == [True]


def pushing(operator: Operator, react: Callable[[str, Subject[str]], object]) -> tuple[Subject[str], list[str]]:
    """A source, and what came of it; `react` is told each result."""
    source, got = Subject[str](), list[str]()

    def take(item: str) -> None:
        got.append(item)
        react(item, source)

    source.pipe(operator).subscribe(take)
    return source, got


async def test_a_subscriber_that_raises_costs_no_key_its_turn(crashes: list[BaseException]) -> None:
    def react(item: str, _: Subject[str]) -> None:
        if item in {"a1", "b1"}:
            raise ValueError(item)

    source, got = pushing(turns(slow(2), max_active=2), react)
    for item in ("a1", "b1", "a2", "c1", "b2"):
        source.on_next(item)
    source.on_completed()
    await asyncio.sleep(9)
    assert got == ["a1", "b1", "a2", "c1", "b2"]
    assert [str(crashes.pop()) for _ in range(len(crashes))] == ["b1", "a1"]


def test_a_subscriber_that_raises_at_once_keeps_nobody_out() -> None:
    gate = Subject[str]()

    def held_back(items: Observable[str]) -> Observable[str]:
        return items.pipe(ops.filter(lambda item: item != "a1"), ops.merge(gate))

    def react(item: str, _: Subject[str]) -> None:
        if item in {"a2", "b1"}:
            raise ValueError(item)

    source, got = pushing(turns(held_back, max_active=1), react)
    for item in ("a1", "b1", "a2", "c1"):
        source.on_next(item)
    with pytest.raises(ValueError, match="b1"):
        gate.on_next("a1")
    assert got == ["a1", "b1", "a2", "c1"]


def test_what_is_pushed_at_a_result_waits_its_turn_and_is_bound_like_the_rest() -> None:
    def react(item: str, source: Subject[str]) -> None:
        if item == "a1":
            for each in ("a2", "a3"):
                source.on_next(each)

    at_once: Callable[[Observable[str]], Observable[str]] = ops.map(lambda item: item)
    source, got = pushing(turns(at_once, max_waiting=0), react)
    source.on_next("a1")
    assert got == ["a1", "a2", "a3"]


async def test_what_overflows_at_a_result_leaves_when_the_others_are_in() -> None:
    def react(item: str, source: Subject[str]) -> None:
        if item == "b1":
            for each in ("a2", "a3"):
                source.on_next(each)

    def quick_b(items: Observable[str]) -> Observable[str]:
        return items.pipe(map_async(takes(2), on_failure=lost, max_concurrent=9))

    def mixed(items: Observable[str]) -> Observable[str]:
        shared = items.pipe(ops.share())
        return shared.pipe(
            ops.filter(lambda item: item[0] == "b"),
            ops.merge(shared.pipe(ops.filter(lambda item: item[0] == "a"), quick_b)),
        )

    source, got = pushing(turns(mixed, max_waiting=1), react)
    source.on_next("a1")
    source.on_next("b1")
    assert got == ["b1", "a2:dropped"]
    source.on_completed()
    await asyncio.sleep(9)
    assert got == ["b1", "a2:dropped", "a1", "a3"]


# Whatever comes


arrivals = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("abc"), st.integers(0, 5)), max_size=30)
"""When each comes, whose it is, how long it takes."""


@given(arrivals, st.integers(1, 3), st.integers(0, 6))
def test_each_keys_items_come_out_once_and_in_order_and_no_bound_is_exceeded(
    drawn: list[tuple[int, str, int]], max_active: int, max_waiting: int
) -> None:
    """Pitfall 27."""
    items = [(at, name, number, takes) for number, (at, name, takes) in enumerate(sorted(drawn))]
    inside: list[str] = []
    finished: list[tuple[str, int]] = []
    overflowed: list[tuple[str, int]] = []

    async def work(item: Any) -> tuple[str, int]:
        _, name, number, seconds = item
        assert name not in inside
        inside.append(name)
        assert len(inside) <= max_active
        await asyncio.sleep(seconds)
        inside.remove(name)
        return name, number

    def overflow(item: Any) -> tuple[str, int]:
        overflowed.append((item[1], item[2]))
        return item[1], item[2]

    def fail(_: Any, error: Exception) -> tuple[str, int]:
        raise error

    operator = serialize_by_key(
        lambda item: item[1],
        map_async(work, on_failure=fail, max_concurrent=99),
        key_of_result=lambda result: result[0],
        max_active=max_active,
        max_waiting=max_waiting,
        on_overflow=overflow,
    )

    async def main() -> None:
        loop, source, done = asyncio.get_running_loop(), Subject[Any](), asyncio.Event()
        source.pipe(operator).subscribe(finished.append, on_completed=done.set)
        for item in items:
            loop.call_at(item[0], source.on_next, item)
        loop.call_at(9, source.on_completed)
        await done.wait()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert sorted(finished) == sorted((name, number) for _, name, number, _ in items)
    assert overflowed == sorted(overflowed, key=lambda result: result[1])
    worked_on = [result for result in finished if result not in overflowed]
    for name in "abc":
        mine = [number for whose, number in worked_on if whose == name]
        assert mine == sorted(mine)
    if len(items) <= max_waiting:
        assert overflowed == []


async def test_how_many_wait_is_told_whenever_it_has_changed() -> None:
    counts: list[int] = []
    operator = serialize_by_key(
        letter,
        slow(2),
        key_of_result=letter,
        max_active=2,
        max_waiting=9,
        on_overflow=dropped,
        on_waiting=counts.append,
    )
    await watch("(aab)-----|", operator)
    assert counts == [0, 1, 1, 0, 0, 0]
