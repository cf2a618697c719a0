import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from reactivex import operators as ops
from reactivex.subject import Subject

from clock import VirtualLoop
from dataflow import Amend, Keep, quiet_window
from tests.marbles import play, watch


def letter(item: str) -> str:
    return item[0]


def capital(batch: list[str]) -> str:
    return batch[0][0].upper()


def joined(batch: list[str]) -> str:
    return "".join(batch)


def edit(key: str, old: str, new: str | None) -> Amend[str, str]:
    return Amend(key, lambda item: new if item == old else item)


def second(item: tuple[float, str]) -> float:
    return item[0]


def whose(item: tuple[float, str]) -> str:
    return item[1]


class Open:
    """A window operator with someone who listens, pushed by hand."""

    def __init__(self, seconds: float, react: Callable[[str], object] = str, **options: Any) -> None:
        self.source: Subject[str | Amend[str, str]] = Subject()
        self.got: list[str] = []
        self.ended: list[str] = []
        self.subscription = self.source.pipe(quiet_window(seconds, letter, **options)).subscribe(
            self.take, lambda error: self.ended.append(repr(error)), lambda: self.ended.append("completed")
        )
        self.react = react

    def push(self, *items: str) -> None:
        for item in items:
            self.source.on_next(item)

    def take(self, batch: list[str]) -> None:
        self.got.append(joined(batch))
        self.react(joined(batch))


# What the docstring shows


async def test_a_key_that_falls_quiet_gives_its_items_as_one_list() -> None:
    assert await play("--a-a-b-------|", quiet_window(4, letter), show=capital) == "--------A-B---|"


async def test_a_window_is_open_for_max_seconds_at_the_most() -> None:
    """Pitfall 33."""
    assert await play("--a-a-a-a-----|", quiet_window(4, letter, max_seconds=6), show=capital) == "--------A---A-|"


async def test_an_amendment_changes_or_drops_what_waits_and_an_empty_window_vanishes() -> None:
    """Pitfall 29: an edit and a deletion while the message waits."""
    values = {"x": edit("a", "a", "c"), "y": edit("b", "b", None)}
    assert await play("-a-b-(x y)----|", quiet_window(5, letter), values=values, show=capital) == "------C---|"


def soon_after(letters: str, otherwise: float = 5) -> Callable[[Sequence[str]], float]:
    """Two seconds after an item with one of these letters."""
    return lambda items: 2 if items[-1][-1] in letters else otherwise


async def test_a_sign_of_life_keeps_a_window_open() -> None:
    values = {"j": Keep("a", 4, 3), "k": Keep("a", 6, 3)}
    shown = await play("-a--j-k-------|", quiet_window(4, letter), values=values, show=capital)
    assert shown == "---------A----|"


async def test_a_settled_window_closes_earlier_unless_it_was_kept() -> None:
    values = {"q": "aq", "r": "br", "k": Keep("b", 9, 3)}
    operator = quiet_window(5, letter, quiet_seconds=soon_after("qr"))
    assert await play("-a-q----rk----|", operator, values=values, show=capital) == "-----A-------B|"


# Signs of life, and what is settled


async def test_a_sign_of_life_without_a_window_or_too_late_for_it_is_nothing() -> None:
    values = {"j": Keep("a", 0, 9), "k": Keep("a", 5, 9)}
    assert await play("ja----k--|", quiet_window(4, letter), values=values, show=capital) == "-----A---|"
    source, got = Subject[Any](), list[str]()
    source.pipe(quiet_window(4, letter)).subscribe(lambda batch: got.append(joined(batch)))
    loop = asyncio.get_running_loop()
    loop.call_later(4, source.on_next, Keep("a", loop.time() + 4, 9))  # set before the window's own timer
    source.on_next("a")
    await asyncio.sleep(4.1)
    assert got == ["a"]


async def test_a_sign_of_life_never_shortens_a_window() -> None:
    values = {"k": Keep("a", 2, 1)}
    assert await play("a-k-------|", quiet_window(6, letter), values=values, show=capital) == "------A---|"


