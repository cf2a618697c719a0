"""Reactions."""

from __future__ import annotations

from tests.loopback import payloads
from tests.loopback.model import Thread
from tests.loopback.permissions import READ, Permission
from tests.loopback.refusals import thread_is_archived, unknown
from tests.loopback.rest import Answer, Call, Routes, message_of, place_of, require
from tests.loopback.state import State

routes = Routes()

_REACTIONS = "/channels/{channel}/messages/{message}/reactions/{emoji}"


@routes.on("PUT", f"{_REACTIONS}/@me")
def add(state: State, call: Call) -> Answer:
    place = place_of(state, call, READ)
    message = message_of(state, call, place)
    emoji = call.names["emoji"]
    if emoji.isascii() and ":" not in emoji:
        # Neither a character such as 👍 nor a custom `name:id`.
        raise unknown("Emoji")
    if emoji not in message.reactions:
        require(state, place, Permission.ADD_REACTIONS)
    if isinstance(place, Thread) and place.archived:
        raise thread_is_archived()
    state.react(message, state.bot, emoji)
    return None


@routes.on("DELETE", f"{_REACTIONS}/@me")
def remove_own(state: State, call: Call) -> Answer:
    message = message_of(state, call, place_of(state, call))
    state.unreact(message, state.bot, call.names["emoji"])
    return None


@routes.on("DELETE", _REACTIONS + "/{user}")
def remove(state: State, call: Call) -> Answer:
    message = message_of(state, call, place_of(state, call, Permission.MANAGE_MESSAGES))
    member = state.guild.members.get(call.id("user"))
    if member is None:
        raise unknown("User")
    state.unreact(message, member.user, call.names["emoji"])
    return None


@routes.on("GET", _REACTIONS)
def users(state: State, call: Call) -> Answer:
    message = message_of(state, call, place_of(state, call, READ))
    reacted = message.reactions.get(call.names["emoji"], [])
    members = (state.guild.members.get(each) for each in reacted)
    return [payloads.user(member.user) for member in members if member is not None]
