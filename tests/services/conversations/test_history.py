# pyright: reportPrivateUsage=false
# Whether memory is given back cannot be seen from outside.

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.events import Deleted, Edited, PlaceGone, PlaceSeen, Posted, Ready
from model.messages import DISCORD_EPOCH_MS, Attachment, Message, Place, PlaceKind, snowflake_at
from services.conversations import history as history_module
from services.conversations.history import ENDLESS, History, Timeline, weight_of
from services.discord.protocols import LookupFailed
from tests.services.conversations.places import ANNA, BEN, EPOCH, FullList, message
from tests.services.quickly import QUICKLY

COUNTS = st.integers(1, 400)
QUESTIONS = st.lists(
    st.tuples(st.sampled_from(["message", "newest", "run", "posted", "deleted", "ready"]), st.integers(0, 600)),
    max_size=12,
)


def live(server: FullList) -> History:
    """A history whose session has begun after everything there is."""
    history = History(server)
    history.observe(Ready(EPOCH, 1, "M"))
    return history


def conversation(count: int, pattern: Sequence[int]) -> list[Message]:
    """Messages after a pattern: 0 is somebody else's, and 1 comes after a long pause."""
    at, messages = 0.0, list[Message]()
    for number in range(1, count + 1):
        kind = pattern[number % len(pattern)]
        at += 400 if kind == 1 else 1
        messages.append(message(number * 2, BEN if kind == 0 else ANNA, at=at))
    return messages


def run_of(all_messages: Sequence[Message], start: Message, seconds: float) -> list[Message]:
    """The plain truth about `History.run`, from the full list."""
    at = all_messages.index(start)
    first = last = at
    while first > 0 and joined(all_messages[first - 1], all_messages[first], seconds):
        first -= 1
    while last + 1 < len(all_messages) and joined(all_messages[last], all_messages[last + 1], seconds):
        last += 1
    return list(all_messages[first : last + 1])


def joined(one: Message, next_one: Message, seconds: float) -> bool:
    return one.author.id == next_one.author.id and next_one.at - one.at <= seconds


@QUICKLY
@given(st.integers(0, 260), st.lists(st.integers(0, 30), min_size=1, max_size=40), QUESTIONS)
def test_whatever_is_asked_the_answers_equal_those_of_the_full_list(
    count: int, pattern: list[int], questions: list[tuple[str, int]]
) -> None:
    """Pitfall 30: and nothing is fetched twice."""
    asyncio.run(compare(conversation(count, pattern), questions))


async def compare(before: list[Message], questions: list[tuple[str, int]]) -> None:
    server = FullList.of(before)
    history = History(server)
    written, begun, newest = 0, 0, 0

    def write() -> Message:
        nonlocal written, newest
        written += 1
        newest = max(*server.messages_there, begun, newest, 0) + 2  # an id is given once, also when its message is gone
        new = message(newest, ANNA, at=1e6 + written)
        server.messages_there[new.id] = new
        return new

    def begin() -> None:
        nonlocal begun
        milliseconds = (max(*server.messages_there, newest, 0) >> 22) + 1
        begun = milliseconds << 22
        history.observe(Ready((milliseconds + DISCORD_EPOCH_MS) / 1000, 1, "M"))

    begin()
    for what, number in questions:
        there = sorted(server.messages_there.values(), key=lambda each: each.id)
        match what:
            case "message":
                assert await history.message(1, number) == server.messages_there.get(number)
            case "newest":
                limit = 1 + number % 200
                assert list(await history.newest(1, limit)) == there[-limit:]
                calls = len(server.calls)
                assert list(await history.newest(1, limit)) == there[-limit:]
                assert len(server.calls) == calls
            case "run" if there:
                at = number % len(there)
                start = there[at]
                assert await history.message(1, start.id) == start
                got = list(await history.adjacent_messages(start, 300))
                expected = run_of(there, start, 300)
                # What lies further away than a page reaches is not worth another request.
                near = [each for each in expected if abs(there.index(each) - at) < 49]
                assert got == [each for each in expected if each in got]
                assert all(each in got for each in near)
            case "posted":
                history.observe(Posted(0.0, write()))
            case "deleted" if there:
                gone = there[number % len(there)]
                del server.messages_there[gone.id]
                history.observe(Deleted(0.0, 1, (gone.id,)))
            case "ready":
                write()  # missed: it is written while no session is there to tell of it
                begin()
            case _:
                pass


async def test_one_message_is_asked_for_once_also_when_it_is_gone() -> None:
    server = FullList.of([message(1), message(3)])
    history = live(server)
    assert await history.message(1, 2) is None
    assert await history.message(1, 2) is None
    assert await history.message(1, 3) == message(3)
    assert server.calls == ["messages before=None after=None around=2"]


async def test_a_lookup_that_fails_is_not_taken_for_no_message() -> None:
    """Pitfall 28."""
    server = FullList.of([message(1)])
    history = live(server)
    server.broken = True
    for _ in range(2):
        with pytest.raises(LookupFailed):
            await history.message(1, 1)
    server.broken = False
    assert await history.message(1, 1) == message(1)


