"""Pydantic models of Discord's payloads, with the fields that are used; others are ignored.

Names are Discord's own (API v10, "Resources" and "Gateway events").
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

W = TypeVar("W", bound="Wire")

_SURROGATE = re.compile("[\ud800-\udfff]")

Snowflake = Annotated[int, Field(ge=0, lt=2**64)]  # a 64-bit id, as a string or as a number


class OddPayload(ValueError):
    """A payload is unusable. The text names the field and what is wrong with it, never its value."""


class Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", protected_namespaces=(), defer_build=True)


class User(Wire):
    id: Snowflake
    username: str | None = None
    global_name: str | None = None
    bot: bool | None = None


class Member(Wire):
    nick: str | None = None
    roles: list[Snowflake] | None = None
    user: User | None = None


class MentionPayload(User):
    member: Member | None = None


class AttachmentPayload(Wire):
    id: Snowflake
    filename: str | None = None
    size: int | None = None
    url: str | None = None
    content_type: str | None = None


class MessageReference(Wire):
    type: int | None = None
    message_id: Snowflake | None = None
    channel_id: Snowflake | None = None


class MessagePayload(Wire):
    id: Snowflake
    channel_id: Snowflake
    author: User
    type: int | None = None
    guild_id: Snowflake | None = None
    webhook_id: Snowflake | None = None
    content: str | None = None
    member: Member | None = None
    mentions: list[MentionPayload] | None = None
    attachments: list[AttachmentPayload] | None = None
    message_reference: MessageReference | None = None
    referenced_message: object = None  # decoded separately: an odd one must not spoil this message


class MessageUpdate(Wire):
    id: Snowflake
    channel_id: Snowflake
    content: str | None = None
    attachments: list[AttachmentPayload] | None = None


class MessageDelete(Wire):
    id: Snowflake
    channel_id: Snowflake


class MessageDeleteBulk(Wire):
    ids: list[Snowflake]
    channel_id: Snowflake


class Emoji(Wire):
    id: Snowflake | None = None
    name: str | None = None


class MessageReaction(Wire):
    user_id: Snowflake
    channel_id: Snowflake
    message_id: Snowflake
    emoji: Emoji
    member: Member | None = None


class TypingStart(Wire):
    channel_id: Snowflake
    user_id: Snowflake
    member: Member | None = None


class Overwrite(Wire):
    id: Snowflake
    allow: int = 0
    deny: int = 0


class ThreadMetadata(Wire):
    archived: bool | None = None
    locked: bool | None = None
    archive_timestamp: str | None = None


class ForumTag(Wire):
    id: Snowflake
    name: str | None = None


class Channel(Wire):
    """A channel or a thread: Discord has one object for both. A forum has available tags, a post has applied ones."""

    id: Snowflake
    type: int
    name: str | None = None
    guild_id: Snowflake | None = None
    parent_id: Snowflake | None = None
    owner_id: Snowflake | None = None
    permission_overwrites: list[Overwrite] | None = None
    thread_metadata: ThreadMetadata | None = None
    available_tags: list[ForumTag] | None = None
    applied_tags: list[Snowflake] | None = None


class RolePayload(Wire):
    id: Snowflake
    permissions: int


class Guild(Wire):
    id: Snowflake
    roles: list[object] | None = None
    channels: list[object] | None = None
    threads: list[object] | None = None


class ThreadListSync(Wire):
    guild_id: Snowflake
    threads: list[object]


class GuildRole(Wire):
    guild_id: Snowflake
    role: RolePayload


class ReadyUser(Wire):
    user: User


class Gone(Wire):
    """A guild, channel or thread that was deleted; a guild may also be unavailable for a while."""

    id: Snowflake
    unavailable: bool | None = None


def encodable(text: str) -> str:
    """`text` with U+FFFD for each half of a surrogate pair, which JSON allows and no file or answer can hold."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def read(model: type[W], payload: object) -> W:
    """`payload` as a `model`.

    Raises:
        OddPayload: it is none.
    """
    try:
        # Pydantic takes no mapping but a dict for a model.
        mapping = not isinstance(payload, dict) and isinstance(payload, Mapping)
        return model.model_validate(dict(cast("Mapping[object, object]", payload)) if mapping else payload)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        # "from None": the original error prints the value, which may be what somebody wrote.
        kind = model.__name__.removesuffix("Payload")
        raise OddPayload(f"{kind}: {where or 'the payload'}: {first['type']}") from None
