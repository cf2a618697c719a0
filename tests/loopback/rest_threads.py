"""Channels and threads: opening, changing, listing."""

from __future__ import annotations

from tests.loopback import payloads
from tests.loopback.model import Channel, ChannelKind, Thread
from tests.loopback.payloads import Payload
from tests.loopback.permissions import READ, Permission
from tests.loopback.refusals import (
    invalid_form,
    missing_permissions,
    not_in_this_channel_type,
    not_on_system_messages,
    thread_exists,
    thread_is_archived,
    unknown,
)
from tests.loopback.rest import Answer, Call, Routes, message_of, place_of, require
from tests.loopback.rest_messages import content_of, write
from tests.loopback.state import State

NAME_LIMIT = 100

routes = Routes()


@routes.on("GET", "/channels/{channel}")
def read(state: State, call: Call) -> Answer:
    return payloads.place(place_of(state, call), state.guild, state.bot)


@routes.on("POST", "/channels/{channel}/messages/{message}/threads")
def open_on_message(state: State, call: Call) -> Answer:
    place = place_of(state, call, Permission.CREATE_PUBLIC_THREADS)
    message = message_of(state, call, place)
    if isinstance(place, Thread):
        raise not_in_this_channel_type()
    if message.id in state.places:
        raise thread_exists()
    if message.is_system:
        raise not_on_system_messages()
    form = call.form
    minutes = int(form.get("auto_archive_duration") or 1440)
    thread = state.open_thread(message, state.bot, _name(form), auto_archive_minutes=minutes)
    return payloads.thread(thread, state.guild, state.bot)


@routes.on("POST", "/channels/{channel}/threads")
def start(state: State, call: Call) -> Answer:
    """A thread without a message, or a post in a forum, which brings its first message along."""
    channel = place_of(state, call)
    form = call.form
    if isinstance(channel, Thread):
        raise not_in_this_channel_type()
    if channel.kind is ChannelKind.FORUM:
        require(state, channel, Permission.SEND_MESSAGES)
        first: Payload = form.get("message") or {}
        content_of(first)  # before anything is made
        thread = state.forum_post(channel, state.bot, _name(form))
        message = write(state, thread, call, first, thread.id)
        return payloads.thread(thread, state.guild, state.bot) | {"message": state.payload(message)}
    private = form.get("type") == ChannelKind.PRIVATE_THREAD
    require(state, channel, Permission.CREATE_PRIVATE_THREADS if private else Permission.CREATE_PUBLIC_THREADS)
    kind = ChannelKind.PRIVATE_THREAD if private else ChannelKind.PUBLIC_THREAD
    return payloads.thread(state.start_thread(channel, state.bot, _name(form), kind), state.guild, state.bot)


def _name(form: Payload) -> str:
    name = str(form.get("name") or "").strip()
    if not 1 <= len(name) <= NAME_LIMIT:
        raise invalid_form("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    return name


@routes.on("PATCH", "/channels/{channel}")
def change(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    form = call.form
    name = _name(form) if "name" in form else None
    if isinstance(place, Channel):
        require(state, place, Permission.MANAGE_CHANNELS)
        state.change_channel(place, name=name, topic=form.get("topic"))
        return payloads.channel(place, state.guild)
    manages = state.may(Permission.MANAGE_THREADS, place)
    locks = "locked" in form and bool(form["locked"]) != place.locked
    if not manages and (locks or place.locked or place.owner is not state.bot):
        raise missing_permissions()
    archived = form.get("archived")
    if place.archived and archived is not False and not locks:
        raise thread_is_archived()
    state.change_thread(place, name=name, archived=archived, locked=form.get("locked"))
    return payloads.thread(place, state.guild, state.bot)


@routes.on("DELETE", "/channels/{channel}")
def delete(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    require(state, place, Permission.MANAGE_THREADS if isinstance(place, Thread) else Permission.MANAGE_CHANNELS)
    payload = payloads.place(place, state.guild, state.bot)
    state.delete_place(place)
    return payload


@routes.on("PUT", "/channels/{channel}/thread-members/@me")
def join(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    if not isinstance(place, Thread):
        raise not_in_this_channel_type()
    if place.archived:
        raise thread_is_archived()
    state.join(place, state.bot)
    return None


@routes.on("GET", "/channels/{channel}/thread-members/{user}")
def member(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    if not isinstance(place, Thread) or call.id("user") not in place.members:
        raise unknown("Member")
    return payloads.thread_member(place, call.id("user"))


@routes.on("GET", "/guilds/{guild}/threads/active")
def active(state: State, call: Call) -> Answer:
    if call.id("guild") != state.guild.id:
        raise unknown("Guild")
    return _list(state, [thread for thread in state.threads() if not thread.archived])


@routes.on("GET", "/channels/{channel}/threads/archived/public")
def archived(state: State, call: Call) -> Answer:
    """The most recently archived first; `limit` and `before` are not looked at."""
    place = place_of(state, call, READ)
    found = [
        thread
        for thread in state.threads()
        if thread.archived and thread.parent is place and thread.kind is ChannelKind.PUBLIC_THREAD
    ]
    found.sort(key=lambda thread: thread.archive_changed_at, reverse=True)
    return _list(state, found) | {"has_more": False}


def _list(state: State, threads: list[Thread]) -> Payload:
    return {
        "threads": [payloads.thread(thread, state.guild, state.bot) for thread in threads],
        "members": [payloads.thread_member(each, state.bot.id) for each in threads if state.bot.id in each.members],
    }
