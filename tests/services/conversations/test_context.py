"""The conversation around a message, as it was followed: what an answer is told, and what a capture holds."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from model.messages import Author, Message, Place, PlaceKind, Reference
from services.conversations.context import Context, ContextRules
from tests.talk import ANN, BEN, BOT, CHANNEL, PRIVATE, STAFF, STAFF_TOO, THREAD, SmallFetcher, Talk

CEM = Author(3, "cem")


def context_of(talk: Talk, rules: ContextRules | None = None) -> Context:
    return Context(talk.history, talk.people, talk.tracker, rules or ContextRules())


async def replies(talk: Talk, *messages: Message) -> Sequence[Message]:
    return await context_of(talk).replies(messages)


async def captured(talk: Talk, *messages: Message, rules: ContextRules | None = None) -> tuple[str, list[Message]]:
    name, found = await context_of(talk, rules).messages_to_capture(talk.part(*messages))
    return name, list(found)


async def test_a_long_conversation_is_freed_of_secrets_beside_the_loop() -> None:
    talk, threads = Talk(), set[threading.Thread]()

    def redact(text: str) -> str:
        threads.add(threading.current_thread())
        return text.upper()

    context = context_of(talk, ContextRules(redact=redact))
    short, long = [talk.says(ANN, "why?")], [talk.says(ANN, "a" * 4_000) for _ in range(9)]
    assert [turn.text for turn in (await context.conversation(short, frozenset(), {})).turns] == ["WHY?"]
    assert threads == {threading.current_thread()}
    assert {turn.text for turn in (await context.conversation(long, frozenset(), {})).turns} == {"A" * 4_000}
    assert len(threads) > 1


# What an answer is told


async def test_a_message_comes_with_its_conversation_and_nothing_else() -> None:
    """Pitfall 63."""
    talk = Talk()
    asked = talk.says(ANN, "It does not start.")
    talk.says(BEN, "Good morning.")
    hint = talk.says(STAFF, "What does it say?", to=asked)
    more = talk.says(ANN, "E12.")
    assert await replies(talk, more) == [asked, hint, more]


async def test_what_is_said_later_in_the_conversation_comes_as_well() -> None:
    talk = Talk()
    asked, more = talk.says(ANN), talk.says(ANN)
    assert await replies(talk, asked) == [asked, more]


async def test_what_was_deleted_is_not_there_any_more() -> None:
    talk = Talk()
    asked, more, last = talk.says(ANN), talk.says(ANN), talk.says(ANN)
    talk.deletes(more)
    assert await replies(talk, last) == [asked, last]


async def test_what_a_conversation_replies_to_in_another_one_comes_with_it() -> None:
    """An asker who is helped replies to what the team said to somebody else."""
    talk = Talk()
    other = talk.says(BEN)
    announced = talk.says(STAFF, "Take version 4.", to=other)
    asked = talk.says(ANN)
    reply = talk.says(ANN, "Does that help me, too?", to=announced)
    assert talk.tracker.conversation_of(reply.id) == asked.id
    assert await replies(talk, reply) == [other, announced, asked, reply]


async def test_the_part_of_a_conversation_that_is_in_a_thread_is_left_to_the_thread() -> None:
    talk = Talk()
    starter = talk.says(ANN)
    thread = replace(THREAD, id=starter.id)
    talk.history.add_place(thread)
    inside = talk.says(ANN, place=thread)
    assert talk.tracker.conversation_of(inside.id) == starter.id
    assert await replies(talk, starter) == [starter]
    assert await replies(talk, inside) == [inside]
    assert await context_of(talk).thread(thread) == [starter, inside]


async def test_a_reply_to_what_is_from_before_the_start_brings_what_its_author_said_there() -> None:
    before = Talk()
    first = before.says(ANN, second=-30, unheard=True)
    last = before.says(ANN, second=-20, unheard=True)
    before.says(BEN, second=-10, unheard=True)
    talk = Talk(fetcher=SmallFetcher(first, last))
    reply = talk.says(STAFF, to=last)
    assert await replies(talk, reply) == [first, last, reply]


async def test_the_neighbours_of_a_message_that_was_followed_do_not_come_with_it() -> None:
    """Pitfall 63: one person's neighbouring messages may be to three."""
    talk = Talk()
    asked = [talk.says(author) for author in (ANN, BEN, CEM)]
    answers = [talk.says(STAFF, to=question) for question in asked]
    reply = talk.says(ANN, to=answers[0])
    assert await replies(talk, reply) == [asked[0], answers[0], reply]


# What a capture holds


async def test_a_conversation_in_a_channel_is_named_after_its_first_message() -> None:
    talk = Talk()
    asked = talk.says(ANN)
    first = talk.says(STAFF, to=asked)
    thanks = talk.says(ANN)
    last = talk.says(STAFF_TOO, to=thanks)
    assert await captured(talk, first) == (f"reply_{asked.id}", [asked, first, thanks, last])
    assert await captured(talk, last) == (f"reply_{asked.id}", [asked, first, thanks, last])


async def test_what_is_replied_to_in_another_conversation_is_not_captured_with_this_one() -> None:
    """No message is in two captured conversations. Pitfall 63."""
    talk = Talk()
    other = talk.says(BEN)
    answered = talk.says(STAFF, to=other)
    asked = talk.says(ANN)
    more = talk.says(ANN, to=answered)
    answer = talk.says(STAFF, to=more)
    assert await captured(talk, answer) == (f"reply_{asked.id}", [asked, more, answer])
    assert await captured(talk, answered) == (f"reply_{other.id}", [other, answered])


