"""Discord's wire objects (API v10) → messages, places and events.

Live gateway, REST history, recordings and exports all come in through here. Unknown fields are ignored, ids may be
strings or numbers, and optional fields may be missing or null. An unusable payload raises `OddPayload`, whose text
names the field and never what somebody wrote.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clock import from_rfc3339
from model.events import Deleted, Edited, Event, GuildGone, PlaceGone, PlaceSeen, Posted, Reaction, Ready, Typing
from model.messages import Attachment, Author, Message, Place, PlaceKind, Reference, snowflake_time
from services.discord.dispatches import Dispatch

log = logging.getLogger(__name__)

# Discord's payloads, with the fields that are used; names are its own (API v10, "Resources" and "Gateway events")

W = TypeVar("W", bound="Wire")

_SURROGATE = re.compile("[\ud800-\udfff]")

Snowflake = Annotated[int, Field(ge=0, lt=2**63)]  # as a string or as a number; SQLite holds no more, until 2084


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
    edited_timestamp: str | None = None
    message_reference: MessageReference | None = None
    referenced_message: object = None  # decoded separately: an odd one must not spoil this message
    # Of these it is read only whether there are any.
    poll: object = None
    sticker_items: object = None
    message_snapshots: object = None


class MessageUpdate(Wire):
    id: Snowflake
    channel_id: Snowflake
    author: User | None = None
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
    nsfw: bool | None = None
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
    guild_id: Snowflake | None = None
    unavailable: bool | None = None


def without_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD: JSON allows them, but a text with one cannot be written as UTF-8."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def read(model: type[W], payload: object) -> W:
    """Validate `payload` as a `model`. Raises OddPayload: it does not fit."""
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


# Payloads → messages, places and events

CHANNEL_TYPES = frozenset({0, 2, 5, 13, 15, 16})
"""The channels in which people write or open posts: text, voice, announcement, stage, forum, media ("Channel types").

