"""The JSON that DiscordChatExporter writes → the dispatches of a recording of that channel.

One file is one channel or thread: `guild`, `channel` and, in order of time, `messages`. It has no joins, edits or
deletions: each message is a MESSAGE_CREATE at the time it was written, with its text as of the export. Most mentions in
the text are names there, and become Discord's notation again.

A thread names its parent as its category and does not say whether that is a forum. It is one if the message that has
the thread's own id is in the thread: the starter of a forum post is, that of another thread is in the channel.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, TextIO, cast

import ijson  # pyright: ignore[reportMissingTypeStubs] (it has no types)
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from model.messages import snowflake_time
from services.discord.dispatches import Dispatch
from services.discord.wire import FORWARD, THREAD_TYPES

log = logging.getLogger(__name__)

CHANNEL_TYPES = {
    "GuildTextChat": 0,
    "DirectTextChat": 1,
    "GuildVoiceChat": 2,
    "DirectGroupTextChat": 3,
    "GuildCategory": 4,
    "GuildNews": 5,
    "GuildNewsThread": 10,
    "GuildPublicThread": 11,
    "GuildPrivateThread": 12,
    "GuildStageVoice": 13,
    "GuildDirectory": 14,
    "GuildForum": 15,
    "GuildMedia": 16,
}
"""The exporter's names of Discord's channel types; it writes a type that it has no name for as its number."""
DIRECT_TYPES = frozenset({1, 3})
FORUM, TEXT = 15, 0

MESSAGE_TYPES = {"Default": 0, "Reply": 19}
OTHER_MESSAGE_TYPE = 7  # for every other name (GuildMemberJoin, ChannelPinnedMessage, …): system messages

MAX_TYPE_DIGITS = 9  # of a type that is a number; of thousands of digits Python makes none
MAX_OPEN_BRACKETS = 16_000  # brackets of one value that are not closed yet
MAX_VALUE_CHARS = 1 << 24
"""Characters from one message to the next. A message has a few thousand: a file with more is no export."""

Id = Annotated[int, Field(ge=0, lt=2**64)]


class NotAnExport(ValueError):
    """The text says why the file cannot be read as an export."""


class PrivateExport(ValueError):
    """An export of direct messages, which must not become public knowledge."""


class _Exported(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, extra="ignore", defer_build=True)


class _WithId(_Exported):
    id: Id


class _Guild(_WithId):
    name: str | None = None


class _Channel(_WithId):
    type: str | int
    name: str | None = None
    category_id: Id | None = None
    category: str | None = None


class _User(_WithId):
    name: str | None = None
    nickname: str | None = None
    is_bot: bool | None = None
    roles: list[_WithId] | None = None


class _Attachment(_WithId):
    url: str | None = None
    filename: str | None = Field(default=None, validation_alias="fileName")
    size: int | None = Field(default=None, validation_alias="fileSizeBytes")


class _Reference(_Exported):
    message_id: Id | None = None
    channel_id: Id | None = None


class _Embed(_Exported):
    url: str | None = None


class _Message(_WithId):
    author: _User
    type: str | int = "Default"
    timestamp: str | None = None
    timestamp_edited: str | None = None
    content: str | None = None
    attachments: list[_Attachment] | None = None
    mentions: list[_User] | None = None
    reference: _Reference | None = None
    forwarded_message: object = None
    stickers: list[object] | None = None
    embeds: list[_Embed] | None = None

    @property
    def has_unread_parts(self) -> bool:
        """True if people see more than its text and files. A preview of a link in the text adds nothing."""
        has_embeds = any(not each.url or each.url not in (self.content or "") for each in self.embeds or ())
        return has_embeds or bool(self.stickers) or self.forwarded_message is not None


class Export:
    """One exported file, whose header was read. `ends_early`: True once reading has come to something malformed.

    Raises:
        NotAnExport: it does not have the exporter's top-level keys.
        PrivateExport: it holds direct messages.
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ends_early = False
        header = _header(path)
        try:
            self._guild = _Guild.model_validate(header.get("guild"))
            self._channel = _Channel.model_validate(header.get("channel"))
        except ValidationError:
            raise NotAnExport("its top level has no readable `guild` and `channel`") from None
        self._type = _type_number(self._channel.type, CHANNEL_TYPES, TEXT)
        if self._type in DIRECT_TYPES:
            raise PrivateExport("holds direct messages, which are private; export a channel of a server instead")

    def dispatches(self) -> Iterator[Dispatch]:
        """Yield a GUILD_CREATE with the channel, then the messages in order of id; nothing if there are no messages.

        Messages are read one by one. Only a file that is not in order of id (the exporter can write the newest first)
        is sorted in memory.
        """
        first: _Message | None = None
        newest, ordered = -1, True
        for each in self._messages(report=False):
            first = each if first is None or each.id < first.id else first
            ordered = ordered and newest < each.id
            newest = each.id
        if first is None:
            return
        yield Dispatch(snowflake_time(first.id), "GUILD_CREATE", self._guild_create(first))
        messages: Iterable[_Message] = self._messages(report=True)
        for each in messages if ordered else sorted(messages, key=lambda message: message.id):
            yield Dispatch(snowflake_time(each.id), "MESSAGE_CREATE", self._message_create(each))

    def _messages(self, *, report: bool) -> Iterator[_Message]:
        number = 0
        with self.path.open(encoding="utf-8-sig", errors="replace") as file:
            source = _BoundedFile(file)
            # Numbers as `float` or 64-bit `int`: ijson 3.6's C reader crashes on an `int` of more than 4,300 digits.
            elements = cast("Iterator[object]", ijson.items(source, "messages.item", use_float=True))
            try:
                for number, element in enumerate(elements, 1):
                    source.next_value()
                    try:
                        yield _Message.model_validate(element)
                    except ValidationError as error:
                        wrong = ".".join(str(step) for step in error.errors(include_input=False)[0]["loc"])
                        odd = f"`{wrong}` is odd" if wrong else "it is no object"
                        if report:
                            log.warning("%s, message %d: skipped, %s", self.path, number, odd)
            except (ijson.JSONError, ValueError) as error:
                self.ends_early = True
                if report:
                    log.warning("%s ends early, after message %d: %s", self.path, number, _reason(error))

    def _guild_create(self, first: _Message) -> dict[str, object]:
        channel, guild_id = self._channel, str(self._guild.id)
        here: dict[str, object] = {
            "id": str(channel.id),
            "type": self._type,
            "name": channel.name or "",
            "guild_id": guild_id,
        }
        channels, threads = [here], list[dict[str, object]]()
        if self._type in THREAD_TYPES and channel.category_id is not None:
            here["parent_id"] = str(channel.category_id)
            is_post = first.id == channel.id
            if is_post:
                # The author of the starter owns the post: Discord makes both at once.
                here["owner_id"] = str(first.author.id)
            parent = {"id": here["parent_id"], "type": FORUM if is_post else TEXT, "guild_id": guild_id}
            channels, threads = [{**parent, "name": channel.category or ""}], [here]
        return {"id": guild_id, "name": self._guild.name or "", "channels": channels, "threads": threads}

    def _message_create(self, exported: _Message) -> dict[str, object]:
        author = exported.author
        sent: dict[str, object] = {
            "id": str(exported.id),
            "type": _type_number(exported.type, MESSAGE_TYPES, OTHER_MESSAGE_TYPE),
            "guild_id": str(self._guild.id),
            "channel_id": str(self._channel.id),
            "author": {"id": str(author.id), "username": author.name or "", "bot": bool(author.is_bot)},
            "content": _with_mentions(exported.content or "", exported.mentions or ()),
            "timestamp": exported.timestamp,
            "edited_timestamp": exported.timestamp_edited,
            "attachments": [file.model_dump() for file in exported.attachments or ()],
            "sticker_items": [{}] if exported.has_unread_parts else [],  # of what sort they are does not matter
            "mentions": [
                {"id": str(user.id), "username": user.name or "", "member": {"nick": user.nickname}}
                for user in exported.mentions or ()
            ],
        }
        member: dict[str, object] = {"nick": author.nickname}
        if author.roles is not None:
            member["roles"] = [str(role.id) for role in author.roles]
        sent["member"] = member
        reference = exported.reference
        if reference is not None and reference.message_id is not None:
            sent["message_reference"] = {
                "type": 0 if exported.forwarded_message is None else FORWARD,
                "message_id": str(reference.message_id),
                "channel_id": str(reference.channel_id or self._channel.id),
                "guild_id": str(self._guild.id),
            }
        return sent


