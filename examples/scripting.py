"""What the demo's screenplay is written with: people, places, and what they do.

Times are `HH:MM:SS`, UTC, on one day. A `key` names a message, so that later lines can reply to it, edit it, delete it
or open a thread on it. `note` and `expect` become a row of the table in README.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, IntEnum

DISCORD_EPOCH_MS = 1_420_070_400_000
GUILD_BEGAN = "2023-11-20"

Json = dict[str, object]


def snowflake(at: datetime, increment: int) -> int:
    """A Discord id made at that time; `increment` is below 4096."""
    ms = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    return ((ms - DISCORD_EPOCH_MS) << 22) | increment


def made_on(on: str, increment: int) -> str:
    """A Discord id made at the beginning of a day."""
    return str(snowflake(datetime.fromisoformat(on + "T00:00:00+00:00"), increment))


class Kind(IntEnum):
    """Discord's message types."""

    DEFAULT = 0
    PIN = 6
    JOIN = 7
    THREAD_CREATED = 18
    REPLY = 19


class Quoted(Enum):
    """What a reply carries of the message that it replies to."""

    FULL = "referenced_message is the message"
    ABSENT = "no referenced_message: Discord did not look it up"
    NULL = "referenced_message is null: it was deleted"


@dataclass(frozen=True)
class Person:
    name: str
    since: str
    """The day on which the account was made."""
    number: int
    roles: tuple[str, ...] = ()
    is_bot: bool = False
    is_webhook: bool = False

    @property
    def id(self) -> str:
        return made_on(self.since, self.number)

    @property
    def mention(self) -> str:
        return f"<@{self.id}>"

    def user(self) -> Json:
        user: Json = {"id": self.id, "username": self.name, "discriminator": "0", "global_name": None, "avatar": None}
        return user | ({"bot": True} if self.is_bot or self.is_webhook else {})

    def member(self) -> Json:
        joined = max(self.since, GUILD_BEGAN) + "T00:00:00+00:00"
        return {"roles": list(self.roles), "joined_at": joined, "nick": None, "flags": 0, "deaf": False, "mute": False}


@dataclass(frozen=True)
class Channel:
    name: str
    number: int
    type: int = 0

    @property
    def id(self) -> str:
        return made_on(GUILD_BEGAN, self.number)


@dataclass(frozen=True)
class Thread:
    """A thread, named by the key of its starter, or of the line that opened it."""

    key: str
    channel: Channel


@dataclass(frozen=True)
class File:
    name: str
    content_type: str
    content: bytes
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True)
class Say:
    at: str
    where: Channel | Thread
    who: Person
    text: str
    key: str = ""
    reply_to: str = ""
    quoted: Quoted = Quoted.FULL
    mentions: tuple[Person, ...] = ()
    files: tuple[File, ...] = ()
    sticker: str = ""
    kind: Kind = Kind.DEFAULT
    note: str = ""
    expect: str = ""


@dataclass(frozen=True)
class Again:
    """Discord delivers a message a second time."""

    at: str
    key: str


@dataclass(frozen=True)
class Edit:
    at: str
    key: str
    text: str


@dataclass(frozen=True)
class Delete:
    at: str
    key: str


@dataclass(frozen=True)
class React:
    at: str
    key: str
    who: Person
    emoji: str
    added: bool = True


@dataclass(frozen=True)
class OpenThread:
    """On the message that the thread's key names, else on none, as people do from the channel's menu."""

    at: str
    thread: Thread
    who: Person
    name: str = ""
    """Left empty: the first line of the starter, as the bot names its threads."""


@dataclass(frozen=True)
class Post:
    """A forum post: its thread and its starter share one id."""

    at: str
    forum: Channel
    who: Person
    title: str
    text: str
    key: str
    files: tuple[File, ...] = ()
    note: str = ""
    expect: str = ""


Line = Say | Again | Edit | Delete | React | OpenThread | Post


@dataclass(frozen=True)
class Guild:
    name: str
    bot: Person
    people: tuple[Person, ...]
    channels: tuple[Channel, ...]
    roles: tuple[tuple[str, str], ...]
    """Id and name."""

    @property
    def id(self) -> str:
        """That of its role `@everyone`."""
        return self.roles[0][0]