A forum or media channel has no messages of its own.
"""
FORUM_TYPES = frozenset({15, 16})
THREAD_TYPES = frozenset({10, 11, 12})
PRIVATE_THREAD = 12

ADMINISTRATOR = 1 << 3
VIEW_CHANNEL = 1 << 10
READ_MESSAGE_HISTORY = 1 << 16
CONNECT = 1 << 20
VOICE_TYPES = frozenset({2, 13})
"""Voice and stage: their texts are for whoever may also connect ("Text Channels in Voice" in Discord's help)."""


def _place_from_wire(
    sent: Channel, forums: Container[int], guild_id: int | None, tag_names: Mapping[int, str]
) -> Place:
    """`guild_id` is used where the payload has none."""
    is_thread = sent.type in THREAD_TYPES
    if not is_thread and sent.type not in CHANNEL_TYPES:
        raise OddPayload(f"Channel: type {sent.type} is no place to write in")
    kind = PlaceKind.CHANNEL
    if is_thread:
        is_post = sent.parent_id is not None and sent.parent_id in forums
        kind = PlaceKind.FORUM_POST if is_post else PlaceKind.THREAD
    state = sent.thread_metadata
    return Place(
        id=sent.id,
        kind=kind,
        name=without_surrogates(sent.name or ""),
        guild_id=sent.guild_id if sent.guild_id is not None else guild_id,
        # The parent of a channel is its category, in which nothing can be written.
        parent_id=sent.parent_id if is_thread else None,
        owner_id=sent.owner_id if is_thread else None,
        invited_only=sent.type == PRIVATE_THREAD,
        locked=state is not None and bool(state.locked),
        archived=state is not None and bool(state.archived),
        archived_at=None if state is None or not state.archived else _instant(state.archive_timestamp),
        tags=tuple(tag_names.get(tag, str(tag)) for tag in sent.applied_tags or ()) if is_thread else (),
    )


def _instant(written: str | None) -> float | None:
    try:
        return None if written is None else from_rfc3339(written)
    except (ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class _KnownPlace:
    """A place, and the permissions that its overwrite for `@everyone` allows and denies."""

    place: Place
    type: int
    allow: int = 0
    deny: int = 0
    restricted: bool = False  # to some age, or some role or member is shut out


def _needed_to_read(channel_type: int) -> int:
    """Return the permissions that reading what was written in a channel of this type takes."""
    needed = VIEW_CHANNEL | READ_MESSAGE_HISTORY
    return needed | CONNECT if channel_type in VOICE_TYPES else needed


class Decoder:
    """Turns dispatches into events, in order.

    It remembers the channels and threads of all guilds, a small record for each that is not archived: the payload of a
    thread does not say whether its parent is a forum, or who can view it.
    """

    def __init__(self) -> None:
        self._everyone: dict[int, int] = {}
        self._channels: dict[int, _KnownPlace] = {}
        self._threads: dict[int, _KnownPlace] = {}
        self._forums: set[int] = set()
        self._tags: dict[int, dict[int, str]] = {}  # by forum: the names of its tags

    def decode(self, dispatch: Dispatch) -> Sequence[Event]:
        """Return the events of one dispatch; none for types that are not used, or an odd payload, which is logged."""
        read_it = _READERS.get(dispatch.t)
        if read_it is None:
            return ()
        try:
            return read_it(self, dispatch.at, dispatch.d)
        except OddPayload as odd:
            log.warning("ignored an odd %s: %s", dispatch.t, odd)
            return ()

    def place(self, payload: Mapping[str, object]) -> Place:
        """Return a fetched channel, remembered like one of the gateway. Raises OddPayload: it is no place."""
        return self.update(payload)[0]

    def add_guild(self, payload: Mapping[str, object]) -> list[Place]:
        """Read GUILD_CREATE; returns its readable channels, then threads. An unreadable `@everyone` allows nothing."""
        sent = read(Guild, payload)
        if sent.roles:  # recordings have none
            self._everyone[sent.id] = 0
        for role in sent.roles or ():
            with suppress(OddPayload):
                self._learn_role(sent.id, read(RolePayload, role))
        return self._see_each((*(sent.channels or ()), *(sent.threads or ())), sent.id)

    def add_threads(self, payload: Mapping[str, object]) -> list[Place]:
        """Read THREAD_LIST_SYNC; returns the threads of a channel that the bot can view from now on."""
        sent = read(ThreadListSync, payload)
        return self._see_each(sent.threads, sent.guild_id)

    def _see_each(self, channels: Iterable[object], guild_id: int) -> list[Place]:
        seen: list[Place] = []
        for channel in channels:
            try:
                seen += self._see(read(Channel, channel), guild_id)[:1]
            except OddPayload as odd:
                log.debug("left out of guild %d: %s", guild_id, odd)
        return seen

    def update(self, payload: Mapping[str, object]) -> Sequence[Place]:
        """Read a channel or thread; returns it, then its known threads that became public or private with it. Raises
        OddPayload: it has no usable id or type, or people do not write in it (a category, a direct message).
        """
        return self._see(read(Channel, payload), None)

    def update_role(self, payload: Mapping[str, object]) -> Sequence[Place]:
        """Read GUILD_ROLE_UPDATE; returns the places that it makes public or private."""
        sent = read(GuildRole, payload)
        self._learn_role(sent.guild_id, sent.role)
        return [
            changed
            for known in (self._channels, self._threads)
            for each in list(known.values())
            if each.place.guild_id == sent.guild_id and (changed := self._update_visibility(known, each)) is not None
        ]

    def name_of(self, thread_id: int) -> str | None:
        known = self._threads.get(thread_id)
        return None if known is None else known.place.name

    def remove(self, payload: Mapping[str, object]) -> int:
        """Forget the channel or thread that was deleted; returns its id."""
        place_id = read(Gone, payload).id
        for known in (self._channels, self._threads):
            known.pop(place_id, None)
        self._forums.discard(place_id)
        self._tags.pop(place_id, None)
        return place_id

    def _learn_role(self, guild_id: int, role: RolePayload) -> None:
        if role.id == guild_id:  # the role of @everyone has the guild's id ("Permissions", Discord API reference)
            self._everyone[guild_id] = role.permissions

    def _see(self, sent: Channel, guild_id: int | None) -> list[Place]:
        if sent.type in FORUM_TYPES:
            self._forums.add(sent.id)
            self._tags[sent.id] = {tag.id: without_surrogates(tag.name or "") for tag in sent.available_tags or ()}
        tags = {} if sent.parent_id is None else self._tags.get(sent.parent_id, {})
        found = _place_from_wire(sent, self._forums, guild_id, tags)
        allow, deny, restricted = 0, 0, bool(sent.nsfw)
        for each in sent.permission_overwrites or ():
            if each.id == found.guild_id:
                allow, deny = each.allow, each.deny
            else:
                restricted = restricted or bool(each.deny & _needed_to_read(sent.type))
        known = _KnownPlace(found, sent.type, allow, deny, restricted)
        known = replace(known, place=self._with_readers(known))
        if not found.is_thread:
            before, self._channels[found.id] = self._channels.get(found.id), known
            if before is not None and _readers(before.place) == _readers(known.place):
                return [known.place]  # its threads are as public as they were
            threads = [each for each in self._threads.values() if each.place.parent_id == found.id]
            changed = [self._update_visibility(self._threads, each) for each in threads]
            return [known.place, *(each for each in changed if each is not None)]
        if found.archived:
            self._threads.pop(found.id, None)  # a new message unarchives it, and that event comes first
        else:
            self._threads[found.id] = known
        return [known.place]

    def _with_readers(self, known: _KnownPlace) -> Place:
        """Return the place with who can read it, by the permissions as they are known now."""
        found = known.place
        everyone = None if found.guild_id is None else self._everyone.get(found.guild_id)
        if known.type == PRIVATE_THREAD:
            return replace(found, public=False, viewable=False)
        if found.is_thread:
            parent = None if found.parent_id is None else self._channels.get(found.parent_id)
            if parent is None:  # if roles are known, it may be hidden, and shown
                return replace(found, public=everyone is None)
            return replace(found, public=parent.place.public, viewable=parent.place.viewable)
        if everyone is not None and everyone & ADMINISTRATOR:
            return replace(found, public=True, viewable=True)
        needed = _needed_to_read(known.type)
        # Recordings carry no roles: everybody sees what no overwrite hides.
        allowed = (needed if everyone is None else everyone) & ~known.deny | known.allow
        is_public = allowed & needed == needed and not known.restricted
        return replace(found, public=is_public, viewable=bool(allowed & VIEW_CHANNEL))

    def _update_visibility(self, known: dict[int, _KnownPlace], each: _KnownPlace) -> Place | None:
        place = self._with_readers(each)
        if _readers(place) == _readers(each.place):
            return None
        known[place.id] = replace(each, place=place)
        return place


def _readers(place: Place) -> tuple[bool, bool]:
    return place.public, place.viewable


USER_MESSAGE_TYPES = frozenset({0, 19})
"""DEFAULT and REPLY: the only types that people write ("Message types", Discord API reference).

All others are system messages here: announcements such as joins, pins and boosts, THREAD_STARTER_MESSAGE (21), which is
only a reference to the message that a thread was opened on, and answers of applications to commands (20 and 23).
"""

FORWARD = 1  # a message reference of this type copies a message from elsewhere; it answers nobody

Payload = Mapping[str, object]


def _ready(_: Decoder, at: float, d: Payload) -> Sequence[Event]:
    user = read(ReadyUser, d).user
    return (Ready(at, user.id, _display_name(user)),)


def _guild_gone(_: Decoder, at: float, d: Payload) -> Sequence[Event]:
    sent = read(Gone, d)
    # Unavailable: an outage at Discord, and the guild comes back.
    return () if sent.unavailable else (GuildGone(at, sent.id),)


def _posted(_: Decoder, at: float, d: Payload) -> Sequence[Event]:
    sent = read(MessagePayload, d)
    return (Posted(at, _from_wire(sent), _quoted_from_wire(sent)),)


def _edited(_: Decoder, at: float, d: Payload) -> Sequence[Event]:
    sent = read(MessageUpdate, d)
    files = None if sent.attachments is None else _attachments(sent.attachments)
    text = None if sent.content is None else without_surrogates(sent.content)
    return (Edited(at, sent.channel_id, sent.id, text, files, 0 if sent.author is None else sent.author.id),)


def _deleted(_: Decoder, at: float, d: Payload) -> Sequence[Event]:
    sent = read(MessageDelete, d)
    return (Deleted(at, sent.channel_id, (sent.id,)),)


def _deleted_in_bulk(_: Decoder, at: float, d: Payload) -> Sequence[Event]:
    sent = read(MessageDeleteBulk, d)
    return (Deleted(at, sent.channel_id, tuple(sent.ids)),)


def _reaction(at: float, d: Payload, *, added: bool) -> Sequence[Event]:
    sent = read(MessageReaction, d)
    emoji = sent.emoji
    name = without_surrogates(emoji.name or "")
    return (
        Reaction(
            at,
            sent.channel_id,
            sent.message_id,
            sent.user_id,
            # A custom emoji as REST names it, so that it is not taken for a standard one of that name.
            emoji=name if emoji.id is None else f"{name}:{emoji.id}",
            added=added,
            is_bot=_is_bot(sent.member),
            role_ids=_role_ids(sent.member),
        ),
    )


def _typing(_: Decoder, at: float, d: Payload) -> Sequence[Event]:
    sent = read(TypingStart, d)
    author = Author(sent.user_id, "", is_bot=_is_bot(sent.member), role_ids=_role_ids(sent.member))
    return (Typing(at, sent.channel_id, author),)


def _place_seen(decoder: Decoder, at: float, d: Payload) -> Sequence[Event]:
    return tuple(PlaceSeen(at, each) for each in decoder.update(d))


def _thread_changed(decoder: Decoder, at: float, d: Payload) -> Sequence[Event]:
    """A forum post of another name counts as an edit of its first message, which has the post's id."""
    before, seen = decoder.name_of(read(Gone, d).id), _place_seen(decoder, at, d)
    posts = (each.place for each in seen if isinstance(each, PlaceSeen) and each.place.kind is PlaceKind.FORUM_POST)
    return *seen, *(Edited(at, each.id, each.id, None) for each in posts if before not in {None, each.name})


def _place_gone(decoder: Decoder, at: float, d: Payload) -> Sequence[Event]:
    return (PlaceGone(at, decoder.remove(d), read(Gone, d).guild_id),)


_READERS: Mapping[str, Callable[[Decoder, float, Payload], Sequence[Event]]] = {
    "READY": _ready,
    "GUILD_CREATE": lambda decoder, at, d: tuple(PlaceSeen(at, each) for each in decoder.add_guild(d)),
    "GUILD_DELETE": _guild_gone,
    "THREAD_LIST_SYNC": lambda decoder, at, d: tuple(PlaceSeen(at, each) for each in decoder.add_threads(d)),
    "GUILD_ROLE_UPDATE": lambda decoder, at, d: tuple(PlaceSeen(at, each) for each in decoder.update_role(d)),
    "CHANNEL_CREATE": _place_seen,
    "CHANNEL_UPDATE": _place_seen,
    "CHANNEL_DELETE": _place_gone,
    "THREAD_CREATE": _place_seen,
    "THREAD_UPDATE": _thread_changed,
    "THREAD_DELETE": _place_gone,
    "MESSAGE_CREATE": _posted,
    "MESSAGE_UPDATE": _edited,
    "MESSAGE_DELETE": _deleted,
    "MESSAGE_DELETE_BULK": _deleted_in_bulk,
    "MESSAGE_REACTION_ADD": lambda _, at, d: _reaction(at, d, added=True),
    "MESSAGE_REACTION_REMOVE": lambda _, at, d: _reaction(at, d, added=False),
    "TYPING_START": _typing,
}
USED_TYPES = frozenset(_READERS)  # a recorder writes no other types


def read_message(payload: Payload) -> Message:
    """Decode a message of the gateway or of REST. Raises OddPayload: it has no usable id, channel or author."""
    return _from_wire(read(MessagePayload, payload))


def read_quoted_message(payload: Payload) -> Message | None:
    """Decode the message that `payload` replies to; None: Discord did not send it, or it cannot be read."""
    return _quoted_from_wire(read(MessagePayload, payload))


def _from_wire(sent: MessagePayload) -> Message:
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
        text=without_surrogates(sent.content or ""),
        at=snowflake_time(sent.id),
        guild_id=sent.guild_id,
        is_system=sent.type is not None and sent.type not in USER_MESSAGE_TYPES,
        reply_to=None if sent.message_reference is None else _reply_to(sent, sent.message_reference),
        # Most messages have neither: this is the hot path of a replay.
        mentions=_mentions(sent.mentions) if sent.mentions else (),
        attachments=_attachments(sent.attachments) if sent.attachments else (),
        edited_at=_instant(sent.edited_timestamp),
        has_unread_parts=bool(sent.poll or sent.sticker_items or sent.message_snapshots),
    )


def _quoted_from_wire(sent: MessagePayload) -> Message | None:
    if sent.referenced_message is None:
        return None
    try:
        inner = read(MessagePayload, sent.referenced_message)
    except OddPayload:
        return None
    if inner.guild_id is None:
        # Discord leaves the guild out of quoted messages; a reply stays within its guild.
        inner.guild_id = sent.guild_id
    return _from_wire(inner)


def _display_name(user: User, member: Member | None = None) -> str:
    """Return the name that people see: the nickname in the guild, else the account's display name, else its handle."""
    return without_surrogates((member.nick if member else None) or user.global_name or user.username or str(user.id))


def _is_bot(member: Member | None) -> bool:
    return member is not None and member.user is not None and bool(member.user.bot)


def _role_ids(member: Member | None) -> tuple[int, ...] | None:
    return None if member is None or member.roles is None else tuple(member.roles)


def _attachments(sent: Iterable[AttachmentPayload]) -> tuple[Attachment, ...]:
    return tuple(
        Attachment(
            id=file.id,
            filename=without_surrogates(file.filename or "file"),
            size=max(file.size or 0, 0),
            url=without_surrogates(file.url or ""),
            content_type=None if file.content_type is None else without_surrogates(file.content_type),
        )
        for file in sent
    )


def _mentions(sent: Iterable[MentionPayload]) -> tuple[tuple[int, str], ...]:
    return tuple((user.id, _display_name(user, user.member)) for user in sent)


def _reply_to(sent: MessagePayload, reference: MessageReference) -> Reference | None:
    if reference.message_id is None or reference.type == FORWARD:
        return None
    # Absent: Discord did not look. Null: it looked, and the message is gone ("Message object", referenced_message).
    gone = sent.referenced_message is None and "referenced_message" in sent.model_fields_set
    return Reference(reference.message_id, reference.channel_id or sent.channel_id, gone=gone)
