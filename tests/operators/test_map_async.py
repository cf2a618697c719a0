import asyncio
import gc
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex import operators as ops
from reactivex.disposable import SerialDisposable
from reactivex.subject import Subject

from clock import VirtualLoop
from dataflow import CancelToken, Overflow, UnexpectedCancellation, map_async
from tests.marbles import Seen, play, watch
from tests.operators.slow import as_long_as_it_says, lost, named, takes

about: ContextVar[str] = ContextVar("about", default="nobody")


async def stuck(_: str) -> str:
    await asyncio.Event().wait()
    raise AssertionError


def crossed_out(_: str, __: Exception) -> str:
    return "x"


async def no_twos(item: str) -> str:
    await asyncio.sleep(1)
    if item == "2":
        raise ValueError(item)
    return item


# What the docstring shows


async def test_a_failure_is_an_item_like_others_and_the_stream_goes_on() -> None:
    failing = map_async(no_twos, on_failure=crossed_out, max_concurrent=9)
    assert await play("--1--2--3------|", failing) == "---1--x--3-----|"


async def test_ordered_results_wait_for_their_turn() -> None:
    ordered = map_async(as_long_as_it_says, on_failure=lost, max_concurrent=9, ordered=True)
    assert await play("-31----|", ordered) == "----(3 1)--|"


# Bounds and order


@pytest.mark.parametrize(
    ("at_once", "ordered", "seen"),
    [(9, False, "--13-2--|"), (2, False, "--13-2--|"), (1, False, "---31-2-|"), (9, True, "---(3 1)-2--|")],
)
async def test_as_many_run_at_once_as_may(at_once: int, ordered: bool, seen: str) -> None:
    operator = map_async(as_long_as_it_says, on_failure=lost, max_concurrent=at_once, ordered=ordered)
    assert await play("31-2----|", operator) == seen


async def test_a_slow_head_holds_up_to_max_concurrent_ordered_results() -> None:
    operator = map_async(as_long_as_it_says, on_failure=lost, max_concurrent=2, ordered=True)
    assert await play("(5111)------|", operator) == "-----(5 1)(1 1)|"


async def test_the_oldest_of_too_many_waiting_is_given_up_at_once() -> None:
    operator = map_async(takes(2), on_failure=named, max_concurrent=1, max_waiting=1)
    seen = await watch("abcd----|", operator)
    assert seen == [(2, "b:Overflow"), (2, "a"), (4, "c"), (6, "d"), (8, "|")]


async def test_with_no_room_to_wait_what_finds_nobody_free_is_given_up() -> None:
    operator = map_async(takes(2), on_failure=named, max_concurrent=1, max_waiting=0)
    assert await watch("ab-c---|", operator) == [(1, "b:Overflow"), (2, "a"), (5, "c"), (7, "|")]


async def test_an_overflow_says_how_many_may_wait() -> None:
    errors: list[str] = []

    def keep(item: str, error: Exception) -> str:
        assert isinstance(error, Overflow)
        errors.append(str(error))
        return item

    await play("(ab)----|", map_async(takes(2), on_failure=keep, max_concurrent=1, max_waiting=0))
    assert errors == ["more than 0 were waiting"]


# Failures


async def test_a_function_that_raises_before_it_gives_a_coroutine_fails_like_any_other() -> None:
    def broken(item: str) -> Coroutine[Any, Any, str]:
        return takes(float(item))(item)

    seen = await watch("1x-1--|", map_async(broken, on_failure=named, max_concurrent=9))
    assert seen == [(1, "x:ValueError"), (1, "1"), (4, "1"), (6, "|")]


async def test_a_function_that_cancels_itself_has_failed() -> None:
    async def give_up(_: str) -> str:
        raise asyncio.CancelledError

    assert await watch("a-|", map_async(give_up, on_failure=named, max_concurrent=1)) == [
        (0, f"a:{UnexpectedCancellation.__name__}"),
        (2, "|"),
    ]


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_is_no_items_failure(fatal: type[BaseException]) -> None:
    got: list[str] = []

    async def interrupted(_: str) -> str:
        raise fatal

    async def main() -> None:
        source: Subject[str] = Subject()
        source.pipe(map_async(interrupted, on_failure=named, max_concurrent=1)).subscribe(got.append)
        source.on_next("a")
        await asyncio.sleep(1)

    with pytest.raises(fatal), asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    gc.collect()  # asyncio reports the task that nobody waited for here, and not on some later test's behalf
    assert got == []


