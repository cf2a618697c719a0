"""What there is in a guild. Everything is mutable: this is the world, not the program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from tests.loopback.mentions import NOBODY, Pings
from tests.loopback.permissions import NOTHING, Permission, resolve


class ChannelKind(IntEnum):
    """Discord's "Channel Types"."""

    TEXT = 0
    ANNOUNCEMENT = 5
    PUBLIC_THREAD = 11
    PRIVATE_THREAD = 12
    FORUM = 15


class MessageKind(IntEnum):
    """Some of Discord's "Message Types"; any other number is a system message as well."""

    DEFAULT = 0
    PINNED = 6
    JOIN = 7
    THREAD_CREATED = 18
    REPLY = 19
    THREAD_STARTER = 21


@dataclass(eq=False)
class Role:
    id: int
    name: str
    permissions: Permission = NOTHING


@dataclass(eq=False)
class User:
    id: int
    name: str
    bot: bool = False
    webhook: bool = False

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"


@dataclass(eq=False)
class Member:
    user: User
    roles: list[Role]
    joined_at: float


@dataclass(eq=False)
class Overwrite:
    allow: Permission = NOTHING
    deny: Permission = NOTHING


@dataclass(eq=False)
class Channel:
    """A text channel or a forum."""

    id: int
    name: str
    kind: ChannelKind = ChannelKind.TEXT
    topic: str | None = None
    overwrites: dict[int, Overwrite] = field(default_factory=dict[int, Overwrite])
    """By the id of a role or a member; the guild's own id stands for `@everyone`."""
    last_message_id: int | None = None

    @property
    def home(self) -> Channel:
        """The channel whose permissions count."""
        return self


@dataclass(eq=False)
class Thread:
    """A thread or a forum post."""

    id: int
    name: str
    parent: Channel
    owner: User
    created_at: float
    kind: ChannelKind = ChannelKind.PUBLIC_THREAD
    members: dict[int, float] = field(default_factory=dict[int, float])
    """Who has joined, and when."""
    archived: bool = False
    locked: bool = False
    auto_archive_minutes: int = 1440
    archive_changed_at: float = 0.0
    last_message_id: int | None = None
    message_count: int = 0
    """Without the first message of a forum post and without system messages of its start."""
    applied_tags: list[int] = field(default_factory=list[int])

    @property
    def home(self) -> Channel:
        return self.parent


Place = Channel | Thread


@dataclass(eq=False)
class File:
    """An attachment and its content."""

    id: int
    filename: str
    content: bytes
    content_type: str | None = None
    description: str | None = None


@dataclass(frozen=True)
class Link:
    """A `message_reference`."""

    message_id: int | None
    """None: it refers to the channel."""
    channel_id: int


@dataclass(eq=False)
class Message:
    id: int
    place: Place
    author: User
    content: str
    at: float
    kind: int = MessageKind.DEFAULT
    link: Link | None = None
    files: list[File] = field(default_factory=list[File])
    embeds: list[object] = field(default_factory=list[object])
    components: list[object] = field(default_factory=list[object])
    reactions: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By emoji (`👍`, or `name:id`): who reacted, in order."""
    pings: Pings = NOBODY
    nonce: str | None = None
    edited_at: float | None = None
    thread: Thread | None = None
    """The thread that was made from this message."""

    @property
    def is_system(self) -> bool:
        return self.kind not in {MessageKind.DEFAULT, MessageKind.REPLY}


@dataclass(eq=False)
class Guild:
    id: int
    name: str
    owner: User
    roles: dict[int, Role] = field(default_factory=dict[int, Role])
    members: dict[int, Member] = field(default_factory=dict[int, Member])

    @property
    def everyone(self) -> Role:
        """The role that all have; its id is the guild's."""
        return self.roles[self.id]

    def permissions(self, user: User, place: Place) -> Permission:
        """What `user` may do in `place`. Threads follow their parent; private ones are for those who joined."""
        member = self.members.get(user.id)
        if member is None:
            return NOTHING
        base = NOTHING
        for role in (self.everyone, *member.roles):
            base |= role.permissions
        if user is self.owner:
            base |= Permission.ADMINISTRATOR
        overwrites = place.home.overwrites
        granted = resolve(
            base,
            _together(overwrites, [self.id]),
            _together(overwrites, (role.id for role in member.roles)),
            _together(overwrites, [user.id]),
        )
        hidden = (
            isinstance(place, Thread)
            and place.kind is ChannelKind.PRIVATE_THREAD
            and user.id not in place.members
            and not granted & Permission.MANAGE_THREADS
        )
        return NOTHING if hidden else granted


def _together(overwrites: dict[int, Overwrite], ids: Iterable[int]) -> tuple[Permission, Permission]:
    deny = allow = NOTHING
    for one in ids:
        overwrite = overwrites.get(one)
        if overwrite is not None:
            deny |= overwrite.deny
            allow |= overwrite.allow
    return deny, allow
