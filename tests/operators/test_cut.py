from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from model.batches import Batch, Part
from model.messages import AuthorType, Message, Reference
from operators.route import cut, pieces
from services.conversations.in_flight import InFlight
from tests.talk import ANN, BOT, CHANNEL, PRIVATE, STAFF, THREAD, Talk

USER, TEAM = AuthorType.COMMUNITY_USER, AuthorType.TEAM_MEMBER


def written(*targets: int | None) -> list[Message]:
    """Messages 100, 101, …, each with the id that it replies to."""
    return [
        Message(100 + at, 1, ANN, "…", 0.0, reply_to=None if target is None else Reference(target, 1))
        for at, target in enumerate(targets)
    ]


def whose(reference: Reference) -> Hashable:
    """Messages 5 and 15 are one person's, 6 and 16 another's."""
    return reference.message_id % 10


def cut_ids(messages: Sequence[Message], kind: AuthorType) -> list[list[int]]:
    return [[message.id - 100 for message in piece] for piece in pieces(messages, kind, whose)]


@pytest.mark.parametrize(
    ("targets", "of_a_user", "of_the_team"),
    [
        ([None], [[0]], [[0]]),
        ([None, None], [[0, 1]], [[0, 1]]),
        ([5], [[0]], [[0]]),
        ([5, None, None], [[0, 1, 2]], [[0, 1, 2]]),
        ([5, 5], [[0, 1]], [[0, 1]]),
        ([5, None, 5], [[0, 1, 2]], [[0, 1, 2]]),
        ([5, 15], [[0, 1]], [[0, 1]]),
        ([5, 15, 6, None, 16], [[0, 1], [2, 3, 4]], [[0, 1], [2, 3, 4]]),
        ([None, 5, 15], [[0], [1, 2]], [[0, 1, 2]]),
        ([5, 6], [[0], [1]], [[0], [1]]),
        ([5, 6, 5], [[0], [1], [2]], [[0], [1], [2]]),
        ([5, None, 6, None], [[0, 1], [2, 3]], [[0, 1], [2, 3]]),
        ([None, 5], [[0], [1]], [[0, 1]]),
        ([None, None, 5, None, 6], [[0, 1], [2, 3], [4]], [[0, 1, 2, 3], [4]]),
    ],
)
def test_a_batch_is_cut_where_the_person_replied_to_changes(
    targets: list[int | None], of_a_user: list[list[int]], of_the_team: list[list[int]]
) -> None:
    messages = written(*targets)
    assert cut_ids(messages, USER) == of_a_user
    assert cut_ids(messages, TEAM) == of_the_team


def test_a_team_answer_of_two_messages_stays_one_part_whichever_of_them_is_the_reply() -> None:
    """Pitfall 1."""
    assert cut_ids(written(5, None), TEAM) == [[0, 1]]
    assert cut_ids(written(None, 5), TEAM) == [[0, 1]]


def test_a_question_before_a_reply_to_somebody_else_is_a_part_of_its_own() -> None:
    """Pitfall 2."""
    assert cut_ids(written(None, 5), USER) == [[0], [1]]


def test_a_reply_to_what_discord_says_is_gone_is_no_reply() -> None:
    first, second = written(5, None)
    gone = Message(102, 1, ANN, "…", 0.0, reply_to=Reference(6, 1, gone=True))
    assert [len(piece) for piece in pieces([first, second, gone], USER, whose)] == [3]


@given(st.lists(st.sampled_from([None, 5, 6, 7, 15, 16]), min_size=1, max_size=12), st.sampled_from([USER, TEAM]))
def test_the_pieces_are_the_batch_and_each_replies_to_one_person_at_most(
    targets: list[int | None], kind: AuthorType
) -> None:
    messages = written(*targets)
    parts = pieces(messages, kind, whose)
    assert [message for piece in parts for message in piece] == messages
    assert all(parts)
    for piece in parts:
        assert len({whose(message.reply_to) for message in piece if message.reply_to is not None}) <= 1


@given(st.lists(st.sampled_from([None, 5, 6, 7, 15, 16]), min_size=1, max_size=12), st.sampled_from([USER, TEAM]))
def test_no_two_neighbouring_pieces_could_have_been_one(targets: list[int | None], kind: AuthorType) -> None:
    replies = [
        next((whose(message.reply_to) for message in piece if message.reply_to is not None), None)
        for piece in pieces(written(*targets), kind, whose)
    ]
    leading = kind is USER and replies[0] is None
    assert all(replies[at] != replies[at + 1] for at in range(len(replies) - 1))
    assert all(reply is not None for reply in replies[1:] if leading or len(replies) > 1)


def test_parts_are_numbered_in_order_and_know_their_author_and_place() -> None:
    talk = Talk()
    batches: Subject[Batch] = Subject()
    parts: list[Part] = []
    batches.pipe(cut(talk.people, talk.history, InFlight())).subscribe(parts.append)
    asked = talk.says(ANN, "where is it?")
    other = talk.says(ANN, "you are welcome", to=talk.says(BOT))
    answered = talk.says(STAFF, "there", place=THREAD)
    batches.on_next(Batch((asked, other), 5.0))
    batches.on_next(Batch((answered,), 6.0))
    told = [(part.number, part.messages, part.author_type, part.place, part.closed_at) for part in parts]
    assert told == [
        (1, (asked,), USER, CHANNEL, 5.0),
        (2, (other,), USER, CHANNEL, 5.0),
        (3, (answered,), TEAM, THREAD, 6.0),
    ]


def test_replies_to_several_messages_of_one_person_are_one_part_as_far_as_the_messages_are_at_hand() -> None:
    talk = Talk()
    batches: Subject[Batch] = Subject()
    parts: list[Part] = []
    batches.pipe(cut(talk.people, talk.history, InFlight())).subscribe(parts.append)
    asked, more, lost = talk.says(ANN), talk.says(ANN), talk.says(ANN, unheard=True)
    answers = tuple(talk.says(STAFF, to=to) for to in (asked, more, lost, lost))
    batches.on_next(Batch(answers, 5.0))
    assert [part.messages for part in parts] == [answers[:2], answers[2:]]


def test_what_one_person_said_in_private_is_not_answered_in_one_part_with_what_they_said_in_public() -> None:
    """Pitfall 47."""
    talk = Talk()
    batches: Subject[Batch] = Subject()
    parts: list[Part] = []
    batches.pipe(cut(talk.people, talk.history, InFlight())).subscribe(parts.append)
    answers = tuple(talk.says(STAFF, to=talk.says(ANN, place=place)) for place in (CHANNEL, PRIVATE))
    batches.on_next(Batch(answers, 5.0))
    assert [part.messages for part in parts] == [answers[:1], answers[1:]]
