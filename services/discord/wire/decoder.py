"""Gateway dispatches → events, and message objects → messages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from model.events import Deleted, Edited, Event, GuildGone, PlaceGone, PlaceSeen, Posted, Reaction, Ready, Typing
from model.messages import Attachment, Author, Message, Place, Reference, snowflake_time
from services.discord.dispatches import Dispatch
from services.discord.wire import payloads
from services.discord.wire.payloads import OddPayload, encodable, read
from services.discord.wire.places import GuildPlaces

log = logging.getLogger(__name__)

PEOPLES_TYPES = frozenset({0, 19})
"""DEFAULT and REPLY: the only types that people write ("Message types", Discord API reference).

All others are system messages here: announcements such as joins, pins and boosts, THREAD_STARTER_MESSAGE (21), which is
only a reference to the message that a thread was opened on, and answers of applications to commands (20 and 23).
"""

FORWARD = 1  # a message reference of this type copies a message from elsewhere; it answers nobody

Payload = Mapping[str, object]


class Decoder:
    """Turns dispatches into events, in order.

    It remembers guilds and channels, because a thread's payload says neither whether its parent is a forum nor who can
    view it.
    """

    def __init__(self) -> None:
        self._places = GuildPlaces()

    def decode(self, dispatch: Dispatch) -> Sequence[Event]:
        """The events of one dispatch; none for types that are not used.

        Never raises: an odd payload is logged without its content.
        """
        read_it = _READERS.get(dispatch.t)
        if read_it is None:
            return ()
        try:
            return read_it(self._places, dispatch.at, dispatch.d)
        except OddPayload as odd:
            log.warning("ignored an odd %s: %s", dispatch.t, odd)
            return ()

    def place(self, payload: Payload) -> Place:
        """A fetched channel object, decoded and remembered like one from the gateway.

        Raises:
            OddPayload: it is no place to write in.
        """
        return self._places.seen(payload)[0]


def _ready(_: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    user = read(payloads.ReadyUser, d).user
    return (Ready(at, user.id, _display_name(user)),)


def _guild_gone(_: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.Gone, d)
    # Unavailable: an outage at Discord, and the guild comes back.
    return () if sent.unavailable else (GuildGone(at, sent.id),)


def _posted(_: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessagePayload, d)
    return (Posted(at, _from_wire(sent), _quoted_from_wire(sent)),)


def _edited(_: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessageUpdate, d)
    files = None if sent.attachments is None else _attachments(sent.attachments)
    text = None if sent.content is None else encodable(sent.content)
    return (Edited(at, sent.channel_id, sent.id, text, files),)


def _deleted(_: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessageDelete, d)
    return (Deleted(at, sent.channel_id, (sent.id,)),)


def _deleted_in_bulk(_: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessageDeleteBulk, d)
    return (Deleted(at, sent.channel_id, tuple(sent.ids)),)


def _reaction(at: float, d: Payload, *, added: bool) -> Sequence[Event]:
    sent = read(payloads.MessageReaction, d)
    emoji = sent.emoji
    return (
        Reaction(
            at,
            sent.channel_id,
            sent.message_id,
            sent.user_id,
            # A custom emoji as REST names it, so that it is not taken for a standard one of that name.
            emoji=encodable(emoji.name or "") if emoji.id is None else f"{encodable(emoji.name or '')}:{emoji.id}",
            added=added,
            is_bot=_is_bot(sent.member),
            role_ids=_role_ids(sent.member),
        ),
    )


def _typing(_: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.TypingStart, d)
    author = Author(sent.user_id, "", is_bot=_is_bot(sent.member), role_ids=_role_ids(sent.member))
    return (Typing(at, sent.channel_id, author),)


def _place_seen(places: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    return tuple(PlaceSeen(at, each) for each in places.seen(d))


def _place_gone(places: GuildPlaces, at: float, d: Payload) -> Sequence[Event]:
    return (PlaceGone(at, places.gone(d)),)


_READERS: Mapping[str, Callable[[GuildPlaces, float, Payload], Sequence[Event]]] = {
    "READY": _ready,
    "GUILD_CREATE": lambda places, at, d: tuple(PlaceSeen(at, each) for each in places.guild(d)),
    "GUILD_DELETE": _guild_gone,
    "GUILD_ROLE_UPDATE": lambda places, at, d: tuple(PlaceSeen(at, each) for each in places.role(d)),
    "CHANNEL_CREATE": _place_seen,
    "CHANNEL_UPDATE": _place_seen,
    "CHANNEL_DELETE": _place_gone,
    "THREAD_CREATE": _place_seen,
    "THREAD_UPDATE": _place_seen,
    "THREAD_DELETE": _place_gone,
    "MESSAGE_CREATE": _posted,
    "MESSAGE_UPDATE": _edited,
    "MESSAGE_DELETE": _deleted,
    "MESSAGE_DELETE_BULK": _deleted_in_bulk,
    "MESSAGE_REACTION_ADD": lambda _, at, d: _reaction(at, d, added=True),
    "MESSAGE_REACTION_REMOVE": lambda _, at, d: _reaction(at, d, added=False),
    "TYPING_START": _typing,
}
USED_TYPES = frozenset(_READERS)  # the types that are used, and so the only ones that a recorder writes


def message(payload: Payload) -> Message:
    """A message object, from the gateway or from REST.

    Raises:
        OddPayload: it has no usable id, channel or author.
    """
    return _from_wire(read(payloads.MessagePayload, payload))


def quoted(payload: Payload) -> Message | None:
    """The message that `payload` replies to, where Discord sent it along and it can be read."""
    return _quoted_from_wire(read(payloads.MessagePayload, payload))


def _from_wire(sent: payloads.MessagePayload) -> Message:
    author, member = sent.author, sent.member
    return Message(
        id=sent.id,
        channel_id=sent.channel_id,
        author=Author(
            id=author.id,
            name=_display_name(author, member),
            is_bot=bool(author.bot) or sent.webhook_id is not None,
            role_ids=_role_ids(member),
        ),
        text=encodable(sent.content or ""),
        at=snowflake_time(sent.id),
        guild_id=sent.guild_id,
        is_system=sent.type is not None and sent.type not in PEOPLES_TYPES,
        reply_to=None if sent.message_reference is None else _reply_to(sent, sent.message_reference),
        # Most messages have neither: this is the hot path of a replay.
        mentions=_mentions(sent.mentions) if sent.mentions else (),
        attachments=_attachments(sent.attachments) if sent.attachments else (),
    )


def _quoted_from_wire(sent: payloads.MessagePayload) -> Message | None:
    if sent.referenced_message is None:
        return None
    try:
        inner = read(payloads.MessagePayload, sent.referenced_message)
    except OddPayload:
        return None
    if inner.guild_id is None:
        # Discord leaves the guild out of quoted messages; a reply stays within its guild.
        inner.guild_id = sent.guild_id
    return _from_wire(inner)


def _display_name(user: payloads.User, member: payloads.Member | None = None) -> str:
    """The name that people see: of the guild, else of the account, else the account's handle."""
    return encodable((member.nick if member else None) or user.global_name or user.username or str(user.id))


def _is_bot(member: payloads.Member | None) -> bool:
    return member is not None and member.user is not None and bool(member.user.bot)


def _role_ids(member: payloads.Member | None) -> tuple[int, ...] | None:
    return None if member is None or member.roles is None else tuple(member.roles)


def _attachments(sent: Iterable[payloads.AttachmentPayload]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            id=file.id,
            filename=encodable(file.filename or "file"),
            size=max(file.size or 0, 0),
            url=encodable(file.url or ""),
            content_type=None if file.content_type is None else encodable(file.content_type),
        )
        for file in sent
    )


def _mentions(sent: Iterable[payloads.MentionPayload]) -> tuple[tuple[int, str], ...]:
    return tuple((user.id, _display_name(user, user.member)) for user in sent)


def _reply_to(sent: payloads.MessagePayload, reference: payloads.MessageReference) -> Reference | None:
    if reference.message_id is None or reference.type == FORWARD:
        return None
    # Absent: Discord did not look. Null: it looked, and the message is gone ("Message object", referenced_message).
    gone = sent.referenced_message is None and "referenced_message" in sent.model_fields_set
    return Reference(reference.message_id, reference.channel_id or sent.channel_id, gone=gone)
