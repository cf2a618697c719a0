"""The newest messages, whatever the order in which they come."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.messages import AuthorType
from services.conversations.tracking import ConversationMemory, KnownMessage, KnownMessages, RecentIds
from tests.services.quickly import QUICKLY
from tests.talk import ANN, CHANNEL, Talk

MOST = 5
IDS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 20), unique=True)
NEVER = 2**64 + 1


def told_of(message_id: int) -> KnownMessage:
    return KnownMessage(
        message_id // 2, message_id // 3, message_id // 5, list(AuthorType)[message_id % 3], message_id / 7
    )


@QUICKLY
@given(IDS)
def test_the_newest_are_known_and_the_others_are_not(message_ids: list[int]) -> None:
    ids, spoken, held = RecentIds(MOST), KnownMessages(MOST), set[int]()
    for message_id in message_ids:
        ids.add(message_id)
        spoken.add(message_id, told_of(message_id))
        held = set(sorted({*held, message_id})[-MOST:])
        for each in (*message_ids, NEVER):
            known = told_of(each) if each in held else None
            assert (each in ids) is (each in held)
            assert spoken.get(each) == known


@QUICKLY
@given(IDS, st.integers(0, 21), st.integers(0, 21) | st.just(NEVER))
def test_of_a_span_all_messages_are_known_or_it_is_said_that_some_may_not_be(
    message_ids: list[int], low: int, high: int
) -> None:
    spoken, held = KnownMessages(MOST), sorted(message_ids)[-MOST:]
    for message_id in message_ids:
        spoken.add(message_id, told_of(message_id))
    found = spoken.between(low, high)
    if found is None:
        assert len(message_ids) > MOST
        assert held[0] > low
    else:
        assert list(found) == [(each, told_of(each)) for each in sorted(message_ids) if low <= each < high]


@QUICKLY
@given(IDS)
def test_a_message_moves_to_another_conversation_alone(message_ids: list[int]) -> None:
    spoken = KnownMessages(len(message_ids))
    for message_id in message_ids:
        spoken.add(message_id, told_of(message_id))
    moved = message_ids[::2]
    for message_id in (*moved, NEVER):
        spoken.move(message_id, 77)
    for each in message_ids:
        assert spoken.get(each) == (told_of(each)._replace(conversation=77) if each in moved else told_of(each))


@pytest.mark.slow
def test_many_messages_take_a_few_bytes_each_and_no_more_come_to_be() -> None:
    """Pitfall 25, in bounded memory: what is looked back on is wide, so each message must be small."""
    most, first = 20_000, 1_500_000_000_000_000_000

    def bytes_each(made: Callable[[], Callable[[int], None]]) -> float:
        tracemalloc.start()
        add = made()
        for number in range(3 * most):
            add(first + (number << 22))
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return held / most

    def about_each() -> Callable[[int], None]:
        spoken = KnownMessages(most)
        return lambda each: spoken.add(each, KnownMessage(each, each, each, AuthorType.BOT, 0.5))

    assert bytes_each(lambda: RecentIds(most).add) < 12
    assert bytes_each(about_each) < 60


def test_what_they_take_they_take_at_once() -> None:
    """A column that grows is moved, and leaves holes in memory that nothing else fits into."""
    ids, spoken = RecentIds(2_000), KnownMessages(2_000)
    tracemalloc.start()
    for number in range(5_000):
        ids.add(number)
        spoken.add(number, KnownMessage(1, 2, 3, AuthorType.BOT, 0.5))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 2_000


def test_a_word_is_one_string_in_all_conversations() -> None:
    memory, place_state = ConversationMemory(), ConversationMemory().place_state(CHANNEL.id)
    words = ["".join(("to", "ken")) for _ in range(2)]  # noqa: FLY002 (two strings, not one constant)
    assert words[0] is not words[1]
    said = (Talk().says(ANN, second=second) for second in (1, 2))
    talks = [
        memory.add(message, AuthorType.COMMUNITY_USER, message.id, [word], place_state)
        for message, word in zip(said, words, strict=True)
    ]
    first, second = (next(iter(talk.words)) for talk in talks)
    assert first is second