# Ends


async def test_completion_waits_for_the_work_in_hand_and_for_what_waits() -> None:
    """Pitfall 8."""
    operator = map_async(takes(3), on_failure=lost, max_concurrent=1)
    assert await play("ab|", operator) == "---a--(b |)"


async def test_completion_of_an_idle_stream_is_at_once() -> None:
    assert await play("-|", map_async(takes(3), on_failure=lost, max_concurrent=1)) == "-|"


async def test_an_error_of_the_source_cancels_the_work_in_hand() -> None:
    assert await play("ab-#", map_async(stuck, on_failure=lost, max_concurrent=1)) == "---#"


async def test_dispose_cancels_what_runs_and_drops_what_waits() -> None:
    counts, got, source = list[int](), list[str](), Subject[str]()
    operator = map_async(stuck, on_failure=lost, max_concurrent=2, gauge=counts.append)
    subscription = source.pipe(operator).subscribe(got.append)
    for item in "abc":
        source.on_next(item)
    await asyncio.sleep(1)
    subscription.dispose()
    await asyncio.sleep(1)
    assert (got, counts, source.observers) == ([], [1, 2, 0], [])


async def test_what_finishes_when_nobody_listens_any_more_goes_nowhere() -> None:
    source, subscription, got = Subject[str](), SerialDisposable(), list[str]()

    async def leaves(item: str) -> str:
        subscription.dispose()
        return item

    async def stubborn(item: str) -> str:
        try:
            return await stuck(item)
        except asyncio.CancelledError:
            return item

    for work in (leaves, stubborn):
        subscription = SerialDisposable()
        operator = map_async(work, on_failure=lost, max_concurrent=1)
        subscription.disposable = source.pipe(operator).subscribe(got.append)
        source.on_next("a")
        await asyncio.sleep(1)
        subscription.dispose()
        await asyncio.sleep(1)
    assert got == []


@pytest.mark.parametrize("ordered", [False, True])
async def test_whoever_leaves_at_the_first_result_gets_nothing_more(ordered: bool) -> None:
    operator = map_async(as_long_as_it_says, on_failure=lost, max_concurrent=3, ordered=ordered)
    assert await play("(2222)----|", operator, ops.take(1)) == "--(2 |)"


async def test_whoever_leaves_at_an_overflow_leaves_no_work_behind() -> None:
    operator = map_async(stuck, on_failure=named, max_concurrent=1, max_waiting=1)
    assert await watch("abcd|", operator, ops.take(1)) == [(2, "b:Overflow"), (2, "|")]
    await asyncio.sleep(0)


# Subscribers that raise, or push


@pytest.mark.parametrize("ordered", [False, True])
async def test_a_subscriber_that_raises_costs_nobody_a_slot_or_a_turn(
    ordered: bool, crashes: list[BaseException]
) -> None:
    source, got, ended = Subject[str](), list[str](), list[str]()

    def take(item: str) -> None:
        got.append(item)
        if item == "3":
            raise ValueError(item)

    operator = map_async(as_long_as_it_says, on_failure=lost, max_concurrent=2, ordered=ordered)
    source.pipe(operator).subscribe(take, on_completed=lambda: ended.append("completed"))
    for item in "3132":
        source.on_next(item)
    source.on_completed()
    await asyncio.sleep(20)
    assert sorted(got) == ["1", "2", "3", "3"]
    assert ended == ["completed"]
    assert [str(crashes.pop()) for _ in range(len(crashes))] == ["3", "3"]


async def test_a_subscriber_that_raises_at_what_was_called_off_holds_up_nobody(crashes: list[BaseException]) -> None:
    tokens = {item: CancelToken() for item in "abcd"}
    source, got, ended = Subject[str](), list[str](), list[str]()

    def take(item: str) -> None:
        got.append(item)
        if ":" in item:
            raise ValueError(item)

    operator = map_async(takes(2), on_failure=named, max_concurrent=1, token=tokens.__getitem__)
    source.pipe(operator).subscribe(take, on_completed=lambda: ended.append("completed"))
    for item in "abcd":
        source.on_next(item)
    for item in "bcd":
        tokens[item].cancel(LookupError())
    source.on_completed()
    await asyncio.sleep(3)
    assert got == ["a", "b:LookupError", "c:LookupError", "d:LookupError"]
    assert ended == ["completed"]
    assert len(crashes) == 3
    crashes.clear()


