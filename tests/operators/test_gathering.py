"""The conversation that a question is answered in, and the thread that the answer goes to."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from model.conversations import Image
from model.messages import Attachment, Message, Place, PlaceKind
from operators.answering import gather
from services.assistant import Inquiry
from services.conversations import Context, ContextRules
from services.conversations.in_flight import InFlight
from services.conversations.posts import Post, Posts
from services.llm import ImageUnusable, Usage
from tests.talk import ANN, BEN, CHANNEL, GUILD, STAFF, THREAD, Talk
from tests.world import picture

OURS = Place(3000, PlaceKind.THREAD, "of the bot", GUILD, parent_id=CHANNEL.id, owner_id=99)


@dataclass
class Shown:
    """An `ImageSource` that notes what it loads. `fake.png` is no image."""

    names: list[str] = field(default_factory=list[str])

    async def load(self, attachment: Attachment) -> Image:
        self.names.append(attachment.filename)
        if attachment.filename == "fake.png":
            raise ImageUnusable("no image")
        return Image(attachment.filename, "image/png", b"")


def opened(talk: Talk, at: float, place: Place = OURS) -> Posts:
    """The bot has answered Ann in a thread of its own, `at` seconds after the start."""
    first = talk.says(ANN, "An earlier question?")
    post = Post(first.at + at, 1, place.id, CHANNEL.id, ANN.id, first.id, True, "An earlier question?", ())
    return Posts([post])


async def gathered(
    talk: Talk,
    *messages: Message,
    posts: Posts | None = None,
    images: Shown | None = None,
    in_flight: InFlight | None = None,
) -> Inquiry:
    context = Context(talk.history, talk.people, talk.tracker, ContextRules())
    gathering = gather(context, talk.history, posts or Posts(), in_flight or InFlight(), images, 60)
    result = await gathering(Inquiry(talk.part(*messages), False, Usage(), {}))
    assert isinstance(result, Inquiry)
    return result


def texts(inquiry: Inquiry) -> list[str]:
    return [turn.text for turn in inquiry.conversation.turns]


async def test_a_question_in_a_channel_comes_with_what_it_replies_to() -> None:
    talk = Talk()
    talk.says(BEN, "Good morning.")
    said = talk.says(BEN, "Use the cache.")
    question = talk.says(ANN, "Which one?", to=said)
    inquiry = await gathered(talk, question)
    assert texts(inquiry) == ["Good morning.", "Use the cache.", "Which one?"]
    assert [turn.asked_now for turn in inquiry.conversation.turns] == [False, False, True]
    assert [turn.by_asker for turn in inquiry.conversation.turns] == [False, False, True]
    assert inquiry.messages[-1] == question
    assert inquiry.reply_place_id is None


async def test_the_messages_of_some_people_are_left_out() -> None:
    talk = Talk()
    question = talk.says(ANN, "Which one?", to=talk.says(BEN, "Use the cache."))
    context = Context(talk.history, talk.people, talk.tracker, ContextRules())
    gathering = gather(context, talk.history, Posts(), InFlight(), None, 60)
    asked = Inquiry(talk.part(question), False, Usage(), {}, left_out=frozenset({BEN.id}))
    result = await gathering(asked)
    assert isinstance(result, Inquiry)
    assert (texts(result), result.messages) == (["Which one?"], (question,))


async def test_a_question_comes_with_what_its_asker_has_said_before_and_with_nobody_elses_talk() -> None:
    """Pitfall 53: "thanks!" says nothing, the request stands two lines above."""
    talk = Talk()
    talk.says(ANN, "It does not start.")
    talk.says(BEN, "Good morning.")
    talk.says(ANN, "It says E12.")
    inquiry = await gathered(talk, talk.says(ANN, "What now?"))
    assert texts(inquiry) == ["It does not start.", "It says E12.", "What now?"]
    assert all(turn.by_asker for turn in inquiry.conversation.turns)


async def test_a_question_in_a_thread_comes_with_the_thread_and_is_answered_there() -> None:
    talk = Talk()
    talk.says(BEN, "Have you restarted it?", place=THREAD)
    question = talk.says(ANN, "Yes. And now?", place=THREAD)
    talk.says(ANN, "I mean the server.", place=THREAD)
    talk.says(BEN, "Which server?", place=THREAD)
    inquiry = await gathered(talk, question)
    assert texts(inquiry) == ["Have you restarted it?", "Yes. And now?", "Which server?"]
    assert inquiry.reply_place_id == THREAD.id


async def test_soon_after_an_answer_the_asker_is_answered_in_the_same_thread() -> None:
    talk, in_flight = Talk(), InFlight()
    talk.history.add_place(OURS)
    posts = opened(talk, 10)
    talk.says(BEN, "I had that, too.", place=OURS)
    question = talk.says(ANN, "And then?")
    in_flight.hold(question, talk.people.type_of(ANN, None), in_thread=False)
    inquiry = await gathered(talk, question, posts=posts, in_flight=in_flight)
    assert inquiry.reply_place_id == OURS.id
    assert texts(inquiry) == ["An earlier question?", "I had that, too.", "And then?"]
    part = inquiry.part
    in_flight.begin(part)
    in_flight.cancel_answered(talk.says(STAFF, "I take over.", place=OURS), ())
    assert part.token.error is not None


@pytest.mark.parametrize("why", ["long ago", "unknown", "locked", "the team is there"])
async def test_otherwise_a_new_thread_is_opened(why: str) -> None:
    talk = Talk()
    posts = opened(talk, -100 if why == "long ago" else 10)
    if why != "unknown":
        locked = Place(OURS.id, OURS.kind, parent_id=CHANNEL.id, locked=why == "locked")
        talk.history.add_place(locked)
    if why == "the team is there":
        talk.says(STAFF, "I take over.", place=OURS)
    inquiry = await gathered(talk, talk.says(ANN, "And then?"), posts=posts)
    assert inquiry.reply_place_id is None
    assert "I take over." not in texts(inquiry)


async def test_the_teams_own_questions_elsewhere_close_no_thread() -> None:
    """What a message in the thread replies to belongs to the conversation, but was not written there."""
    talk = Talk()
    talk.history.add_place(OURS)
    posts = opened(talk, 10)
    notice = talk.says(STAFF, "We are moving servers.")
    talk.says(BEN, "See above.", place=OURS, to=notice)
    inquiry = await gathered(talk, talk.says(ANN, "And then?"), posts=posts)
    assert inquiry.reply_place_id == OURS.id
    assert "We are moving servers." in texts(inquiry)


async def test_images_of_people_are_loaded_where_a_model_sees_them() -> None:
    talk, source = Talk(), Shown()
    shot = picture(1, "shot.png")
    by_team = talk.says(STAFF, "Like this.", attachments=(picture(2, "manual.png"),))
    question = talk.says(ANN, "Why?", to=by_team, attachments=(shot,))
    seen = await gathered(talk, question, images=source)
    assert source.names == ["shot.png"]
    assert [image.name for image in seen.conversation.images] == ["shot.png"]
    assert (await gathered(talk, question)).conversation.images == ()


@pytest.mark.parametrize(
    ("size", "shown"),
    [(1, ["q0.png", "q1.png", "q2.png", "late0.png", "late1.png"]), (3_000_000, ["q0.png", "q1.png", "q2.png"])],
)
async def test_a_call_shows_few_images_those_of_the_question_first(size: int, shown: list[str]) -> None:
    """A thread full of images would fill the memory, and with catch-up again after each restart."""
    talk, source = Talk(), Shown()

    def pictures(first: int, name: str, count: int) -> tuple[Attachment, ...]:
        return tuple(picture(first + at, f"{name}{at}.png", size) for at in range(count))

    talk.says(BEN, "Old.", place=THREAD, attachments=pictures(0, "old", 9))
    question = talk.says(ANN, "Why?", place=THREAD, attachments=pictures(10, "q", 3))
    talk.says(BEN, "Late.", place=THREAD, attachments=pictures(20, "late", 9))
    seen = await gathered(talk, question, images=source)
    assert sorted(source.names) == sorted(shown)
    assert "[image: old0.png]" in texts(seen)[0]


async def test_an_image_that_is_none_is_counted_as_unseen_and_keeps_no_other_from_being_shown() -> None:
    talk = Talk()
    talk.says(BEN, "lol", place=THREAD, attachments=(picture(1, "fake.png"),))
    question = talk.says(ANN, "And this?", place=THREAD, attachments=(picture(2, "fake.png"), picture(3, "c.png")))
    inquiry = await gathered(talk, question, images=Shown())
    assert [[image.name for image in turn.images] for turn in inquiry.conversation.turns] == [[], ["c.png"]]
    assert [turn.unseen_images for turn in inquiry.conversation.turns] == [1, 1]
    # Without anybody to show images to, a placeholder needs no word.
    without = await gathered(talk, question)
    assert [turn.unseen_images for turn in without.conversation.turns] == [0, 0]