async def test_a_thread_is_captured_under_its_own_name() -> None:
    talk = Talk()
    asked = talk.says(ANN, place=THREAD)
    answer = talk.says(STAFF, place=THREAD)
    assert await captured(talk, answer) == (f"thread_{THREAD.id}", [asked, answer])


async def test_what_a_thread_was_opened_on_is_captured_with_it() -> None:
    talk = Talk()
    starter = talk.says(ANN)
    thread = replace(THREAD, id=starter.id)
    talk.history.add_place(thread)
    answer = talk.says(STAFF, place=thread)
    assert await captured(talk, answer) == (f"thread_{thread.id}", [starter, answer])


async def test_a_thread_on_a_later_message_of_a_conversation_is_captured_under_its_own_name() -> None:
    talk = Talk()
    talk.says(ANN)
    starter = talk.says(ANN)
    thread = replace(THREAD, id=starter.id)
    talk.history.add_place(thread)
    answer = talk.says(STAFF, place=thread)
    assert await captured(talk, answer) == (f"thread_{thread.id}", [starter, answer])


async def test_a_second_conversation_in_a_thread_is_named_after_its_first_message() -> None:
    talk = Talk()
    talk.says(ANN, place=THREAD)
    talk.says(STAFF, place=THREAD)
    other = talk.says(BEN, "And how do I stop it?", place=THREAD, second=100)
    answer = talk.says(STAFF, place=THREAD, to=other, second=101)
    assert await captured(talk, answer) == (f"reply_{other.id}", [other, answer])


async def test_what_was_said_in_a_thread_before_the_start_is_captured_with_it() -> None:
    """What was not followed is not known to be of another conversation."""
    asked = Talk().says(ANN, place=THREAD, second=-20)
    talk = Talk(fetcher=SmallFetcher(asked))
    answer = talk.says(STAFF, place=THREAD)
    assert await captured(talk, answer) == (f"thread_{THREAD.id}", [asked, answer])


async def test_a_chain_of_replies_from_before_the_start_is_named_after_its_first_message() -> None:
    before = Talk()
    asked = before.says(ANN, second=-30)
    hint = before.says(STAFF, to=asked, second=-20)
    more = before.says(ANN, to=hint, second=-10)
    talk = Talk(fetcher=SmallFetcher(asked, hint, more))
    answer = talk.says(STAFF, to=more)
    assert await captured(talk, answer) == (f"reply_{asked.id}", [asked, hint, more, answer])


async def test_of_replies_in_a_circle_none_is_before_the_first() -> None:
    before = Talk()
    one = before.says(ANN, second=-30)
    two = before.says(BEN, to=one, second=-20)
    one = replace(one, reply_to=Reference(two.id, CHANNEL.id))
    talk = Talk(fetcher=SmallFetcher(one, two))
    answer = talk.says(STAFF, to=two)
    assert await captured(talk, answer) == (f"reply_{one.id}", [one, two, answer])


@pytest.mark.parametrize("place", [CHANNEL, THREAD])
async def test_what_was_never_followed_is_named_after_itself_or_its_thread(place: Place) -> None:
    """As after a very long time: the memory is bounded."""
    talk = Talk()
    answer = talk.says(STAFF, place=place, unheard=True)
    talk.history.note(answer)
    expected = f"thread_{THREAD.id}" if place is THREAD else f"reply_{answer.id}"
    assert await captured(talk, answer) == (expected, [answer])


async def test_what_people_who_opted_out_wrote_is_left_out_and_may_still_be_what_it_is_named_after() -> None:
    talk = Talk()
    asked = talk.says(BEN)
    more = talk.says(ANN, to=asked)
    answer = talk.says(STAFF, to=more)
    rules = ContextRules(withheld=lambda message: message.author.id == BEN.id)
    assert await captured(talk, answer, rules=rules) == (f"reply_{asked.id}", [more, answer])


@pytest.mark.parametrize("second", [-10, None])
async def test_what_was_asked_in_private_is_not_captured_with_a_public_answer(second: float | None) -> None:
    """Pitfall 47: before the start as well, when it was not followed."""
    asked = Talk().says(ANN, "my address", place=PRIVATE, second=-10)
    talk = Talk(fetcher=SmallFetcher(asked))
    question = asked if second else talk.says(ANN, "my address", place=PRIVATE)
    other = talk.says(BEN, "Why?")
    first, more = talk.says(STAFF, "So.", to=other), talk.says(STAFF, "Yours is fine.", to=question)
    assert talk.tracker.conversation_of(more.id) == other.id, "no place is turned to from another"
    assert await captured(talk, first) == (f"reply_{other.id}", [other, first, more])


async def test_a_private_thread_is_captured_with_its_private_starter_where_that_is_wanted() -> None:
    talk = Talk()
    starter = talk.says(ANN, place=PRIVATE)
    thread = replace(THREAD, id=starter.id, parent_id=PRIVATE.id, public=False)
    talk.history.add_place(thread)
    answer = talk.says(STAFF, place=thread)
    assert await captured(talk, answer) == (f"thread_{thread.id}", [starter, answer])


async def test_a_forum_post_is_a_thread_without_a_starter_elsewhere() -> None:
    talk = Talk()
    post = replace(THREAD, id=2009, kind=PlaceKind.FORUM_POST)
    talk.history.add_place(post)
    asked, bot = talk.says(ANN, place=post), talk.says(BOT, place=post)
    answer = talk.says(STAFF, place=post)
    assert await captured(talk, answer) == (f"thread_{post.id}", [asked, bot, answer])
