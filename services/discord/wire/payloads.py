"""What Discord sends, as far as we read it: every field that we do not name here is ignored.

Field names are Discord's own (API v10, "Resources" and "Gateway events").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

W = TypeVar("W", bound="Wire")

Snowflake = Annotated[int, Field(ge=0, lt=2**64)]
"""A 64-bit id, as a string or as a number."""


class OddPayload(ValueError):
    """A payload lacks what we need from it. The text names the field and what is wrong with it, nothing more."""


class Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", protected_namespaces=())


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
    referenced_message: object = None
    """Read only when it is asked for: it is a message of its own, and one that is odd must not spoil this one."""


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
    """A channel or a thread: Discord has one object for both."""

    id: Snowflake
    type: int
    name: str | None = None
    guild_id: Snowflake | None = None
    parent_id: Snowflake | None = None
    owner_id: Snowflake | None = None
    permission_overwrites: list[Overwrite] | None = None
    thread_metadata: ThreadMetadata | None = None
    available_tags: list[ForumTag] | None = None
    """Of a forum."""
    applied_tags: list[Snowflake] | None = None
    """Of a post."""


class RolePayload(Wire):
    id: Snowflake
    permissions: int


class Guild(Wire):
    id: Snowflake
    roles: list[RolePayload] | None = None
    channels: list[object] | None = None
    threads: list[object] | None = None


class GuildGonePayload(Wire):
    id: Snowflake
    unavailable: bool | None = None


class GuildRole(Wire):
    guild_id: Snowflake
    role: RolePayload


class ReadyUser(Wire):
    user: User


class Gone(Wire):
    """A channel or thread that was deleted."""

    id: Snowflake


def read(model: type[W], payload: object) -> W:
    """`payload` as a `model`.

    Raises:
        OddPayload: it is none.
    """
    try:
        return model.model_validate(payload if isinstance(payload, dict) else _as_dict(payload))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        # "from None": the original error prints the value it disliked, which may be what somebody wrote.
        kind = model.__name__.removesuffix("Payload")
        raise OddPayload(f"{kind}: {where or 'the payload'}: {first['type']}") from None


def _as_dict(payload: object) -> object:
    """Pydantic takes no other mappings for a model."""
    return dict(cast("Mapping[object, object]", payload)) if isinstance(payload, Mapping) else payload
