"""Messages, their authors and places; the batches that collect them, and the parts into which batches are cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from clock.cancellation import CancelToken

DISCORD_EPOCH_MS = 1_420_070_400_000
"""Snowflakes count milliseconds from 2015-01-01 UTC (Discord API reference, "Snowflakes")."""
MAX_ID_DIGITS = 20


def is_snowflake(text: str) -> bool:
    """Return True if a text is an id of Discord."""
    # Not `int` alone, which accepts signs, underscores and the digits of other scripts.
    return text.isascii() and text.isdigit() and len(text) <= MAX_ID_DIGITS and 0 < int(text) < 1 << 64


def snowflake_time(snowflake: int) -> float:
    """Return when an id was made, in seconds since 1970, UTC."""
    return ((snowflake >> 22) + DISCORD_EPOCH_MS) / 1000


def snowflake_at(at: float) -> int:
    """Return the first id of a moment. `at`: in seconds since 1970, UTC. Before Discord existed: 0."""
    return max(0, round(at * 1000) - DISCORD_EPOCH_MS) << 22


class AuthorType(StrEnum):
    COMMUNITY_USER = "community_user"
    TEAM_MEMBER = "team_member"
    BOT = "bot"


class PlaceKind(StrEnum):
    CHANNEL = "channel"
    THREAD = "thread"
    FORUM_POST = "forum post"


@dataclass(frozen=True, slots=True)
class Place:
    """A channel, a thread or a forum post."""

    id: int
    kind: PlaceKind
    name: str = ""
    guild_id: int | None = None
    parent_id: int | None = None
    """The channel of a thread, or the forum of a post."""
    owner_id: int | None = None
    """Who opened the thread or post."""
    public: bool = True
    """True if `@everyone` may read all that was ever written in the place, and nobody is shut out. Recordings carry no
    permissions: there every place is public."""
    viewable: bool = True
    """True if `@everyone` may view new messages of the place; what was written before may be closed to them."""
    invited_only: bool = False
    """A private thread: viewed by its members alone."""
    locked: bool = False
    archived: bool = False
    archived_at: float | None = None
    """Since when the thread or post is archived, in seconds since 1970, UTC."""
    tags: tuple[str, ...] = ()
    """The names of a forum post's tags, or the ids of unknown ones."""

    @property
    def is_thread(self) -> bool:
        return self.kind is not PlaceKind.CHANNEL

    @property
    def channel_id(self) -> int:
        """The parent channel of a thread, else the channel itself."""
        return self.parent_id if self.parent_id is not None else self.id


@dataclass(frozen=True, slots=True)
class Author:
    id: int
    name: str
    is_bot: bool = False
    """A bot or a webhook."""
    role_ids: tuple[int, ...] | None = None
    """None if unknown: history carries no roles."""


@dataclass(frozen=True, slots=True)
class Attachment:
    id: int
    filename: str
    size: int
    """In bytes."""
    url: str
    content_type: str | None = None

    @property
    def is_image(self) -> bool:
        return (self.content_type or "").startswith("image/") or self.filename.lower().endswith(
            (".png", ".jpg", ".jpeg", ".gif", ".webp")
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """The message that a reply answers."""

    message_id: int
    channel_id: int
    gone: bool = False
    """Discord said, together with the reply, that the message no longer exists."""


@dataclass(frozen=True, slots=True)
class Message:
    id: int
    channel_id: int
    """Where it was written: a channel or a thread."""
    author: Author
    text: str
    """As Discord sent it, mentions unrendered."""
    at: float
    """When it was written (the snowflake's time), seconds since 1970, UTC."""
    guild_id: int | None = None
    is_system: bool = False
    """True if it is neither a plain message nor a reply: joins, pins, boosts, thread-created."""
    reply_to: Reference | None = None
    mentions: tuple[tuple[int, str], ...] = ()
    """The mentioned people: id and name."""
    attachments: tuple[Attachment, ...] = ()
    edited_at: float | None = field(default=None, compare=False)
    """When it was last edited, seconds since 1970, UTC; None: never, as far as is known."""
    has_unread_parts: bool = False
    """True if it has a poll, stickers or a forwarded message: people see them, and nothing here reads them."""
    title: str = field(default="", compare=False)
    """The former title of a forum post, in a version of its first message that an edit has replaced."""

    @property
    def is_empty(self) -> bool:
        return not self.attachments and not self.text.strip()


def discord_address(guild_id: int, place_id: int, message_id: int | None = None) -> str:
    """Return the https address of a message, or of a channel or thread, in the Discord client."""
    ids = (guild_id, place_id) if message_id is None else (guild_id, place_id, message_id)
    return "https://discord.com/channels/" + "/".join(map(str, ids))


class Key(NamedTuple):
    """A channel or thread, and an author. It orders windows and answers."""

    place_id: int
    author_id: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive messages of one author in one place, in order of id, closed by the quiet window."""

    messages: tuple[Message, ...]
    closed_at: float

    @property
    def key(self) -> Key:
        first = self.messages[0]
        return Key(first.channel_id, first.author.id)


class Destination(StrEnum):
    """Where routing sends a part. The values are the handler names in `adapter_routing_total`."""

    ANSWER = "answer"
    CAPTURE = "capture"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Part:
    """The piece of a batch that is routed on its own.

    Attributes:
        number: counts the parts in the order in which their windows closed.
        token: cancels the work on the part, wherever it is.
    """

    number: int
    messages: tuple[Message, ...]
    author_type: AuthorType
    place: Place
    closed_at: float
    token: CancelToken = field(default_factory=CancelToken, compare=False, repr=False)

    @property
    def author(self) -> Author:
        return self.messages[0].author

    @property
    def key(self) -> Key:
        return Key(self.place.id, self.author.id)

    @property
    def guild_id(self) -> int | None:
        """The server in which it was written, even if the channel is unknown."""
        return self.place.guild_id if self.place.guild_id is not None else self.messages[0].guild_id

    @property
    def message_ids(self) -> tuple[int, ...]:
        return tuple([message.id for message in self.messages])  # a list first: asked often, and twice as fast

    @property
    def last(self) -> Message:
        return self.messages[-1]

    @property
    def correlation_id(self) -> str:
        """The id of the first message in hexadecimal: the same in a replay."""
        return f"{self.messages[0].id:x}"
