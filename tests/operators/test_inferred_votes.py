"""What is heard as a vote, and what is said to somebody else, too late, or by strangers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from model.events import Posted
from model.messages import Author, Message, Place
from operators.inferred_votes import REMEMBERED_SECONDS, InferredVote, inferred_votes
from services.conversations.posts import Post, Posts
from services.conversations.tracking import ConversationTracker
from tests.marbles import play, watch
from tests.services.conversations.followed import FollowedChat
from tests.talk import ANN, BEN, BOT, CHANNEL, STAFF, THREAD

ANSWERED = 100
"""The second in which the bot answers."""


@dataclass
class Answered:
    """Ann has asked in a channel, and was answered in the thread that was opened on that."""

    chat: FollowedChat = field(default_factory=FollowedChat)

    def __post_init__(self) -> None:
        self.question = self.chat.says(10, ANN, "How do I start it?")
        self.thread = replace(THREAD, id=self.question.id, owner_id=BOT.id)
        self.answer = self.chat.says(ANSWERED, BOT, "Press start.", place=self.thread)
        self.post = self.post_of(self.question, self.answer)
        self.posts = Posts([self.post])

    def post_of(self, question: Message, answer: Message) -> Post:
        opened = question.channel_id != answer.channel_id
        asked = question.channel_id, question.author.id, question.id
        return Post(answer.at, answer.id, answer.channel_id, *asked, opened, question.text, ())

    def says(
        self,
        author: Author = ANN,
        text: str = "thanks!",
        *,
        second: float = 200,
        place: Place | None = None,
        to: Message | None = None,
        mentions: Sequence[Author] = (),
    ) -> Message:
        """In the thread, if nothing else is said."""
        return self.chat.says(second, author, text, place=place or self.thread, to=to, mentions=mentions)

    async def heard(self, *messages: Message, tracker: ConversationTracker | None = None) -> list[InferredVote]:
        operator = inferred_votes(self.posts, tracker or self.chat.tracker, self.chat.talk.people)
        values = {str(number): Posted(message.at, message) for number, message in enumerate(messages)}
        seen = await watch(f"{''.join(values)}|", operator, values=values)
        return [vote for _, vote in seen if isinstance(vote, InferredVote)]


def shown(vote: InferredVote) -> str:
    return "u" if vote.worked else "d"


async def test_an_asker_says_that_it_worked_and_that_it_did_not() -> None:
    room = Answered()
    said = {
        "q": room.question,
        "t": room.says(text="thanks, that worked", second=101),
        "h": room.says(text="hm", second=102),
        "f": room.says(text="no, it still fails", second=103),
    }
    values = {mark: Posted(message.at, message) for mark, message in said.items()}
    operator = inferred_votes(room.posts, room.chat.tracker, room.chat.talk.people)
    assert await play("-q-t-h-f-|", operator, values=values, show=shown) == "---u---d-|"


async def test_a_vote_names_the_answer_and_when_it_was_given() -> None:
    room = Answered()
    message = room.says()
    assert await room.heard(message) == [InferredVote(message.at, room.post, worked=True)]


@pytest.mark.parametrize("author", [BEN, STAFF])
async def test_strangers_thanks_are_no_vote(author: Author) -> None:
    room = Answered()
    to_answer, in_thread = room.says(author, to=room.answer), room.says(author, second=201)
    in_channel = room.says(author, place=CHANNEL, second=202)
    assert await room.heard(to_answer, in_thread, in_channel) == []


async def test_thanks_count_within_the_hour_and_not_before_the_answer() -> None:
    room = Answered()
    before, at_once = room.says(second=ANSWERED - 1), room.says(second=ANSWERED)
    last = room.says(second=ANSWERED + REMEMBERED_SECONDS - 1)
    late = room.says(second=ANSWERED + REMEMBERED_SECONDS)
    assert [vote.at for vote in await room.heard(before, at_once, last, late)] == [at_once.at, last.at]


async def test_an_asker_goes_on_where_they_asked() -> None:
    """The answer is in the thread; the conversation has begun in the channel."""
    room = Answered()
    assert len(await room.heard(room.says(place=CHANNEL))) == 1


async def test_another_conversation_in_the_channel_is_not_about_the_answer() -> None:
    room = Answered()
    room.says(BEN, "Lunch, anyone?", place=CHANNEL, second=150)
    lunch = room.says(ANN, "Ben: thanks!", place=CHANNEL)
    assert await room.heard(lunch) == []


async def test_in_the_channel_nothing_counts_whose_conversation_is_not_known() -> None:
    """As after a restart."""
    room = Answered()
    in_channel, in_thread = room.says(place=CHANNEL), room.says(second=201)
    assert [vote.at for vote in await room.heard(in_channel, in_thread, tracker=ConversationTracker())] == [
        in_thread.at
    ]


async def test_thanks_after_somebody_elses_words_are_theirs_unless_they_reply_to_the_answer() -> None:
    room = Answered()
    room.says(STAFF, "Or take the other switch.", second=150)
    assert await room.heard(room.says()) == []
    assert await room.heard(room.says(place=CHANNEL, second=201)) == []
    assert len(await room.heard(room.says(to=room.answer, second=202))) == 1


async def test_thanks_after_a_word_from_before_the_answer_are_for_the_answer() -> None:
    room = Answered()
    room.says(STAFF, "I am on the phone.", second=ANSWERED - 1)
    assert len(await room.heard(room.says())) == 1


async def test_thanks_to_somebody_else_are_not_for_the_answer() -> None:
    room = Answered()
    to_ben = room.says(to=room.says(BEN, "Hi", place=CHANNEL, second=20), place=CHANNEL)
    mentioned = room.says(mentions=[BOT, BEN], second=202)
    bot_mentioned = room.says(mentions=[BOT], second=203)
    assert [vote.at for vote in await room.heard(to_ben, mentioned, bot_mentioned)] == [bot_mentioned.at]


async def test_of_several_answers_in_one_thread_the_askers_newest_counts() -> None:
    room = Answered()
    asked_again = room.says(text="And how do I stop it?", second=110)
    again = room.post_of(asked_again, room.says(BOT, "Press stop.", second=120))
    bens = room.says(BEN, "How do I paint it?", second=130)
    to_ben = room.post_of(bens, room.says(BOT, "With paint.", to=bens, second=140))
    for post in (again, to_ben):
        await room.posts.add(post)
    votes = await room.heard(room.says(second=200), room.says(place=CHANNEL, second=201), room.says(BEN, second=202))
    assert [vote.post for vote in votes] == [again, again, to_ben]


async def test_a_reply_is_about_the_answer_that_it_replies_to() -> None:
    room = Answered()
    asked_again = room.says(text="And how do I stop it?", second=110)
    await room.posts.add(room.post_of(asked_again, room.says(BOT, "Press stop.", second=120)))
    assert [vote.post for vote in await room.heard(room.says(to=room.answer))] == [room.post]


async def test_what_was_forgotten_is_not_voted_on() -> None:
    room = Answered()
    room.posts.forget(ANN.id, 2**63)
    assert await room.heard(room.says(), room.says(to=room.answer, second=201)) == []