async def test_signs_of_life_do_not_keep_a_window_open_for_ever() -> None:
    """Pitfall 33."""
    source, got = Subject[Any](), list[float]()
    loop = asyncio.get_running_loop()
    source.pipe(quiet_window(4, letter, max_seconds=20)).subscribe(lambda _: got.append(loop.time()))
    source.on_next("a")
    for second in range(30):
        loop.call_at(second, source.on_next, Keep("a", second, 3))
    await asyncio.sleep(30)
    assert got == [20]


async def test_an_item_that_settles_a_window_brings_its_deadline_forward_past_others() -> None:
    values = {"q": "aq", "r": "br", "s": "cs"}
    operator = quiet_window(8, letter, quiet_seconds=soon_after("qrs", 8))
    assert await play("abcsrq-------|", operator, values=values, show=capital) == "-----CBA-----|"


async def test_a_settled_window_that_goes_on_is_not_settled_any_more() -> None:
    operator = quiet_window(5, letter, quiet_seconds=soon_after("q"))
    assert await play("qa--------|", operator, values={"q": "aq"}, show=joined) == "------(aqa)---|"


async def test_an_amendment_puts_off_what_is_settled_no_longer_and_brings_nothing_forward() -> None:
    operator = quiet_window(5, letter, quiet_seconds=soon_after("q"))
    values = {"q": "aq", "x": edit("a", "aq", "a"), "y": edit("b", "b", "bq")}
    assert await play("qx--------|", operator, values=values, show=capital) == "-----A----|"
    assert await play("b--y------|", operator, values=values, show=capital) == "-----B----|"


async def test_a_raising_settled_ends_the_stream_and_drops_what_waits() -> None:
    def refuse(items: Sequence[str]) -> float:
        if "!" in items[-1]:
            raise ValueError(items)
        return 5

    operator = quiet_window(5, letter, quiet_seconds=refuse)
    assert await play("a-x-|", operator, values={"x": "b!"}) == "--#"
    assert await play("a-x-|", operator, values={"x": edit("a", "a", "a!")}) == "--#"


# The window


async def test_it_holds_the_items_in_the_order_they_came() -> None:
    seen = await watch("(a1 b1 a2)-(a3 b2)-----|", quiet_window(3, letter))
    assert seen == [(5, ["a1", "a2", "a3"]), (5, ["b1", "b2"]), (8, "|")]


async def test_other_keys_do_not_keep_it_open() -> None:
    assert await play("abbbbbb-----|", quiet_window(3, letter), show=capital) == "---A-----B--|"


async def test_an_item_exactly_on_the_deadline_starts_a_new_window_whichever_timer_was_set_first() -> None:
    loop, window = asyncio.get_running_loop(), Open(3)
    window.push("a1")
    loop.call_at(3, window.push, "a2")  # set after the window's own timer
    await asyncio.sleep(7)
    assert window.got == ["a1", "a2"]
    assert await play("a--a---|", quiet_window(3, letter), show=capital) == "---A--A|"  # set before it


async def test_a_steady_writer_gets_a_batch_every_max_seconds() -> None:
    """Pitfall 33."""
    seen = await watch("a" * 30 + "----|", quiet_window(2, letter, max_seconds=10))
    assert [(at, len(batch)) for at, batch in seen[:-1]] == [(10, 10), (20, 10), (30, 10)]


async def test_a_cap_below_the_quiet_time_is_all_that_counts() -> None:
    assert await play("a-a-a-----|", quiet_window(9, letter, max_seconds=3), show=joined) == "---(aa)---a--|"


async def test_windows_that_close_at_one_instant_come_in_the_order_they_were_last_heard_of() -> None:
    assert await play("(b a c b)----|", quiet_window(3, letter), show=capital) == "---(A C B)-|"


# Ends


async def test_completion_flushes_open_windows_earliest_deadline_first() -> None:
    """Pitfall 8."""
    assert await play("b-a-b-c|", quiet_window(30, letter), show=joined) == "-------(a bb c |)"


async def test_completion_of_an_idle_stream_is_at_once() -> None:
    assert await play("-|", quiet_window(30, letter)) == "-|"


async def test_an_error_drops_what_waits_and_goes_through() -> None:
    assert await play("a-#", quiet_window(30, letter)) == "--#"


