"""Channels, threads and forum posts, and whether `@everyone` can view them."""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from clock import from_rfc3339
from model.messages import Place, PlaceKind
from services.discord.wire import payloads
from services.discord.wire.payloads import OddPayload, encodable, read

log = logging.getLogger(__name__)

CHANNEL_TYPES = frozenset({0, 2, 5, 13, 15, 16})
"""Text, voice, announcement, stage, forum, media: where people write, or open posts ("Channel types").

A forum or media channel has no messages of its own.
"""
FORUM_TYPES = frozenset({15, 16})
THREAD_TYPES = frozenset({10, 11, 12})
PRIVATE_THREAD = 12

ADMINISTRATOR = 1 << 3
VIEW_CHANNEL = 1 << 10


def _from_wire(
    sent: payloads.Channel, forums: Container[int], guild_id: int | None, tag_names: Mapping[int, str]
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
        name=encodable(sent.name or ""),
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
class _Known:
    """A place, and what the channel's overwrite for `@everyone` allows and denies."""

    place: Place
    type: int
    allow: int = 0
    deny: int = 0


class GuildPlaces:
    """Remembers the channels and threads of all guilds, to tell forum posts from threads and public places from private
    ones.

    Memory: one small record for each channel and each thread that is not archived.
    """

    def __init__(self) -> None:
        self._everyone: dict[int, int] = {}
        self._channels: dict[int, _Known] = {}
        self._threads: dict[int, _Known] = {}
        self._forums: set[int] = set()
        self._tags: dict[int, dict[int, str]] = {}  # by forum: the names of its tags

    def guild(self, payload: Mapping[str, object]) -> list[Place]:
        """GUILD_CREATE: its channels, then its threads. Those that cannot be read are left out."""
        sent = read(payloads.Guild, payload)
        for role in sent.roles or ():
            self._learn_role(sent.id, role)
        seen: list[Place] = []
        for channel in (*(sent.channels or ()), *(sent.threads or ())):
            try:
                seen += self._see(read(payloads.Channel, channel), sent.id)[:1]
            except OddPayload as odd:
                log.debug("left out of guild %d: %s", sent.id, odd)
        return seen

    def seen(self, payload: Mapping[str, object]) -> Sequence[Place]:
        """A channel or thread as it is now, then those of its known threads that have changed with it.

        Raises:
            OddPayload: it has no usable id or type, or people do not write in it (a category, a direct message).
        """
        return self._see(read(payloads.Channel, payload), None)

    def role(self, payload: Mapping[str, object]) -> Sequence[Place]:
        """GUILD_ROLE_UPDATE: the places that it makes public or private."""
        sent = read(payloads.GuildRole, payload)
        self._learn_role(sent.guild_id, sent.role)
        return [
            changed
            for known in (self._channels, self._threads)
            for each in list(known.values())
            if each.place.guild_id == sent.guild_id and (changed := self._rejudged(known, each)) is not None
        ]

    def gone(self, payload: Mapping[str, object]) -> int:
        """The id of the channel or thread that was deleted; it is forgotten."""
        place_id = read(payloads.Gone, payload).id
        for known in (self._channels, self._threads):
            known.pop(place_id, None)
        self._forums.discard(place_id)
        self._tags.pop(place_id, None)
        return place_id

    def _learn_role(self, guild_id: int, role: payloads.RolePayload) -> None:
        if role.id == guild_id:  # the role of @everyone has the guild's id ("Permissions", Discord API reference)
            self._everyone[guild_id] = role.permissions

    def _see(self, sent: payloads.Channel, guild_id: int | None) -> list[Place]:
        if sent.type in FORUM_TYPES:
            self._forums.add(sent.id)
            self._tags[sent.id] = {tag.id: encodable(tag.name or "") for tag in sent.available_tags or ()}
        tags = {} if sent.parent_id is None else self._tags.get(sent.parent_id, {})
        found = _from_wire(sent, self._forums, guild_id, tags)
        overwrites = [each for each in sent.permission_overwrites or () if each.id == found.guild_id]
        allow, deny = (overwrites[0].allow, overwrites[0].deny) if overwrites else (0, 0)
        known = _Known(found, sent.type, allow, deny)
        public = self._is_public(known)
        if public != found.public:
            known = replace(known, place=replace(found, public=public))
        if not found.is_thread:
            before, self._channels[found.id] = self._channels.get(found.id), known
            if before is not None and before.place.public == public:
                return [known.place]  # its threads are as public as they were
            threads = [each for each in self._threads.values() if each.place.parent_id == found.id]
            changed = [self._rejudged(self._threads, each) for each in threads]
            return [known.place, *(each for each in changed if each is not None)]
        if found.archived:
            self._threads.pop(found.id, None)  # a new message unarchives it, and that event comes first
        else:
            self._threads[found.id] = known
        return [known.place]

    def _is_public(self, known: _Known) -> bool:
        found = known.place
        everyone = None if found.guild_id is None else self._everyone.get(found.guild_id)
        if not found.is_thread:
            if everyone is not None and everyone & ADMINISTRATOR:
                return True
            # Recordings carry no roles: everybody sees what no overwrite hides.
            allowed = VIEW_CHANNEL if everyone is None else everyone
            return bool((allowed & ~known.deny | known.allow) & VIEW_CHANNEL)
        if known.type == PRIVATE_THREAD:
            return False
        parent = None if found.parent_id is None else self._channels.get(found.parent_id)
        # Roles are known and the parent is not: it may be hidden.
        return everyone is None if parent is None else parent.place.public

    def _rejudged(self, known: dict[int, _Known], each: _Known) -> Place | None:
        public = self._is_public(each)
        if public == each.place.public:
            return None
        changed = replace(each, place=replace(each.place, public=public))
        known[each.place.id] = changed
        return changed.place
