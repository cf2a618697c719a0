"""One message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.messages import Attachment, Author, Message, Reference, snowflake_time
from services.discord.wire import payloads
from services.discord.wire.payloads import OddPayload, read

PEOPLES_TYPES = frozenset({0, 19})
"""DEFAULT and REPLY: the only types that people write ("Message types", Discord API reference).

All others are system messages here: announcements such as joins, pins and boosts, THREAD_STARTER_MESSAGE (21), which is
only a reference to the message that a thread was opened on, and answers of applications to commands (20 and 23).
"""

FORWARD = 1
"""A message reference of this type copies a message from elsewhere; it answers nobody."""


def message(payload: Mapping[str, object]) -> Message:
    """A message object, from the gateway or from REST.

    Raises:
        OddPayload: it has no usable id, channel or author.
    """
    return from_wire(read(payloads.MessagePayload, payload))


def quoted(payload: Mapping[str, object]) -> Message | None:
    """The message that `payload` replies to, where Discord sent it along and it can be read."""
    return quoted_from_wire(read(payloads.MessagePayload, payload))


def from_wire(sent: payloads.MessagePayload) -> Message:
    author, member = sent.author, sent.member
    return Message(
        id=sent.id,
        channel_id=sent.channel_id,
        author=Author(
            id=author.id,
            name=display_name(author, member),
            is_bot=bool(author.bot) or sent.webhook_id is not None,
            role_ids=None if member is None or member.roles is None else tuple(member.roles),
        ),
        text=sent.content or "",
        at=snowflake_time(sent.id),
        guild_id=sent.guild_id,
        is_system=sent.type is not None and sent.type not in PEOPLES_TYPES,
        reply_to=None if sent.message_reference is None else _reply_to(sent, sent.message_reference),
        # Most messages have neither: this is the hot path of a replay.
        mentions=_mentions(sent.mentions) if sent.mentions else (),
        attachments=attachments(sent.attachments) if sent.attachments else (),
    )


def quoted_from_wire(sent: payloads.MessagePayload) -> Message | None:
    if sent.referenced_message is None:
        return None
    try:
        inner = read(payloads.MessagePayload, sent.referenced_message)
    except OddPayload:
        return None
    if inner.guild_id is None:
        # Discord leaves the guild out of quoted messages; a reply stays within its guild.
        inner.guild_id = sent.guild_id
    return from_wire(inner)


def display_name(user: payloads.User, member: payloads.Member | None = None) -> str:
    """The name that people see: of the guild, else of the account, else the account's handle."""
    return (member.nick if member else None) or user.global_name or user.username or str(user.id)


def attachments(sent: Iterable[payloads.AttachmentPayload]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            id=file.id,
            filename=file.filename or "file",
            size=max(file.size or 0, 0),
            url=file.url or "",
            content_type=file.content_type,
        )
        for file in sent
    )


def _mentions(sent: Iterable[payloads.MentionPayload]) -> tuple[tuple[int, str], ...]:
    return tuple((user.id, display_name(user, user.member)) for user in sent)


def _reply_to(sent: payloads.MessagePayload, reference: payloads.MessageReference) -> Reference | None:
    if reference.message_id is None or reference.type == FORWARD:
        return None
    # Absent: Discord did not look. Null: it looked, and the message is gone ("Message object", referenced_message).
    gone = sent.referenced_message is None and "referenced_message" in sent.model_fields_set
    return Reference(reference.message_id, reference.channel_id or sent.channel_id, gone=gone)
