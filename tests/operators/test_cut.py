from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reactivex.subject import Subject

from model.messages import Author, AuthorType, Batch, Message, Part, Reference
from operators.route import cut
from services.conversations.in_flight import InFlight
from tests.talk import ANN, BEN, BOT, CHANNEL, PRIVATE, STAFF, THREAD, Talk

USER, TEAM = AuthorType.COMMUNITY_USER, AuthorType.TEAM_MEMBER


def parts_of(talk: Talk, *batches: Sequence[Message]) -> list[Part]:
    source: Subject[Batch] = Subject()
    parts: list[Part] = []
    source.pipe(cut(talk.people, talk.history, talk.tracker, InFlight())).subscribe(parts.append)
    for number, batch in enumerate(batches):
        source.on_next(Batch(tuple(batch), 5.0 + number))
    return parts


def written(author: Author, targets: Sequence[int | None]) -> tuple[Talk, list[Message]]:
    """A user's or team member's batch, each message a reply or not: 5 and 15 are Ben's messages of one conversation, 6
    is one of Cem's, which is another. All of it comes within a minute.
    """
    talk, cem = Talk(), Author(3, "cem")
    said = {5: talk.says(BEN), 15: talk.says(BEN), 6: talk.says(cem)}
    return talk, [talk.says(author, to=None if target is None else said[target]) for target in targets]


def cut_ids(author: Author, targets: Sequence[int | None]) -> list[list[int]]:
    talk, batch = written(author, targets)
    return [[batch.index(message) for message in part.messages] for part in parts_of(talk, batch)]


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
        ([5, 15, 6, None, 6], [[0, 1], [2, 3, 4]], [[0, 1], [2, 3, 4]]),
        ([None, 5, 15], [[0], [1, 2]], [[0, 1, 2]]),
        ([5, 6], [[0], [1]], [[0], [1]]),
        ([5, 6, 5], [[0], [1], [2]], [[0], [1], [2]]),
        ([5, None, 6, None], [[0, 1], [2, 3]], [[0, 1], [2, 3]]),
        ([None, 5], [[0], [1]], [[0, 1]]),
        ([None, None, 5, None, 6], [[0, 1], [2, 3], [4]], [[0, 1, 2, 3], [4]]),
    ],
)
def test_a_batch_is_cut_where_the_conversation_changes(
    targets: list[int | None], of_a_user: list[list[int]], of_the_team: list[list[int]]
) -> None:
    assert cut_ids(ANN, targets) == of_a_user
    assert cut_ids(STAFF, targets) == of_the_team


def test_a_team_answer_of_two_messages_stays_one_part_whichever_of_them_is_the_reply() -> None:
    """Pitfall 1."""
    assert cut_ids(STAFF, [5, None]) == [[0, 1]]
    assert cut_ids(STAFF, [None, 5]) == [[0, 1]]


def test_a_question_before_a_reply_to_somebody_else_is_a_part_of_its_own() -> None:
    """Pitfall 2."""
    assert cut_ids(ANN, [None, 5]) == [[0], [1]]


def test_a_batch_is_cut_without_a_reply_as_well_where_somebody_else_is_named() -> None:
    """Pitfall 63."""
    talk = Talk()
    asked, other = talk.says(ANN, "Why?"), talk.says(BEN, "And how?")
    answers = [talk.says(STAFF, "So.", to=asked), talk.says(STAFF, "It works."), talk.says(STAFF, "ben: like this")]
    assert [part.messages for part in parts_of(talk, answers)] == [tuple(answers[:2]), (answers[2],)]
    assert talk.tracker.conversation_of(answers[2].id) == other.id


def test_a_reply_to_what_discord_says_is_gone_is_no_reply() -> None:
    talk = Talk()
    said = [talk.says(ANN, to=talk.says(BEN)), talk.says(ANN), talk.says(ANN, to=Reference(6, CHANNEL.id, gone=True))]
    assert [len(part.messages) for part in parts_of(talk, said)] == [3]


@given(st.lists(st.sampled_from([None, 5, 6, 15]), min_size=1, max_size=12), st.sampled_from([ANN, STAFF]))
def test_the_parts_are_the_batch_and_neighbours_are_of_different_conversations(
    targets: list[int | None], author: Author
) -> None:
    talk, batch = written(author, targets)
    parts = parts_of(talk, batch)
    assert [message for part in parts for message in part.messages] == batch
    names = [{talk.tracker.conversation_of(message.id) for message in part.messages} for part in parts]
    assert all(len(each) == 1 for each in names)
    assert all(names[at] != names[at + 1] for at in range(len(names) - 1))


def test_parts_are_numbered_in_order_and_know_their_author_and_place() -> None:
    talk = Talk()
    asked = talk.says(ANN, "where is it?")
    other = talk.says(ANN, "you are welcome", to=talk.says(BOT))
    answered = talk.says(STAFF, "there", place=THREAD)
    told = [
        (part.number, part.messages, part.author_type, part.place, part.closed_at)
        for part in parts_of(talk, [asked, other], [answered])
    ]
    assert told == [
        (1, (asked,), USER, CHANNEL, 5.0),
        (2, (other,), USER, CHANNEL, 5.0),
        (3, (answered,), TEAM, THREAD, 6.0),
    ]


def test_replies_to_messages_from_before_the_start_are_parts_of_their_own() -> None:
    """Which of them are one conversation is not known."""
    talk = Talk()
    asked, more = talk.says(ANN), talk.says(ANN)
    lost, other = talk.says(ANN, unheard=True), talk.says(ANN, unheard=True)
    answers = [talk.says(STAFF, to=to) for to in (asked, more, lost, lost, other)]
    batch = tuple(answers)
    assert [part.messages for part in parts_of(talk, answers)] == [batch[:2], batch[2:4], batch[4:]]


def test_what_one_person_said_in_private_is_not_answered_in_one_part_with_what_they_said_in_public() -> None:
    """Pitfall 47."""
    talk = Talk()
    answers = tuple(talk.says(STAFF, to=talk.says(ANN, place=place)) for place in (CHANNEL, PRIVATE))
    assert [part.messages for part in parts_of(talk, answers)] == [answers[:1], answers[1:]]