def _with_mentions(text: str, mentioned: Iterable[_User]) -> str:
    """Put mentions by name into Discord's notation again, which shows where a name ends."""
    ids = {name: user.id for user in mentioned if (name := user.nickname or user.name)}
    names = "|".join(map(re.escape, sorted(ids, key=len, reverse=True)))
    return re.sub(f"@({names})", lambda found: f"<@{ids[found[1]]}>", text) if ids else text


class _TooLarge(ValueError):
    pass


class _BoundedFile:
    """A file as ijson reads it, which refuses values that are too large, or open too many brackets.

    ijson takes quadratic time for nesting: 90,000 levels take a minute. Brackets in texts count as well, but no message
    of Discord holds that many. Text rather than the file's bytes, since ijson accepts neither a byte order mark nor
    bytes that are not UTF-8.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.next_value()

    def next_value(self) -> None:
        self._room, self._open = MAX_VALUE_CHARS, 0

    def read(self, size: int) -> bytes:
        text = self._file.read(size)
        self._room -= len(text)
        self._open += text.count("[") + text.count("{") - text.count("]") - text.count("}")
        if self._room < 0 or self._open > MAX_OPEN_BRACKETS:
            raise _TooLarge
        return text.encode()


def _header(path: Path) -> dict[str, object]:
    """Return everything before `messages`."""
    builder = ijson.ObjectBuilder()
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        events = cast("Iterator[tuple[str, str, object]]", ijson.parse(_BoundedFile(file), use_float=True))
        try:
            for prefix, event, value in events:
                if (prefix, event) == ("messages", "start_array"):
                    return cast("dict[str, object]", builder.value)
                builder.event(event, value)  # pyright: ignore[reportUnknownMemberType] (as above)
        except (ijson.JSONError, ValueError) as error:
            raise NotAnExport(f"it is not JSON: {_reason(error)}") from None
    raise NotAnExport("its top level has no `messages` after `guild` and `channel`")


def _reason(error: Exception) -> str:
    """Describe an error of ijson in other words: its own text contains a piece of the document."""
    return "a value is too large" if isinstance(error, _TooLarge) else "a value is cut off or malformed"


def _type_number(name: str | int, names: dict[str, int], otherwise: int) -> int:
    if isinstance(name, int) or (name.isdecimal() and len(name) <= MAX_TYPE_DIGITS):
        return int(name)
    return names.get(name, otherwise)