async def test_results_pushed_back_into_the_source_are_worked_on() -> None:
    source, got = Subject[str](), list[str]()

    def take(item: str) -> None:
        got.append(item)
        if len(item) < 3:
            source.on_next(item + "a")

    source.pipe(map_async(takes(1), on_failure=lost, max_concurrent=1)).subscribe(take)
    source.on_next("a")
    await asyncio.sleep(5)
    assert got == ["a", "aa", "aaa"]


# Cancel tokens


Work = Callable[[str], Coroutine[Any, Any, str]]


async def called_off(at: int, source: str, work: Work, *, max_concurrent: int = 1, ordered: bool = False) -> Seen:
    """Play `source`, whose item `b` is called off at second `at`."""
    fate = CancelToken()
    timer = asyncio.get_running_loop().call_later(at, fate.cancel, LookupError("deleted"))
    operator = map_async(
        work,
        on_failure=named,
        max_concurrent=max_concurrent,
        ordered=ordered,
        token=lambda item: fate if item == "b" else None,
    )
    seen = await watch(source, operator)
    timer.cancel()
    return seen


async def test_an_item_called_off_while_waiting_is_not_begun() -> None:
    """Pitfall 29."""
    begun: list[str] = []

    async def work(item: str) -> str:
        begun.append(item)
        return await takes(3)(item)

    seen = await called_off(1, "(abc)----|", work)
    assert seen == [(3, "a"), (3, "b:LookupError"), (6, "c"), (6, "|")]
    assert begun == ["a", "c"]


async def test_an_item_called_off_at_work_is_cancelled() -> None:
    """Pitfall 29."""
    seen = await called_off(1, "(ba)------|", takes(3))
    assert seen == [(1, "b:LookupError"), (4, "a"), (7, "|")]


async def test_in_order_what_was_called_off_keeps_its_place() -> None:
    seen = await called_off(1, "(ab)------|", takes(3), max_concurrent=2, ordered=True)
    assert seen == [(3, "a"), (3, "b:LookupError"), (7, "|")]
    seen = await called_off(0, "ab-----|", takes(3), max_concurrent=2, ordered=True)
    assert seen == [(3, "a"), (3, "b:LookupError"), (7, "|")]


async def test_an_item_whose_time_is_up_fails_with_what_it_was_to_fail_with() -> None:
    fate = CancelToken()

    async def timed(item: str) -> str:
        fate.expire_in(2, TimeoutError())
        return await stuck(item)

    assert await watch("a---|", map_async(timed, on_failure=named, max_concurrent=1, token=lambda _: fate)) == [
        (2, "a:TimeoutError"),
        (4, "|"),
    ]


async def test_what_a_cancelled_function_raises_instead_does_not_hide_why() -> None:
    async def clumsy(item: str) -> str:
        try:
            return await stuck(item)
        except asyncio.CancelledError:
            raise ConnectionError("lost") from None

    seen = await called_off(1, "b--|", clumsy)
    assert seen == [(1, "b:LookupError"), (3, "|")]


async def test_a_function_that_finishes_all_the_same_has_its_result_used() -> None:
    async def stubborn(item: str) -> str:
        try:
            return await stuck(item)
        except asyncio.CancelledError:
            return item

    seen = await called_off(1, "b--|", stubborn)
    assert seen == [(1, "b"), (3, "|")]


async def test_a_token_called_off_after_the_work_stops_nothing() -> None:
    fate = CancelToken()
    assert await play("a--|", map_async(takes(1), on_failure=lost, max_concurrent=1, token=lambda _: fate)) == "-a-|"
    fate.cancel(LookupError())


# Contexts and the gauge


@pytest.mark.parametrize("ordered", [False, True])
async def test_each_item_is_worked_on_and_leaves_in_its_own_context(ordered: bool) -> None:
    source, got = Subject[str](), list[tuple[str, str]]()

    async def work(item: str) -> str:
        await asyncio.sleep(int(item))
        return f"{item} in {about.get()}"

    def sync_part(item: str) -> Coroutine[Any, Any, str]:
        assert about.get() == f"context of {item}"
        return work(item)

    operator = map_async(sync_part, on_failure=lost, max_concurrent=2, ordered=ordered)
    source.pipe(operator).subscribe(lambda item: got.append((item, about.get())))
    for item in "312":
        about.set(f"context of {item}")
        source.on_next(item)
    about.set("nobody")
    await asyncio.sleep(9)
    assert sorted(got) == [(f"{n} in context of {n}", f"context of {n}") for n in "123"]


