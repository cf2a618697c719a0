"""Messages: reading, posting, editing, deleting."""

from __future__ import annotations

from tests.loopback.mentions import pings
from tests.loopback.model import Channel, ChannelKind, File, Link, Message, MessageKind, Place, Thread
from tests.loopback.payloads import Payload
from tests.loopback.permissions import READ, Permission
from tests.loopback.posts import Post
from tests.loopback.refusals import (
    empty_message,
    invalid_form,
    missing_permissions,
    not_a_text_channel,
    not_the_author,
    thread_is_archived,
    thread_is_locked,
)
from tests.loopback.rest import Answer, Call, Routes, message_of, place_of, require
from tests.loopback.state import State

CONTENT_LIMIT = 2000
NONCE_LIMIT = 25
NONCE_SECONDS = 300.0
"""Discord: a nonce is compared with those of "the past few minutes"."""
PAGE_LIMIT = 100

routes = Routes()


@routes.on("GET", "/channels/{channel}/messages")
def history(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    limit = call.number("limit")
    limit = 50 if limit is None else limit
    if not 1 <= limit <= PAGE_LIMIT:
        raise invalid_form("limit", "NUMBER_TYPE_MAX", "int value should be between 1 and 100.")
    if not state.may(Permission.READ_MESSAGE_HISTORY, place):
        # Documented so: no error, no messages.
        return []
    return [state.payload(message) for message in reversed(_page(state.history(place), call, limit))]


def _page(messages: list[Message], call: Call, limit: int) -> list[Message]:
    """Of `messages`, oldest first, the page asked for: `after` gives those next to it, `around` half on each side."""
    before, after, around = call.number("before"), call.number("after"), call.number("around")
    if around is not None:
        half = limit // 2
        older = [message for message in messages if message.id < around]
        newer = [message for message in messages if message.id >= around]
        return older[max(0, len(older) - half) :] + newer[: limit - half]
    if after is not None:
        return [message for message in messages if message.id > after][:limit]
    if before is not None:
        messages = [message for message in messages if message.id < before]
    return messages[-limit:]


@routes.on("GET", "/channels/{channel}/messages/{message}")
def read(state: State, call: Call) -> Answer:
    return state.payload(message_of(state, call, place_of(state, call, READ)))


@routes.on("POST", "/channels/{channel}/messages")
def post(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    if isinstance(place, Channel) and place.kind is ChannelKind.FORUM:
        raise not_a_text_channel()
    _may_send(state, place)
    form = call.form
    nonce = _nonce(form)
    known = None if nonce is None or not form.get("enforce_nonce") else state.nonces.get((place.id, nonce))
    if known is not None and state.clock() - known.at < NONCE_SECONDS:
        return state.payload(known)
    message = write(state, place, call, form)
    if nonce is not None:
        state.nonces[place.id, nonce] = message
    return state.payload(message)


def _may_send(state: State, place: Place) -> None:
    if isinstance(place, Thread):
        require(state, place, Permission.SEND_MESSAGES_IN_THREADS)
        if place.locked and not state.may(Permission.MANAGE_THREADS, place):
            raise thread_is_locked()
    else:
        require(state, place, Permission.SEND_MESSAGES)


def _nonce(form: Payload) -> str | None:
    nonce = form.get("nonce")
    if nonce is None:
        return None
    if len(str(nonce)) > NONCE_LIMIT:
        raise invalid_form("nonce", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
    return str(nonce)


def write(state: State, place: Place, call: Call, form: Payload, message_id: int | None = None) -> Message:
    """Store what the bot posts, as the form has it, and keep it among the posts."""
    content = content_of(form)
    files = [
        File(state.snowflake(), upload.filename, upload.content, _content_type(upload.filename))
        for _, upload in sorted(call.uploads.items())
    ]
    if not (content.strip() or files or form.get("embeds") or form.get("components")):
        raise empty_message()
    link = _link(state, place, form)
    replied = None if link is None or link.message_id is None else state.find(link.channel_id, link.message_id)
    author = None if replied is None else replied.author.id
    message = state.write(
        place,
        state.bot,
        content,
        kind=MessageKind.DEFAULT if link is None else MessageKind.REPLY,
        link=link,
        files=files,
        pings=pings(content, author, form.get("allowed_mentions")),
        nonce=_nonce(form),
        message_id=message_id,
        embeds=form.get("embeds") or [],
        components=form.get("components") or [],
    )
    state.posts.append(Post(message, form))
    return message


def content_of(form: Payload) -> str:
    content = str(form.get("content") or "")
    if len(content) > CONTENT_LIMIT:
        raise invalid_form("content", "BASE_TYPE_MAX_LENGTH", "Must be 2000 or fewer in length.")
    return content


def _link(state: State, place: Place, form: Payload) -> Link | None:
    """What the post replies to; it has to be a message of people in the same place."""
    reference: Payload | None = form.get("message_reference")
    if not reference:
        return None
    if not state.may(Permission.READ_MESSAGE_HISTORY, place):
        raise missing_permissions()
    message_id = int(reference["message_id"])
    replied = state.find(place.id, message_id)
    if replied is None or int(reference.get("channel_id") or place.id) != place.id:
        if reference.get("fail_if_not_exists", True):
            raise invalid_form("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return None
    if replied.is_system:
        code = "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE"
        raise invalid_form("message_reference", code, "Cannot reply to a system message")
    return Link(message_id, place.id)


def _content_type(filename: str) -> str | None:
    known = {"png": "image/png", "jpg": "image/jpeg", "txt": "text/plain; charset=utf-8"}
    return known.get(filename.rpartition(".")[2].lower())


@routes.on("PATCH", "/channels/{channel}/messages/{message}")
def edit(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    message = message_of(state, call, place)
    if message.author is not state.bot:
        raise not_the_author()
    if isinstance(place, Thread) and place.archived:
        raise thread_is_archived()
    form = call.form
    content = content_of(form)
    message.pings = pings(content, None, form.get("allowed_mentions"))
    if form.get("components") is not None:
        message.components = form["components"]
    state.edit(message, content)
    return state.payload(message)


@routes.on("DELETE", "/channels/{channel}/messages/{message}")
def delete(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    message = message_of(state, call, place)
    if message.author is not state.bot:
        require(state, place, Permission.MANAGE_MESSAGES)
    state.delete(message)
    return None


@routes.on("POST", "/channels/{channel}/typing")
def typing(state: State, call: Call) -> Answer:
    place = place_of(state, call)
    _may_send(state, place)
    state.type_in(place, state.bot)
    return None