async def test_dispose_drops_what_waits() -> None:
    window = Open(3)
    window.push("a", "b")
    window.subscription.dispose()
    await asyncio.sleep(10)
    assert (window.got, window.ended) == ([], [])


async def test_a_raising_key_ends_the_stream_and_drops_what_waits() -> None:
    assert await play("a-x-|", quiet_window(30, lambda item: item[0]), values={"x": ""}) == "--#"


async def test_whoever_leaves_at_the_first_batch_gets_nothing_more_and_leaves_no_timer() -> None:
    assert await play("a-b-|", quiet_window(3, letter), ops.take(1), show=capital) == "---(A |)"


@pytest.mark.parametrize("late", ["a2", "b2"])
async def test_whoever_leaves_when_an_item_closes_a_window_leaves_no_timer(late: str) -> None:
    seconds = dict.fromkeys(("a1", "b1"), 0.0) | {"a2": 50.0, "b2": 50.0}
    window: Open = Open(3, lambda _: window.subscription.dispose(), time_of=seconds.__getitem__)
    window.push("a1", "b1", late)
    await asyncio.sleep(0)
    assert len(window.got) == 1


# Subscribers that raise, or push


def fail_at(batch: str) -> Callable[[str], object]:
    def react(got: str) -> None:
        if got == batch:
            raise ValueError(got)

    return react


async def test_a_subscriber_that_raises_at_one_batch_gets_the_others_in_time(crashes: list[BaseException]) -> None:
    window = Open(3, fail_at("a"))
    window.push("a", "b")
    await asyncio.sleep(1)
    window.push("c")
    await asyncio.sleep(2.5)
    assert window.got == ["a", "b"]
    await asyncio.sleep(1)
    assert window.got == ["a", "b", "c"]
    assert [str(crashes.pop()) for _ in range(len(crashes))] == ["a"]


async def test_a_subscriber_that_raises_at_completion_gets_the_others_and_the_end(crashes: list[BaseException]) -> None:
    """Pitfall 8: one bug at shutdown must not lose everybody's open batch."""
    window = Open(3, lambda got: fail_at("a")(got) or fail_at("c")(got))
    window.push("a", "b", "c")
    with pytest.raises(ValueError, match="a"):
        window.source.on_completed()
    await asyncio.sleep(0.1)
    assert (window.got, window.ended) == (["a", "b", "c"], ["completed"])
    assert str(crashes.pop()) == "c"


async def test_whoever_leaves_after_raising_at_completion_leaves_no_timer() -> None:
    window = Open(3, fail_at("a"))
    window.push("a", "b")
    with pytest.raises(ValueError, match="a"):
        window.source.on_completed()
    window.subscription.dispose()
    await asyncio.sleep(1)
    assert (window.got, window.ended) == (["a"], [])


async def test_an_item_that_closes_a_window_is_kept_even_if_the_subscriber_raises() -> None:
    moments = {"a1": 0.0, "a2": 5.0}
    window = Open(3, fail_at("a1"), time_of=moments.__getitem__)
    window.push("a1")
    with pytest.raises(ValueError, match="a1"):
        window.push("a2")
    await asyncio.sleep(9)
    assert window.got == ["a1", "a2"]


async def test_an_item_pushed_by_whoever_gets_a_batch_is_not_lost() -> None:
    window: Open = Open(3, lambda got: window.push("a2") if got == "a1" else None)
    window.push("a1", "b1")
    await asyncio.sleep(4)
    assert window.got == ["a1", "b1"]
    await asyncio.sleep(3)
    assert window.got == ["a1", "b1", "a2"]


async def test_an_item_pushed_while_another_closes_the_window_joins_that_one() -> None:
    moments = {"a1": 0.0, "a2": 50.0, "a3": 51.0}
    window: Open = Open(3, lambda got: window.push("a3") if got == "a1" else None, time_of=moments.__getitem__)
    window.push("a1", "a2")
    await asyncio.sleep(60)
    assert window.got == ["a1", "a2a3"]


# Amendments


async def test_an_amendment_for_a_key_without_a_window_is_nothing() -> None:
    values = {"x": edit("a", "a", None)}
    assert await play("x-a---x-|", quiet_window(3, letter), values=values, show=capital) == "-----A--|"


