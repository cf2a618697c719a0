"""The events go by, and their conversations are known from then on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reactivex import operators as ops
from reactivex.subject import Subject

from model.events import Deleted, Edited, Event, Posted
from model.messages import Author, Message
from operators.screen import follow, without_content
from services.conversations.tracking import ConversationTracker
from tests.marbles import play
from tests.talk import ANN, BEN, BOT, CHANNEL, STAFF, Talk


def posted(message: Message) -> Posted:
    return Posted(message.at, message)


def nobody(message: Message) -> bool:
    del message
    return False


def heard(
    talk: Talk,
    *messages: Message,
    withheld: Callable[[Message], bool] = nobody,
    tracker: ConversationTracker | None = None,
) -> ConversationTracker:
    """A tracker that has been told of these; `talk` says who is of the team, and what is gone."""
    tracker = tracker or ConversationTracker()
    events: Subject[Event] = Subject()
    events.pipe(follow(tracker, talk.people, talk.history, withheld)).subscribe()
    for message in messages:
        events.on_next(posted(message))
    return tracker


async def test_every_event_goes_by_at_once_and_its_conversation_is_known_when_it_does() -> None:
    talk, tracker = Talk(), ConversationTracker()
    first, other = talk.says(ANN), talk.says(BEN)
    second = talk.says(STAFF, to=first)
    values: dict[str, Event] = {
        "a": posted(first),
        "b": posted(other),
        "c": posted(second),
        "e": Edited(first.at, CHANNEL.id, first.id, "But why?"),
    }
    marks = {event: mark for mark, event in values.items()}
    told: list[int | None] = []

    def ask(event: Event) -> None:
        told.append(tracker.conversation_of(event.message.id) if isinstance(event, Posted) else None)

    following = follow(tracker, talk.people, talk.history, nobody)
    diagram = "--a---b---(c c)---e--|"
    seen = await play(diagram, following, ops.do_action(ask), values=values, show=lambda event: marks[event])
    assert seen == diagram
    assert told == [first.id, other.id, first.id, first.id, None]


def test_what_is_said_is_followed_by_who_says_it_and_where() -> None:
    talk = Talk()
    asked = talk.says(ANN)
    answered = talk.says(STAFF, second=500)
    tracker = heard(talk, asked, answered)
    assert tracker.conversation_of(answered.id) == asked.id, "a question that waits is answered by the team"
    assert heard(Talk(team=frozenset()), asked, answered).conversation_of(answered.id) == answered.id


def test_what_is_deleted_was_said_to_nobody() -> None:
    talk, tracker = Talk(), ConversationTracker()
    mentioned, asked = talk.says(BEN, mentions=[ANN]), talk.says(ANN)
    events: Subject[Event] = Subject()
    events.pipe(follow(tracker, talk.people, talk.history, nobody)).subscribe()
    for event in (posted(mentioned), Deleted(mentioned.at, CHANNEL.id, (mentioned.id,)), posted(asked)):
        events.on_next(event)
    assert tracker.conversation_of(asked.id) == asked.id


def test_system_messages_are_nobodys_words() -> None:
    talk = Talk()
    joined = replace(talk.says(ANN), is_system=True)
    assert heard(talk, joined).conversation_of(joined.id) is None


def test_a_reply_to_what_was_deleted_before_is_no_reply() -> None:
    talk = Talk()
    theirs = talk.says(BEN)
    talk.deletes(theirs)
    late = talk.says(ANN, to=theirs)
    assert heard(talk, theirs, late).conversation_of(late.id) == late.id


def test_a_conversation_stays_one_when_a_message_of_it_is_deleted_later() -> None:
    talk = Talk()
    theirs = talk.says(BEN)
    reply = talk.says(ANN, to=theirs)
    tracker = heard(talk, theirs, reply)
    talk.deletes(theirs)
    assert heard(talk, talk.says(BOT), tracker=tracker).conversation_of(reply.id) == theirs.id


def test_of_who_wants_nothing_read_only_that_they_spoke_and_to_whom_is_told() -> None:
    talk = Talk()
    asked = talk.says(ANN, "Why?")
    reply = talk.says(BEN, "A secret about moons", to=asked)
    told = without_content(reply)
    assert (told.text, told.author) == ("", Author(BEN.id, ""))
    assert (told.id, told.reply_to, told.at) == (reply.id, reply.reply_to, reply.at)
    assert without_content(talk.says(BOT)).author.is_bot
    tracker = heard(talk, asked, reply, withheld=lambda message: message.author.id == BEN.id)
    assert tracker.conversation_of(reply.id) == asked.id
    named = talk.says(STAFF, "ben: nothing to do with it", second=900)
    assert heard(talk, named, tracker=tracker).conversation_of(named.id) == named.id, "their name is not known"


def test_their_words_draw_no_answer_to_their_question() -> None:
    """Of two questions that wait, the words decide; the newer where they say nothing."""
    talk = Talk()
    theirs, newer = talk.says(BEN, "The moons of Saturn?"), talk.says(ANN, "Something else?")
    answer = talk.says(STAFF, "Saturn has many moons.", second=100)
    assert heard(talk, theirs, newer, answer).conversation_of(answer.id) == theirs.id
    unheard = heard(talk, theirs, newer, answer, withheld=lambda message: message.author.id == BEN.id)
    assert unheard.conversation_of(answer.id) == newer.id


def test_whoever_names_nobody_does_not_name_who_wants_nothing_read() -> None:
    talk = Talk()
    theirs, question = talk.says(BEN), talk.says(ANN, "How do I install it?")
    tracker = heard(talk, theirs, question, withheld=lambda message: message.author.id == BEN.id)
    assert tracker.conversation_of(question.id) == question.id
