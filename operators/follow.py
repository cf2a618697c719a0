"""Assign each message to a conversation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reactivex import Observable
from reactivex import operators as ops

from model.events import Event, Posted
from model.messages import Author, Message
from services.conversations import Follower, History, People


def follow(
    follower: Follower, people: People, history: History, withheld: Callable[[Message], bool]
) -> Callable[[Observable[Event]], Observable[Event]]:
    """Pass every event on after the `follower` has assigned its message to a conversation. The follower can be asked
    about that message ever after; cutting, routing, gathering and capturing do so.

        --m1---m2→m1---m3---edit--|
        [ follow                  ]
        --m1---m2→m1---m3---edit--|      m1 and m2 are one conversation now, m3 begins another

    Of people who want nothing read, it is told that they spoke, and to whom; not what they said, or their name. A reply
    to a message that was deleted before is none.
    """

    def follow_event(event: Event) -> None:
        if isinstance(event, Posted) and not event.message.is_system:
            message, reply = event.message, event.message.reply_to
            if reply is not None and history.is_gone(reply.message_id):
                message = replace(message, reply_to=replace(reply, gone=True))
            author_type, place = (
                people.type_of(message.author, history.guild_of(message)),
                history.place(message.channel_id),
            )
            follower.follow(unread(message) if withheld(message) else message, author_type, place)

    return ops.do_action(follow_event)


def unread(message: Message) -> Message:
    """The message without its words and its author's name."""
    return replace(message, text="", author=Author(message.author.id, "", message.author.is_bot))
