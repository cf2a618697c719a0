"""quiet_window against a model that knows nothing of loops and timers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from clock import VirtualLoop
from operators import Amend, quiet_window

QUIET, CAP = 5, 12


@dataclass(frozen=True)
class Item:
    at: int
    key: str
    number: int


@dataclass(frozen=True)
class Drop:
    """The deletion of whatever has this number."""

    at: int
    key: str
    number: int


def model(events: Sequence[Item | Drop]) -> list[list[Item]]:
    """Each key on its own; `events` in the order they came, at the times they happened."""
    closed: list[list[Item]] = []
    for key in {event.key for event in events}:
        window, opened, deadline = list[Item](), 0, 0
        for event in [each for each in events if each.key == key]:
            if isinstance(event, Drop):  # one that comes on the deadline, before the timer, still finds what waits
                window = [item for item in window if item.number != event.number or event.at > deadline]
                continue
            if event.at >= deadline:
                closed.append(window)
                window = []
            opened = opened if window else event.at
            deadline = max(deadline if window else 0, min(event.at + QUIET, opened + CAP))
            window.append(event)
        closed.append(window)
    return sorted((batch for batch in closed if batch), key=str)


def amendment(drop: Drop) -> Amend[str, Item]:
    return Amend(drop.key, lambda item: None if item.number == drop.number else item)


def windows(events: Sequence[Item | Drop], *, delays: Sequence[int] = (), end: bool = True) -> list[list[Item]]:
    """What the operator makes of it when event n comes `delays[n]` seconds late; without `delays`, all at once."""

    async def main() -> list[list[Item]]:
        loop, source, got = asyncio.get_running_loop(), Subject[Item | Amend[str, Item]](), list[list[Item]]()
        source.pipe(quiet_window(QUIET, lambda item: item.key, max_seconds=CAP, at=lambda item: item.at)).subscribe(
            got.append
        )
        for event, delay in zip(events, delays or [0] * len(events), strict=True):
            pushed = event if isinstance(event, Item) else amendment(event)
            loop.call_at(event.at + delay if delays else 1000, source.on_next, pushed)
        await asyncio.sleep(2000)
        if end:
            source.on_completed()
        return sorted(got, key=str)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


def numbered(moments: list[tuple[int, str]]) -> list[Item]:
    return [Item(at, key, number) for number, (at, key) in enumerate(moments)]


moments = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abc")), max_size=40)


@given(moments)
def test_random_arrivals_of_several_keys_are_grouped_as_in_the_model(drawn: list[tuple[int, str]]) -> None:
    events = numbered(sorted(drawn))
    assert windows(events, delays=[0] * len(events)) == model(events)


@given(moments)
def test_a_window_never_needs_the_end_of_the_stream_to_close(drawn: list[tuple[int, str]]) -> None:
    events = numbered(sorted(drawn))
    assert windows(events, delays=[0] * len(events), end=False) == model(events)


@given(moments, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 39)), max_size=10))
def test_deletions_take_out_what_still_waits_and_nothing_else(
    drawn: list[tuple[int, str]], deletions: list[tuple[int, int]]
) -> None:
    """Pitfall 29."""
    items = numbered(sorted(drawn))
    drops = [Drop(at, items[number].key, number) for at, number in deletions if number < len(items)]
    events = sorted([*items, *drops], key=lambda event: (event.at, isinstance(event, Drop), event.number))
    assert windows(events, delays=[0] * len(events)) == model(events)


@given(moments)
def test_items_that_come_all_at_once_long_after_are_grouped_by_their_own_times(drawn: list[tuple[int, str]]) -> None:
    events = numbered(sorted(drawn, key=lambda moment: moment[1]))  # keys one after another
    in_time = [item for key in "abc" for item in sorted((e for e in events if e.key == key), key=lambda e: e.at)]
    assert windows(in_time) == model(in_time)


@given(moments)
def test_late_items_neither_get_lost_nor_come_twice(drawn: list[tuple[int, str]]) -> None:
    events = numbered(drawn)
    assert sorted(item.number for batch in windows(events) for item in batch) == list(range(len(events)))
    assert windows(events) == model(events)


@given(moments, st.data())
def test_whatever_the_delays_every_item_comes_once_with_its_own_key_alone(
    drawn: list[tuple[int, str]], data: st.DataObject
) -> None:
    events = numbered(drawn)
    delays = data.draw(st.lists(st.integers(0, 20), min_size=len(events), max_size=len(events)))
    batches = windows(events, delays=delays)
    assert sorted(item.number for batch in batches for item in batch) == list(range(len(events)))
    assert all(len({item.key for item in batch}) == 1 for batch in batches)
