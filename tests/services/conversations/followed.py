"""A chat whose conversations are followed as it is written."""

from __future__ import annotations

from collections.abc import Sequence

from model.messages import Author, AuthorType, Message, Place
from services.conversations.tracking import AssignedConversation, ConversationTracker, TrackingRules
from tests.talk import BOT, CHANNEL, OTHER_BOT, STAFF, STAFF_TOO, Talk

KINDS = dict.fromkeys((STAFF.id, STAFF_TOO.id), AuthorType.TEAM_MEMBER) | dict.fromkeys(
    (BOT.id, OTHER_BOT.id), AuthorType.BOT
)
"""Everybody else is a community user."""


class FollowedChat:
    """Attributes:
    found: what was told of the last message.
    """

    def __init__(self, rules: TrackingRules | None = None) -> None:
        self.talk = Talk()
        self.tracker = ConversationTracker(rules)
        self.names: dict[int, int] = {}
        self.found = AssignedConversation(0, None)

    def says(
        self,
        second: float,
        author: Author,
        text: str = "…",
        *,
        to: Message | None = None,
        place: Place = CHANNEL,
        mentions: Sequence[Author] = (),
    ) -> Message:
        message = self.talk.says(author, text, second=second, to=to, place=place, mentions=mentions)
        self.hears(message, place)
        return message

    def hears(self, message: Message, place: Place = CHANNEL) -> None:
        kind = KINDS.get(message.author.id, AuthorType.COMMUNITY_USER)
        self.found = self.tracker.follow(message, kind, place)
        self.names |= dict.fromkeys((message.id, *self.found.moved), self.found.conversation)

    def together(self, *messages: Message) -> bool:
        """Whether these are one conversation."""
        return len({self.names[message.id] for message in messages}) == 1

    def apart(self, *messages: Message) -> bool:
        """Whether each is in a conversation of its own."""
        return len({self.names[message.id] for message in messages}) == len(messages)
