"""A small server for tests: a few people, a channel, and whoever says something in it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from model.events import Deleted, Edited, PlaceSeen, Posted, Ready
from model.messages import (
    DISCORD_EPOCH_MS,
    Attachment,
    Author,
    AuthorType,
    Message,
    Part,
    Place,
    PlaceKind,
    Reference,
    snowflake_time,
)
from model.servers import Servers
from services.conversations.history import History
from services.conversations.people import People, TeamActivity, TeamIds
from services.conversations.tracking import ConversationTracker
from services.discord.protocols import PAGE_SIZE, Fetcher

START = 1_767_225_600.0
"""2026-01-01, seconds since 1970: when the talk begins."""

GUILD = 7
BOT = Author(99, "millrace", is_bot=True)
OTHER_BOT = Author(98, "otherbot", is_bot=True)
ANN = Author(1, "ann")
BEN = Author(2, "ben")
STAFF = Author(50, "sue")
STAFF_TOO = Author(51, "tom")

CHANNEL = Place(1000, PlaceKind.CHANNEL, "help", GUILD)
PRIVATE = Place(1001, PlaceKind.CHANNEL, "staff", GUILD, public=False)
FORUM = 1002
THREAD = Place(2000, PlaceKind.THREAD, "", GUILD, parent_id=CHANNEL.id, owner_id=ANN.id)
"""Its name would be one more thing that the team may answer."""
POST = Place(2001, PlaceKind.FORUM_POST, "a post", GUILD, parent_id=FORUM, owner_id=ANN.id)
PRIVATE_THREAD = Place(2002, PlaceKind.THREAD, "secret", GUILD, parent_id=PRIVATE.id, public=False)


def snowflake(seconds: float) -> int:
    """An id made `seconds` after the start."""
    return (round((START + seconds) * 1000) - DISCORD_EPOCH_MS) << 22


def people_of(members: frozenset[int], roles: frozenset[int], fetcher: Fetcher | None) -> People:
    """People with one team for all servers."""
    return People(Servers({None: TeamIds(members, roles)}), fetcher)


class Talk:
    """Messages go into a real history, and their conversations are followed, as the stream would bring them."""

    def __init__(
        self,
        *,
        fetcher: Fetcher | None = None,
        team: frozenset[int] = frozenset({STAFF.id, STAFF_TOO.id}),
        team_roles: frozenset[int] = frozenset(),
    ) -> None:
        self.history = History(fetcher)
        self.people = people_of(team, team_roles, fetcher)
        self.people.observe(Ready(START, BOT.id, BOT.name))
        self.team = TeamActivity(self.history)
        self.tracker = ConversationTracker()
        self.history.observe(Ready(START, BOT.id, BOT.name))
        for place in (CHANNEL, PRIVATE, THREAD, POST, PRIVATE_THREAD):
            self.history.observe(PlaceSeen(START, place))
        self._seconds = itertools.count(1)
        self._numbers = itertools.count(1)

    def says(
        self,
        author: Author,
        text: str = "…",
        *,
        place: Place = CHANNEL,
        to: Message | Reference | None = None,
        second: float | None = None,
        mentions: Sequence[Author] = (),
        attachments: tuple[Attachment, ...] = (),
        has_unread_parts: bool = False,
        unheard: bool = False,
    ) -> Message:
        """A message, a second after the one before or at `second`, counted from `START`; `unheard`: the stream never
        brought it.
        """
        message = Message(
            id=snowflake(next(self._seconds) if second is None else second),
            channel_id=place.id,
            author=author,
            text=text,
            at=0.0,
            guild_id=GUILD,
            reply_to=Reference(to.id, to.channel_id) if isinstance(to, Message) else to,
            mentions=tuple((mentioned.id, mentioned.name) for mentioned in mentions),
            attachments=attachments,
            has_unread_parts=has_unread_parts,
        )
        message = replace(message, at=snowflake_time(message.id))
        if not unheard:
            self.history.observe(Posted(message.at, message))
            author_type = self.people.type_of(author, None)
            if author_type is AuthorType.TEAM_MEMBER:
                self.team.observe(message)
            self.tracker.follow(message, author_type, self.history.place(place.id))
        return message

    def deletes(self, message: Message) -> None:
        self.history.observe(Deleted(message.at, message.channel_id, (message.id,)))

    def edits(self, message: Message, text: str, *, second: float | None = None) -> None:
        """An edit at `second`, counted from `START`; at once, if there is none."""
        at = message.at if second is None else snowflake_time(snowflake(second))
        self.history.observe(Edited(at, message.channel_id, message.id, text))

    def part(self, *messages: Message, kind: AuthorType | None = None) -> Part:
        place = self.history.place(messages[0].channel_id)
        kind = self.people.type_of(messages[0].author, None) if kind is None else kind
        return Part(next(self._numbers), messages, kind, place, messages[-1].at + 60)


class SmallFetcher:
    """Discord's answers: `messages` are what there is, and `broken` makes every look-up fail."""

    def __init__(self, *messages: Message, roles: dict[int, tuple[int, ...]] | None = None) -> None:
        self.there = {message.id: message for message in messages}
        self.roles = roles or {}
        self.broken: Exception | None = None
        self.calls: list[str] = []

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        self._ask(f"message {message_id}")
        return self.there.get(message_id)

    async def messages(
        self, channel_id: int, *, before: int | None = None, after: int | None = None, around: int | None = None
    ) -> Sequence[Message]:
        self._ask(f"messages of {channel_id}")
        found = sorted((m for m in self.there.values() if m.channel_id == channel_id), key=lambda m: m.id)
        if around is not None:
            half = PAGE_SIZE // 2
            older = [m for m in found if m.id < around][-half:]
            return [*older, *[m for m in found if m.id >= around][: half + 1]][:PAGE_SIZE]
        if before is not None:
            found = [m for m in found if m.id < before]
        if after is not None:
            return [m for m in found if m.id > after][:PAGE_SIZE]
        return found[-PAGE_SIZE:]

    async def role_ids(self, guild_id: int, user_id: int) -> tuple[int, ...]:
        self._ask(f"roles of {user_id}")
        return self.roles.get(user_id, ())

    async def is_thread_member(self, thread_id: int, user_id: int) -> bool:
        self._ask(f"member {user_id} of {thread_id}")
        return False

    async def place(self, place_id: int) -> Place | None:
        self._ask(f"place {place_id}")
        return None

    def _ask(self, what: str) -> None:
        self.calls.append(what)
        if self.broken is not None:
            raise self.broken
