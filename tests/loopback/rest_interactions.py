"""How a bot answers commands: the callback, and the webhook of each interaction."""

from __future__ import annotations

from tests.loopback import payloads
from tests.loopback.interactions import EPHEMERAL, Interaction, Said
from tests.loopback.mentions import pings
from tests.loopback.model import Message
from tests.loopback.payloads import Payload
from tests.loopback.refusals import already_acknowledged, empty_message, unknown
from tests.loopback.rest import Answer, Call, Routes
from tests.loopback.rest_messages import content_of
from tests.loopback.state import State

FIRST_ANSWER_SECONDS = 3.0
TOKEN_SECONDS = 15 * 60.0
"""Discord: "Receiving and Responding to Interactions"."""

REPLY = 4
DEFERRED_REPLY = 5
FORM = 9

routes = Routes()


@routes.on("POST", "/interactions/{interaction}/{token}/callback")
def callback(state: State, call: Call) -> Answer:
    one = state.interactions.get(call.names["token"])
    if one is None or one.id != call.id("interaction") or state.clock() - one.at > FIRST_ANSWER_SECONDS:
        raise unknown("interaction")
    if one.answered or one.deferred:
        raise already_acknowledged()
    data: Payload = call.form.get("data") or {}
    one.ephemeral = bool(int(data.get("flags") or 0) & EPHEMERAL)
    kind = int(call.form["type"])
    if kind == DEFERRED_REPLY:
        one.deferred = True
    elif kind == REPLY:
        say(state, one, data, ephemeral=one.ephemeral)
        one.answered = True
    elif kind == FORM:
        one.form = data
        one.answered = True
    else:
        raise NotImplementedError(f"callbacks of type {kind}")
    told = {"id": str(one.id), "type": 2, "response_message_ephemeral": one.ephemeral}
    return {"interaction": told | {"response_message_loading": one.deferred}, "resource": {"type": kind}}


@routes.on("PATCH", "/webhooks/{application}/{token}/messages/@original")
def edit_original(state: State, call: Call) -> Answer:
    one = _of(state, call)
    if not (one.deferred or one.answered):
        raise unknown("Message")
    if one.answered:
        first = one.said[0]
        first.message.content, first.payload = content_of(call.form), call.form
        return _payload(state, first)
    one.answered = True
    return _payload(state, say(state, one, call.form, ephemeral=one.ephemeral))


@routes.on("POST", "/webhooks/{application}/{token}")
def follow_up(state: State, call: Call) -> Answer:
    one = _of(state, call)
    if not (one.deferred or one.answered):
        raise unknown("Webhook")
    return _payload(state, say(state, one, call.form, ephemeral=bool(int(call.form.get("flags") or 0) & EPHEMERAL)))


def _of(state: State, call: Call) -> Interaction:
    one = state.interactions.get(call.names["token"])
    if one is None or state.clock() - one.at > TOKEN_SECONDS:
        raise unknown("Webhook")
    return one


def say(state: State, one: Interaction, form: Payload, *, ephemeral: bool) -> Said:
    content = content_of(form)
    if not content.strip():
        raise empty_message()
    called = pings(content, None, form.get("allowed_mentions"))
    message = Message(state.snowflake(), one.place, state.bot, content, state.clock(), pings=called)
    said = Said(message, form, ephemeral)
    one.said.append(said)
    return said


def _payload(state: State, said: Said) -> Payload:
    flags = EPHEMERAL if said.ephemeral else 0
    return {**payloads.message(said.message, state.guild, state.bot, []), "flags": flags}