async def test_an_amendment_does_not_restart_the_quiet_time() -> None:
    values = {"x": edit("a", "a", "A")}
    assert await play("a--x--|", quiet_window(4, letter), values=values, show=joined) == "----A-|"


async def test_an_amendment_leaves_other_items_and_other_keys_alone() -> None:
    """Pitfall 29."""
    values = {"x": edit("a", "a2", None)}
    seen = await watch("(a1 a2 a3 b)-x----|", quiet_window(4, letter), values=values)
    assert seen[:-1] == [(4, ["a1", "a3"]), (4, ["b"])]


async def test_a_key_whose_window_vanished_starts_afresh() -> None:
    values = {"x": edit("a", "a", None)}
    assert await play("a-xa----|", quiet_window(3, letter), values=values, show=joined) == "------a-|"


async def test_a_raising_change_ends_the_stream() -> None:
    values = {"x": Amend("a", lambda item: str(1 / len(item[1:])))}
    assert await play("a-x-|", quiet_window(3, letter), values=values) == "--#"


# Items from the past


async def test_items_from_the_past_are_grouped_by_their_own_times() -> None:
    """After a reconnect the missed messages come all at once."""
    source, got = Subject[Any](), list[Any]()
    await asyncio.sleep(1000)
    source.pipe(quiet_window(5, whose, time_of=second)).subscribe(got.append)
    for at, name in [(100.0, "a"), (104.0, "a"), (109.0, "a"), (200.0, "a"), (997.0, "b")]:
        source.on_next((at, name))
    assert got == [[(100.0, "a"), (104.0, "a")], [(109.0, "a")]]
    await asyncio.sleep(0.001)
    assert got[2:] == [[(200.0, "a")]]
    await asyncio.sleep(2)
    assert got[3:] == [[(997.0, "b")]]


async def test_keys_may_come_out_of_order_among_each_other() -> None:
    source, got = Subject[Any](), list[str]()
    source.pipe(quiet_window(5, whose, time_of=second)).subscribe(
        lambda batch: got.append(joined([whose(i) for i in batch]))
    )
    for at, name in [(3.0, "c"), (1.0, "a"), (2.0, "b"), (2.5, "a")]:
        source.on_next((at, name))
    await asyncio.sleep(6.5)
    assert got == []
    await asyncio.sleep(0.6)
    assert got == ["b"]
    await asyncio.sleep(10)
    assert got == ["b", "aa", "c"]


async def test_a_late_item_of_a_key_never_shortens_its_window() -> None:
    source, got = Subject[Any](), list[Any]()
    source.pipe(quiet_window(5, whose, time_of=second)).subscribe(got.append)
    for at in (3.0, 1.0):
        source.on_next((at, "a"))
    await asyncio.sleep(7.9)
    assert got == []
    await asyncio.sleep(0.2)
    assert got == [[(3.0, "a"), (1.0, "a")]]


# The clock and the gauge


def test_another_clock_may_tell_the_time() -> None:
    async def main() -> list[tuple[float, str]]:
        loop, source, got = asyncio.get_running_loop(), Subject[Any](), list[tuple[float, str]]()
        source.pipe(quiet_window(5, whose, time_of=second, clock=lambda loop: lambda: loop.time() - 1e6)).subscribe(
            lambda batch: got.append((loop.time(), batch[0][1]))
        )
        source.on_next((1.0, "a"))
        await asyncio.sleep(10)
        return got

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(1e6)) as runner:
        assert runner.run(main()) == [(1e6 + 6, "a")]


async def test_the_gauge_follows_the_number_of_open_windows() -> None:
    counts: list[int] = []
    values = {"x": edit("a", "a", None)}
    await watch("abbx-a---c|", quiet_window(3, letter, gauge=counts.append), values=values)
    assert counts == [1, 2, 1, 2, 1, 0, 1, 0]


async def test_the_gauge_hears_of_windows_that_are_dropped() -> None:
    counts: list[int] = []
    window = Open(3, gauge=counts.append)
    window.push("a", "b")
    window.subscription.dispose()
    assert counts == [1, 2, 0]
