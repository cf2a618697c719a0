"""quiet_window against a model that knows nothing of loops and timers."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from clock import VirtualLoop
from dataflow import Amend, Keep, quiet_window

QUIET, SETTLED, KEPT, CAP = 5, 2, 3, 12


@dataclass(frozen=True)
class Item:
    at: int
    key: str
    number: int
    last_word: bool = False
    """A window that ends in such an item is settled."""


@dataclass(frozen=True)
class Sign:
    """Of life, which keeps a window open."""

    at: int
    key: str


@dataclass(frozen=True)
class Drop:
    """The deletion of whatever has this number."""

    at: int
    key: str
    number: int


Happening = Item | Drop | Sign


def quiet(items: Sequence[Item]) -> int:
    return SETTLED if items[-1].last_word else QUIET


def model(events: Sequence[Happening]) -> list[list[Item]]:
    """Each key on its own; `events` in the order they came, at the times they happened."""
    closed: list[list[Item]] = []
    for key in {event.key for event in events}:
        window, opened, last, deadline = list[Item](), 0, 0, 0
        for event in [each for each in events if each.key == key]:
            if isinstance(event, Item):
                if event.at >= deadline:
                    closed.append(window)
                    window = []
                opened, last = (opened, max(last, event.at)) if window else (event.at, event.at)
                window.append(event)
                deadline = min(last + quiet(window), opened + CAP)
            elif isinstance(event, Sign):
                if window and event.at < deadline:
                    deadline = max(deadline, min(max(last + QUIET, event.at + KEPT), opened + CAP))
            elif event.at <= deadline:  # one that comes on the deadline, before the timer, still finds what waits
                window = [item for item in window if item.number != event.number]
                if window:
                    deadline = max(deadline, min(last + quiet(window), opened + CAP))
        closed.append(window)
    return sorted((batch for batch in closed if batch), key=str)


def pushed(event: Happening) -> Item | Amend[str, Item] | Keep[str]:
    match event:
        case Item():
            return event
        case Sign():
            return Keep(event.key, event.at, KEPT)
        case Drop():
            return Amend(event.key, lambda item: None if item.number == event.number else item)


def windows(events: Sequence[Happening], *, delays: Sequence[int] = (), end: bool = True) -> list[list[Item]]:
    """What the operator makes of it when event n comes `delays[n]` seconds late; without `delays`, all at once."""

    async def main() -> list[list[Item]]:
        loop, source, got = asyncio.get_running_loop(), Subject[Any](), list[list[Item]]()
        source.pipe(
            quiet_window(
                QUIET, lambda item: item.key, max_seconds=CAP, quiet_seconds=quiet, time_of=lambda item: item.at
            )
        ).subscribe(got.append)
        for event, delay in zip(events, delays or [0] * len(events), strict=True):
            loop.call_at(event.at + delay if delays else 1000, source.on_next, pushed(event))
        await asyncio.sleep(2000)
        if end:
            source.on_completed()
        return sorted(got, key=str)

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


Moment = tuple[int, str, bool]


def numbered(moments: list[Moment]) -> list[Item]:
    return [Item(at, key, number, last_word) for number, (at, key, last_word) in enumerate(moments)]


moments = st.lists(st.tuples(st.integers(0, 60), st.sampled_from("abc"), st.booleans()), max_size=40)
signs = st.lists(st.builds(Sign, st.integers(0, 60), st.sampled_from("abc")), max_size=20)


@given(moments)
def test_random_arrivals_of_several_keys_are_grouped_as_in_the_model(drawn: list[Moment]) -> None:
    events = numbered(sorted(drawn))
    assert windows(events, delays=[0] * len(events)) == model(events)


@given(moments)
def test_a_window_never_needs_the_end_of_the_stream_to_close(drawn: list[Moment]) -> None:
    events = numbered(sorted(drawn))
    assert windows(events, delays=[0] * len(events), end=False) == model(events)


@given(moments, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 39)), max_size=10))
def test_deletions_take_out_what_still_waits_and_nothing_else(
    drawn: list[Moment], deletions: list[tuple[int, int]]
) -> None:
    """Pitfall 29."""
    items = numbered(sorted(drawn))
    drops = [Drop(at, items[number].key, number) for at, number in deletions if number < len(items)]
    events = in_time([*items, *drops])
    assert windows(events, delays=[0] * len(events)) == model(events)


def in_time(events: Sequence[Happening]) -> list[Happening]:
    """In order; of one instant an item comes first, and a deletion last."""
    order = (Item, Sign, Drop)
    return sorted(events, key=lambda event: (event.at, order.index(type(event))))


@given(moments, signs)
def test_signs_of_life_keep_open_what_is_open_and_nothing_else(drawn: list[Moment], heard: list[Sign]) -> None:
    events = in_time([*numbered(drawn), *heard])
    assert windows(events, delays=[0] * len(events), end=False) == model(events)


@given(moments, signs)
def test_signs_of_life_that_come_late_count_from_their_own_times(drawn: list[Moment], heard: list[Sign]) -> None:
    """All at once: what a busy loop, or one that was waiting for a catch-up, is told."""
    events = in_time([*numbered(drawn), *heard])
    assert windows(events) == model(events)


@given(moments)
def test_items_that_come_all_at_once_long_after_are_grouped_by_their_own_times(drawn: list[Moment]) -> None:
    events = numbered(sorted(drawn, key=lambda moment: moment[1]))  # keys one after another
    by_key = [item for key in "abc" for item in sorted((e for e in events if e.key == key), key=lambda e: e.at)]
    assert windows(by_key) == model(by_key)


@given(moments)
def test_late_items_neither_get_lost_nor_come_twice(drawn: list[Moment]) -> None:
    events = numbered(drawn)
    assert sorted(item.number for batch in windows(events) for item in batch) == list(range(len(events)))
    assert windows(events) == model(events)


@given(moments, st.data())
def test_whatever_the_delays_every_item_comes_once_with_its_own_key_alone(
    drawn: list[Moment], data: st.DataObject
) -> None:
    events = numbered(drawn)
    delays = data.draw(st.lists(st.integers(0, 20), min_size=len(events), max_size=len(events)))
    batches = windows(events, delays=delays)
    assert sorted(item.number for batch in batches for item in batch) == list(range(len(events)))
    assert all(len({item.key for item in batch}) == 1 for batch in batches)
