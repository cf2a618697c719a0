"""The events that a source of messages emits, live or recorded, in the order in which they were received."""

from __future__ import annotations

from dataclasses import dataclass

from model.messages import Attachment, Author, Message, Place


@dataclass(frozen=True, slots=True)
class Ready:
    """The session has begun. `bot_id`, `bot_name`: the bot's own user."""

    at: float
    bot_id: int
    bot_name: str


@dataclass(frozen=True, slots=True)
class PlaceSeen:
    """A channel or thread exists, or has changed."""

    at: float
    place: Place


@dataclass(frozen=True, slots=True)
class PlaceGone:
    """A channel or thread was deleted, with all that was written in it, and the threads of a channel too."""

    at: float
    place_id: int
    guild_id: int | None = None


@dataclass(frozen=True, slots=True)
class GuildGone:
    """The bot has left a guild, or was removed from it."""

    at: float
    guild_id: int


@dataclass(frozen=True, slots=True)
class Posted:
    """A message. `at`: when it was received; of a message fetched by catch-up, when it was written."""

    at: float
    message: Message
    quoted: Message | None = None
    """The message that it replies to, if Discord sent that along."""


@dataclass(frozen=True, slots=True)
class Edited:
    at: float
    channel_id: int
    message_id: int
    text: str | None
    """None: the text is not part of the change."""
    attachments: tuple[Attachment, ...] | None = None
    author_id: int = 0
    """0: the event does not name the author."""


@dataclass(frozen=True, slots=True)
class Deleted:
    at: float
    channel_id: int
    message_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reaction:
    at: float
    channel_id: int
    message_id: int
    user_id: int
    emoji: str
    added: bool
    is_bot: bool = False
    role_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Typing:
    """Somebody is typing. Discord's clients send this when it begins, and about every ten seconds while it lasts."""

    at: float
    channel_id: int
    author: Author
    """Without a name: nobody needs it."""


Event = Ready | PlaceSeen | PlaceGone | GuildGone | Posted | Edited | Deleted | Reaction | Typing