async def test_what_overflows_is_accounted_for_in_its_own_context() -> None:
    told: list[str] = []

    def give_up(item: str, _: Exception) -> str:
        told.append(about.get())
        about.set("changed")
        return item

    source: Subject[str] = Subject()
    source.pipe(map_async(takes(1), on_failure=give_up, max_concurrent=1, max_waiting=1)).subscribe()
    for item in "abc":
        about.set(f"context of {item}")
        source.on_next(item)
    assert told == ["context of b"]
    assert about.get() == "context of c"
    await asyncio.sleep(3)


async def test_the_gauge_follows_the_number_at_work() -> None:
    counts: list[int] = []
    await play("(abc)----|", map_async(takes(1), on_failure=lost, max_concurrent=2, gauge=counts.append))
    assert max(counts) == 2
    assert counts[-1] == 0


class Watched:
    def __init__(self) -> None:
        self.waiting: list[int] = []
        self.ends: list[str | None] = []
        self.begun = 0

    def on_waiting(self, count: int) -> None:
        self.waiting.append(count)

    def on_begin(self) -> Callable[[Exception | None], object]:
        self.begun += 1
        return lambda error: self.ends.append(None if error is None else type(error).__name__)


async def test_a_watch_hears_of_each_item_what_it_failed_of_and_how_many_wait() -> None:
    heard = Watched()

    async def work(item: str) -> str:
        await asyncio.sleep(1)
        if item == "b":
            raise ValueError(item)
        if item == "c":
            raise asyncio.CancelledError
        return item

    told = await play("(abcd)----|", map_async(work, on_failure=named, max_concurrent=1, watch=heard))
    assert told.endswith("|")
    assert max(heard.waiting) == 3
    assert heard.waiting[-1] == 0
    assert heard.begun == 4
    assert heard.ends == [None, "ValueError", "UnexpectedCancellation", None]


async def test_a_watch_hears_that_nothing_waits_once_the_subscriber_has_left() -> None:
    heard, source = Watched(), Subject[str]()
    subscription = source.pipe(map_async(takes(5), on_failure=lost, max_concurrent=1, watch=heard)).subscribe()
    source.on_next("a")
    source.on_next("b")
    await asyncio.sleep(1)
    subscription.dispose()
    await asyncio.sleep(1)
    assert heard.waiting == [0, 1, 0]
    assert heard.ends == [None]


# Whatever comes


works = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5), st.booleans()), max_size=25)
"""When each comes, how long it takes, whether it fails."""


@given(works, st.integers(1, 4), st.none() | st.integers(0, 3), st.booleans())
def test_each_item_gives_exactly_one_result_and_no_bound_is_exceeded(
    drawn: list[tuple[int, int, bool]], at_once: int, may_wait: int | None, ordered: bool
) -> None:
    arrivals = sorted(drawn, key=lambda work: work[0])
    running: list[int] = []
    failed: dict[int, Exception] = {}

    async def work(number: int) -> int:
        running.append(number)
        assert len(running) <= at_once
        try:
            await asyncio.sleep(arrivals[number][1])
        finally:
            running.remove(number)
        if arrivals[number][2]:
            raise ValueError(number)
        return number

    def fail(number: int, error: Exception) -> int:
        failed[number] = error
        return number

    async def main() -> list[int]:
        loop, source, got, done = asyncio.get_running_loop(), Subject[int](), list[int](), asyncio.Event()
        operator = map_async(work, on_failure=fail, max_concurrent=at_once, max_waiting=may_wait, ordered=ordered)
        source.pipe(operator).subscribe(got.append, on_completed=done.set)
        for number, (at, _, _) in enumerate(arrivals):
            loop.call_at(at, source.on_next, number)
        loop.call_at(8, source.on_completed)
        await done.wait()
        return got

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        got = runner.run(main())
    assert sorted(got) == list(range(len(arrivals)))
    overflowed = {number for number, error in failed.items() if isinstance(error, Overflow)}
    assert failed.keys() == overflowed | {n for n, (_, _, fails) in enumerate(arrivals) if fails and n in failed}
    assert not (may_wait is None and overflowed)
    if ordered:
        serialize_by_key = [number for number in got if number not in overflowed]
        assert serialize_by_key == sorted(serialize_by_key)