async def test_a_deletion_during_a_fetch_is_not_undone_by_what_the_fetch_brings() -> None:
    """Pitfall 29."""
    server = FullList.of([message(1), message(2)])
    history = live(server)
    page = await server.messages(1)

    async def slow(*_: object, **__: object) -> Sequence[Message]:
        history.observe(Deleted(0.0, 1, (1,)))
        return page

    server.messages = slow
    assert await history.newest(1, 10) == [message(2)]
    assert await history.message(1, 1) is None


async def test_replays_answer_from_what_was_said_alone() -> None:
    history = History(None)
    assert await history.message(1, 1) is None
    assert await history.newest(1, 10) == ()
    assert await history.find_place(1) is None
    history.observe(Posted(0.0, message(2, to=1), quoted=message(1)))
    assert await history.message(1, 1) == message(1)
    assert list(await history.newest(1, 10)) == [message(1), message(2, to=1)]
    history.observe(Posted(0.0, message(3, to=1), quoted=replace(message(1), text="older")))
    assert history.in_memory(1, 1) == message(1)


async def test_edits_change_text_and_attachments_as_far_as_they_say() -> None:
    history = History(None)
    history.observe(Posted(0.0, message(1)))
    file = Attachment(1, "a.txt", 1, "")
    history.observe(Edited(0.0, 1, 1, "new"))
    history.observe(Edited(0.0, 1, 1, None, (file,)))
    history.observe(Edited(0.0, 1, 99, "nobody knows this one"))
    assert history.in_memory(1, 1) == replace(message(1), text="new", attachments=(file,))


async def test_of_edits_that_come_early_so_many_are_kept_until_the_next_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("services.conversations.history.KEPT_EARLY", 2)
    history = History(None)
    for number in (1, 2, 3):
        history.observe(Edited(0.0, 1, number, "new"))
    for number in (1, 2):
        history.observe(Posted(0.0, message(number)))
    history.observe(Ready(EPOCH, 9, "bot"))
    history.observe(Posted(0.0, message(3)))
    assert [each.text for each in history.recent(1)] == ["text 1", "new", "text 3"]


async def test_the_starter_of_a_thread_stands_in_its_channel() -> None:
    server = FullList.of([message(7, place_id=1)])
    history = live(server)
    opened = Place(7, PlaceKind.THREAD, parent_id=1)
    for _ in range(2):
        assert await history.starter(opened) == message(7)
    assert server.calls == ["message 7"]
    for _ in range(2):
        assert await history.starter(Place(8, PlaceKind.THREAD, parent_id=1)) is None
    assert server.calls == ["message 7", "message 8"]
    assert await history.starter(Place(7, PlaceKind.FORUM_POST, parent_id=1)) is None
    assert await history.starter(Place(7, PlaceKind.CHANNEL)) is None


async def test_places_are_asked_for_once_and_forgotten_when_they_go() -> None:
    server = FullList.of([])
    server.places[3] = Place(3, PlaceKind.THREAD, "help me", parent_id=1)
    history = live(server)
    for _ in range(2):
        assert await history.find_place(3) == server.places[3]
    assert server.calls == ["place 3"]
    assert (history.name_of(3), history.name_of(4)) == ("help me", "4")
    history.observe(PlaceGone(0.0, 3))
    del server.places[3]
    assert await history.find_place(3) is None
    assert not history.knows(3)
    history.observe(PlaceSeen(0.0, Place(3, PlaceKind.THREAD)))
    assert history.knows(3)


async def test_memory_is_bounded_by_places_messages_and_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "KEPT_PLACES", 2)
    monkeypatch.setattr(history_module, "KEPT_MESSAGES", 3)
    monkeypatch.setattr(history_module, "KEPT_GONE", 2)
    history = live(FullList.of([]))
    for place_id in range(1, 5):
        for number in range(5):
            history.observe(Posted(0.0, message(place_id * 10 + number, place_id=place_id)))
    history.observe(Deleted(0.0, 4, (1, 2, 3)))
    assert [len(history.recent(place_id)) for place_id in (1, 2)] == [0, 0]
    assert len(history._timelines) == 2
    assert (history.is_gone(1), history.is_gone(3)) == (False, True)


