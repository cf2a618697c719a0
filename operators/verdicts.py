"""What askers think of answers: their reactions, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reactivex import Observable

from model.events import Event, Posted, Reaction
from model.messages import Message
from operators.selecting import concat_map_iterable
from services.conversations import Follower, Post, Posts, verdict

REMEMBERED_SECONDS = 3_600.0
"""Thanks that come later may be for something else."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An asker says that an answer worked, or that it did not.

    Attributes:
        at: when, in seconds since 1970, UTC.
    """

    at: float
    post: Post
    worked: bool


def verdicts(
    posts: Posts, follower: Follower, withheld: Callable[[Message], bool]
) -> Callable[[Observable[Event]], Observable[Reaction | Verdict]]:
    """Reactions, and what askers say about an answer within the hour: as a reply to it, in its thread, or where they go
    on with the conversation in which they asked.

        --question--[answer]--"thanks!"--👍--|
        [ verdicts                           ]
        ----------------------v----------r--|
    """

    def found(event: Event) -> Iterable[Reaction | Verdict]:
        if isinstance(event, Reaction):
            return (event,)
        if not isinstance(event, Posted) or event.message.is_system:
            return ()
        message = event.message
        post = answer_to(message)
        if post is None or message.at - post.at >= REMEMBERED_SECONDS or withheld(message):
            return ()
        worked = verdict(message.text)
        return () if worked is None else (Verdict(message.at, post, worked),)

    def answer_to(message: Message) -> Post | None:
        """The answer that its author was given here, as far as that is what they speak of."""
        replied = None if message.reply_to is None else posts.about(message.reply_to.message_id)
        post = replied or posts.latest_for(message.channel_id, message.author.id)
        if post is None or post.asker_id != message.author.id:
            return None
        if post is replied or post.place_id == message.channel_id:
            return post
        asked_in = follower.conversation_of(post.last_asked_id)
        return post if asked_in is not None and asked_in == follower.conversation_of(message.id) else None

    return concat_map_iterable(found)
