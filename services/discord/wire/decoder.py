"""Gateway dispatches → events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from model.events import Deleted, Edited, Event, GuildGone, PlaceGone, PlaceSeen, Posted, Reaction, Ready
from model.messages import Place
from services.discord.dispatches import Dispatch
from services.discord.wire import payloads
from services.discord.wire.messages import attachments, display_name, from_wire, quoted_from_wire
from services.discord.wire.payloads import OddPayload, read
from services.discord.wire.places import GuildPlaces

log = logging.getLogger(__name__)

Payload = Mapping[str, object]


class Decoder:
    """Turns dispatches into events, in order.

    It remembers guilds and channels, because a thread's payload says neither whether its parent is a forum nor who can
    view it.
    """

    def __init__(self) -> None:
        self._places = GuildPlaces()
        self._by_type: dict[str, Callable[[float, Payload], Sequence[Event]]] = {
            "READY": _ready,
            "GUILD_CREATE": lambda at, d: _seen(at, self._places.guild(d)),
            "GUILD_DELETE": _guild_gone,
            "GUILD_ROLE_UPDATE": lambda at, d: _seen(at, self._places.role(d)),
            "CHANNEL_CREATE": self._place_seen,
            "CHANNEL_UPDATE": self._place_seen,
            "CHANNEL_DELETE": self._place_gone,
            "THREAD_CREATE": self._place_seen,
            "THREAD_UPDATE": self._place_seen,
            "THREAD_DELETE": self._place_gone,
            "MESSAGE_CREATE": _posted,
            "MESSAGE_UPDATE": _edited,
            "MESSAGE_DELETE": _deleted,
            "MESSAGE_DELETE_BULK": _deleted_in_bulk,
            "MESSAGE_REACTION_ADD": lambda at, d: _reaction(at, d, added=True),
            "MESSAGE_REACTION_REMOVE": lambda at, d: _reaction(at, d, added=False),
        }

    def decode(self, dispatch: Dispatch) -> Sequence[Event]:
        """The events of one dispatch; none for types that are not used.

        Never raises: an odd payload is logged without its content.
        """
        read_it = self._by_type.get(dispatch.t)
        if read_it is None:
            return ()
        try:
            return read_it(dispatch.at, dispatch.d)
        except OddPayload as odd:
            log.warning("ignored an odd %s: %s", dispatch.t, odd)
            return ()

    def place(self, payload: Payload) -> Place:
        """A fetched channel object, decoded and remembered like one from the gateway.

        Raises:
            OddPayload: it is no place to write in.
        """
        return self._places.seen(payload)[0]

    def _place_seen(self, at: float, d: Payload) -> Sequence[Event]:
        return _seen(at, self._places.seen(d))

    def _place_gone(self, at: float, d: Payload) -> Sequence[Event]:
        return (PlaceGone(at, self._places.gone(d)),)


def _seen(at: float, places: Sequence[Place]) -> Sequence[Event]:
    return tuple(PlaceSeen(at, each) for each in places)


def _ready(at: float, d: Payload) -> Sequence[Event]:
    user = read(payloads.ReadyUser, d).user
    return (Ready(at, user.id, display_name(user)),)


def _guild_gone(at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.Gone, d)
    # Unavailable: an outage at Discord, and the guild comes back.
    return () if sent.unavailable else (GuildGone(at, sent.id),)


def _posted(at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessagePayload, d)
    return (Posted(at, from_wire(sent), quoted_from_wire(sent)),)


def _edited(at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessageUpdate, d)
    files = None if sent.attachments is None else attachments(sent.attachments)
    return (Edited(at, sent.channel_id, sent.id, sent.content, files),)


def _deleted(at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessageDelete, d)
    return (Deleted(at, sent.channel_id, (sent.id,)),)


def _deleted_in_bulk(at: float, d: Payload) -> Sequence[Event]:
    sent = read(payloads.MessageDeleteBulk, d)
    return (Deleted(at, sent.channel_id, tuple(sent.ids)),)


def _reaction(at: float, d: Payload, *, added: bool) -> Sequence[Event]:
    sent = read(payloads.MessageReaction, d)
    emoji, member = sent.emoji, sent.member
    return (
        Reaction(
            at,
            sent.channel_id,
            sent.message_id,
            sent.user_id,
            # A custom emoji as REST names it, so that it is not taken for a standard one of that name.
            emoji=(emoji.name or "") if emoji.id is None else f"{emoji.name or ''}:{emoji.id}",
            added=added,
            is_bot=member is not None and member.user is not None and bool(member.user.bot),
            role_ids=None if member is None or member.roles is None else tuple(member.roles),
        ),
    )