async def test_memory_is_bounded_by_the_length_of_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was dropped is asked for again."""
    live_from = snowflake_at(EPOCH)
    numbers = {place_id: [live_from + 10 * place_id, live_from + 10 * place_id + 1] for place_id in (1, 2, 3)}
    said = [replace(message(n, place_id=at, at=EPOCH), text="x" * 100) for at in numbers for n in numbers[at]]
    monkeypatch.setattr(history_module, "KEPT_WEIGHT", 5 * weight_of(said[0]))
    server = FullList.of(said)
    history = live(server)
    for each in said:
        history.observe(Posted(0.0, each))
    assert [*history._timelines] == [2, 3]
    assert [[each.id for each in await history.newest(at, 2)] for at in (3, 1)] == [numbers[3], numbers[1]]
    assert len(server.calls) == 1
    for place_id in (1, 2, 3):
        history.observe(PlaceGone(0.0, place_id))
    assert history._weight.total == 0


def test_what_a_message_mentions_and_the_names_of_its_files_take_memory_as_well() -> None:
    plain = message(1)
    mentioning = replace(plain, mentions=tuple((number, f"somebody {number}") for number in range(100)))
    posting = replace(plain, attachments=(Attachment(1, "a" * 250, 5, "https://cdn.example/" + "y" * 400),) * 10)
    assert weight_of(mentioning) > weight_of(plain) + 15_000
    assert weight_of(posting) > weight_of(plain) + 7_000


def test_of_archived_threads_the_newest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay, which cannot ask, remembers all of them; an open one is never forgotten."""
    monkeypatch.setattr(history_module, "KEPT_ARCHIVED", 2)
    for history, known in ((live(FullList.of([])), [1, 4, 5]), (History(None), [1, 2, 3, 4, 5])):
        for place_id in range(1, 6):
            thread = Place(place_id, PlaceKind.THREAD, archived=True)
            history.observe(PlaceSeen(0.0, thread))
            if place_id in {1, 2}:  # 1 is opened again, and so is 2, for a while
                history.observe(PlaceSeen(0.0, replace(thread, archived=False)))
            if place_id == 2:
                history.observe(PlaceSeen(0.0, thread))
        assert [place_id for place_id in range(1, 6) if history.knows(place_id)] == known
        history.observe(PlaceGone(0.0, 4))
        history.observe(PlaceSeen(0.0, Place(6, PlaceKind.THREAD, archived=True)))
        assert history.knows(5)


async def test_a_run_ends_where_somebody_else_speaks_and_skips_system_messages() -> None:
    history = History(None)
    spoken = [
        message(1),
        message(2, BEN),
        message(3),
        message(4, is_system=True),
        message(5),
        message(6, at=message(5).at + 301),
    ]
    for each in spoken:
        history.observe(Posted(0.0, each))
    assert [each.id for each in await history.adjacent_messages(spoken[4], 300)] == [3, 5]


@QUICKLY
@given(st.lists(st.tuples(COUNTS, COUNTS)), COUNTS)
def test_intervals_that_touch_become_one(intervals: list[tuple[int, int]], asked: int) -> None:
    timeline = Timeline(complete=False)
    ordered = [(min(pair), max(pair)) for pair in intervals]
    for low, high in ordered:
        timeline.cover(low, high)
    assert timeline.covers(asked) == any(low <= asked <= high for low, high in ordered)
    covered = timeline._covered
    assert all(one[1] + 1 < other[0] for one, other in pairwise(covered))


@QUICKLY
@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "trim"]), st.integers(1, 30))))
def test_a_timeline_is_a_sorted_set_of_messages(steps: list[tuple[str, int]]) -> None:
    timeline, model = Timeline(complete=True), set[int]()
    for what, number in steps:
        match what:
            case "add":
                timeline.add(message(number))
                model.add(number)
            case "remove":
                timeline.remove(number)
                model.discard(number)
            case _:
                timeline.trim(number)
                model = set(sorted(model)[-number:])
    assert len(timeline) == len(model)
    assert all(timeline.get(number) == message(number) for number in model)
    back = [each and each.id for each in timeline.before(ENDLESS)]
    known = [each for each in back if each is not None]
    # What comes in below the stretch that is known to be complete is not walked to.
    assert known == sorted(model, reverse=True)[: len(known)]
    assert back[len(known) :] in ([], [None])
    assert timeline._ids == sorted(model)


def test_what_comes_after_a_pause_is_not_known_to_be_complete() -> None:
    timeline = Timeline(complete=True)
    timeline.add(message(5))
    timeline.pause()
    assert timeline.newest(1) is None
    assert (timeline.covers(5), timeline.covers(6)) == (True, False)
    assert list(timeline.after(9)) == [None]


def test_an_archived_thread_is_never_more_public_than_its_channel_is_now() -> None:
    """Discord does not report archived threads when their channel is hidden."""
    history, channel = History(None), Place(20, PlaceKind.CHANNEL)
    for each in (channel, Place(30, PlaceKind.THREAD, parent_id=20, archived=True)):
        history.observe(PlaceSeen(1.0, each))
    assert history.place(30).public
    history.observe(PlaceSeen(2.0, replace(channel, public=False, viewable=False)))
    assert (history.place(30).public, history.place(30).viewable) == (False, False)
    history.observe(PlaceSeen(3.0, replace(channel, public=True)))
    invited = Place(31, PlaceKind.THREAD, parent_id=20, public=False, viewable=False, invited_only=True)
    history.observe(PlaceSeen(4.0, invited))
    assert not history.place(31).public
