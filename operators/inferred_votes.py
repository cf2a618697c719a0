"""Votes about answers, inferred from what askers write next."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reactivex import Observable

from clock import HOUR
from dataflow.basics import concat_map_iterable
from model.events import Posted
from model.messages import Message
from services.conversations import ConversationTracker, People, Post, Posts
from services.search import says_it_worked

REMEMBERED_SECONDS = HOUR
"""Later thanks may be for something else."""


@dataclass(frozen=True, slots=True)
class InferredVote:
    """An asker says that an answer worked, or that it did not. `at`: when, in seconds since 1970, UTC."""

    at: float
    post: Post
    worked: bool


def inferred_votes(
    posts: Posts, tracker: ConversationTracker, people: People
) -> Callable[[Observable[Posted]], Observable[InferredVote]]:
    """Emit a vote when an asker says within an hour that an answer worked or did not: in a reply to it, in its thread,
    or in the conversation in which they asked.

        --question--[answer]--"thanks!"--"hm"--|
        [ inferred_votes                       ]
        ----------------------up---------------|

    A message that does not reply to the answer counts only if it mentions nobody but the bot, and nobody else has
    written since the answer. All messages come through here, so the cheap look-ups come before the reading of the text.
    """

    def found(posted: Posted) -> Iterable[InferredVote]:
        message = posted.message
        post = answer_to(message)
        if post is None or not 0 <= message.at - post.at < REMEMBERED_SECONDS:
            return ()
        worked = says_it_worked(message.text)
        return () if worked is None else (InferredVote(message.at, post, worked),)

    def answer_to(message: Message) -> Post | None:
        """Return the answer to the author that the message may be about."""
        if message.reply_to is not None:
            post = posts.find(message.reply_to.message_id)
            return post if post is not None and post.asker_id == message.author.id else None
        post = posts.latest_for(message.channel_id, message.author.id)
        if post is None or not is_in_thread_or_conversation(message, post):
            return None
        to_another = any(user_id != people.bot_id for user_id, _ in message.mentions)
        return None if to_another or tracker.others_wrote(message.id, since_id=post.message_id) else post

    def is_in_thread_or_conversation(message: Message, post: Post) -> bool:
        """Return True if the message is in the thread of the answer, or in the conversation of its question."""
        if message.channel_id == post.place_id:
            return True
        conversation_id = tracker.conversation_of(post.last_asked_id)
        return conversation_id is not None and conversation_id == tracker.conversation_of(message.id)

    return concat_map_iterable(found)
