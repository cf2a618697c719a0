"""What holds of any chat, however people talk at once."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.evaluation.taught import taught
from model.messages import Author, AuthorType, Message, Reference
from services.conversations import tracking
from services.conversations.tracking import ConversationTracker
from tests.services.conversations.followed import KINDS, FollowedChat
from tests.services.quickly import QUICKLY
from tests.talk import ANN, BEN, BOT, CHANNEL, POST, STAFF, STAFF_TOO, Talk

PEOPLE = (ANN, BEN, Author(3, "cem"), STAFF, STAFF_TOO, BOT)
PLACES = {place.id: place for place in (CHANNEL, POST)}
TEXTS = ("Where are the keys?", "keys go to keys.txt", "ann: try E7", "怎么安装？", "ok")


@st.composite
def chats(draw: st.DrawFn) -> list[Message]:
    """Up to forty messages: people, gaps, places, words, and replies to any earlier message or to none."""
    talk, messages, second = Talk(), list[Message](), 0
    for _ in range(draw(st.integers(1, 40))):
        second += draw(st.sampled_from((1, 20, 70, 200, 400, 2_000, 5_000)))
        place = draw(st.sampled_from(list(PLACES.values())))
        text = draw(st.sampled_from(TEXTS))
        message = talk.says(draw(st.sampled_from(PEOPLE)), text, second=second, place=place)
        earlier = [each for each in messages if each.channel_id == place.id]
        target = draw(st.none() | st.sampled_from(earlier)) if earlier else None
        messages.append(
            message if target is None else replace(message, reply_to=Reference(target.id, target.channel_id))
        )
    return messages


def followed(messages: list[Message]) -> FollowedChat:
    chat = FollowedChat()
    for message in messages:
        chat.hears(message, PLACES[message.channel_id])
    return chat


@QUICKLY
@given(chats())
def test_every_message_is_in_one_conversation_and_no_other(messages: list[Message]) -> None:
    chat = followed(messages)
    assert {message_id: chat.tracker.conversation_of(message_id) for message_id in chat.names} == chat.names
    held = [each for name in sorted(set(chat.names.values())) for each in chat.tracker.messages_of(name)]
    assert sorted(held) == sorted(chat.names) == [message.id for message in messages]
    kinds = {each.id: KINDS.get(each.author.id, AuthorType.COMMUNITY_USER) for each in messages}
    captured = [each for ids in taught(chat.names, kinds).values() for each in ids]
    assert len(captured) == len(set(captured))


@QUICKLY
@given(chats())
def test_the_team_s_replies_to_users_are_with_what_they_answer(messages: list[Message]) -> None:
    chat, by_id = followed(messages), {message.id: message for message in messages}
    for message in messages:
        target = None if message.reply_to is None else by_id[message.reply_to.message_id]
        if target is not None and message.author.id in {STAFF.id, STAFF_TOO.id} and target.author.id not in KINDS:
            assert chat.together(message, target)


@QUICKLY
@given(chats())
def test_what_comes_later_changes_no_name_but_of_the_lines_that_led_to_a_reply(messages: list[Message]) -> None:
    chat, names = FollowedChat(), dict[int, int]()
    for message in messages:
        chat.hears(message, PLACES[message.channel_id])
        changed = {each for each, name in names.items() if chat.tracker.conversation_of(each) != name}
        assert changed == set(chat.found.moved)
        earlier = [each for each in messages if each.id in changed]
        assert all(each.author == message.author and message.at - each.at < 8 * 60 for each in earlier)
        names = dict(chat.names)


@QUICKLY
@given(chats())
def test_the_same_chat_gets_the_same_names_also_when_each_message_comes_twice(messages: list[Message]) -> None:
    twice = [each for message in messages for each in (message, message)]
    assert followed(messages).names == followed(twice).names


@QUICKLY
@given(chats())
def test_a_place_is_followed_as_if_there_were_no_other(messages: list[Message]) -> None:
    """But for how rare words are, which all places say together."""
    same = [replace(message, text="ok") for message in messages]
    here = [message for message in same if message.channel_id == CHANNEL.id]
    alone = followed(here).names
    assert {message.id: followed(same).names[message.id] for message in here} == alone


def test_memory_is_bounded_by_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people who never stop, a thousand who come once, and as many places: what is kept does not grow."""
    kept = {
        "MESSAGES": 30,
        "CONVERSATIONS": 10,
        "PEOPLE": 12,
        "PLACES": 4,
        "OF_CONVERSATION": 20,
        "MEMBERS": 3,
        "WORDS": 9,
        "WAITING": 5,
    }
    for what, most in kept.items():
        monkeypatch.setattr(tracking, f"KEPT_{what}", most)
    tracker, sizes = ConversationTracker(), list[int]()
    talk, last = Talk(), None
    for second in range(3_000):
        author = (ANN, STAFF, Author(1_000 + second, f"n{second}"))[second % 3]
        place = CHANNEL if second % 3 < 2 else replace(POST, id=POST.id + second % 50)
        text = f"word{second} x{second % 7}"
        message = talk.says(author, text, second=second, place=place, to=last if second % 2 else None, unheard=True)
        last = message
        tracker.follow(message, KINDS.get(author.id, AuthorType.COMMUNITY_USER), place)
        if second >= 2_000 and not second % 100:
            sizes.append(len(pickle.dumps(tracker)))
    assert max(sizes) < 1.05 * min(sizes)
