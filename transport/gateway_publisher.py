"""Publishes the dispatches of gateways: each to the subject of its channel or server. After many changes of a server it
publishes a summary, and after a restart the departures that were missed.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext

from clock import cancel_and_wait, now
from services.discord import USED_TYPES, BadLine, Dispatch, button_in
from streams.gateway import Gateway
from transport.connection import AWAY_ERRORS, streams_of
from transport.dispatches import (
    PLACE_HEADER,
    SUMMARY,
    ThreadFacts,
    decode_compressed,
    encode_compressed,
    encode_line,
    render_facts,
    strip_guild,
)
from transport.ordered_publisher import OrderedPublisher, OutgoingMessage
from transport.streams import MESSAGE_ID, PLACES, ROLLUP, TTL, read_stream
from transport.watermarks import PublishWatermarks

_LIST_FIELDS = ("roles", "channels", "threads")
_NOT_IN_UPDATE = frozenset({"members", "unavailable"})  # fields of GUILD_CREATE that a GUILD_UPDATE must not change


class GuildSnapshot:
    """The state of one server: its GUILD_CREATE with all later changes. Odd payloads change nothing."""

    def __init__(self) -> None:
        self._at = 0.0
        self._fields: dict[str, Any] | None = None
        self._lists: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in _LIST_FIELDS}

    def apply(self, dispatch: Dispatch) -> None:
        d: Mapping[str, Any] = dispatch.d
        if dispatch.t == "GUILD_CREATE":
            self._fields = {name: value for name, value in d.items() if name not in _LIST_FIELDS}
            self._lists = {name: _by_id(d.get(name)) for name in _LIST_FIELDS}
        elif self._fields is not None:
            try:
                self._change(self._fields, dispatch.t, d)
            except (KeyError, TypeError, AttributeError):
                return
        self._at = dispatch.at

    def as_guild_create(self) -> Dispatch | None:
        """Return the state as a GUILD_CREATE; None: there was none, or the server is unavailable."""
        if self._fields is None or self._fields.get("unavailable"):
            return None
        lists = {name: list(each.values()) for name, each in self._lists.items()}
        return Dispatch(self._at, "GUILD_CREATE", {**self._fields, **lists})

    def _change(self, fields: dict[str, Any], type_: str, d: Mapping[str, Any]) -> None:
        if type_.startswith("THREAD_"):
            self._change_threads(type_, d)
        elif type_.startswith("CHANNEL_"):
            self._change_channels(type_, d)
        elif type_ == "GUILD_ROLE_DELETE":
            self._lists["roles"].pop(d["role_id"], None)
        elif type_.startswith("GUILD_ROLE_"):
            self._lists["roles"][d["role"]["id"]] = d["role"]
        elif type_ == "GUILD_MEMBER_UPDATE":
            own: list[dict[str, Any]] = fields.get("members") or []
            fields["members"] = [{**each, **d} if each["user"]["id"] == d["user"]["id"] else each for each in own]
        elif type_ == "GUILD_UPDATE":
            if "roles" in d:
                self._lists["roles"] = _by_id(d["roles"])
            fields.update({name: value for name, value in d.items() if name in fields and name not in _NOT_IN_UPDATE})
        elif type_ == "GUILD_DELETE":
            fields["unavailable"] = True

    def _change_channels(self, type_: str, d: Mapping[str, Any]) -> None:
        if type_ == "CHANNEL_DELETE":
            self._lists["channels"].pop(d["id"], None)
            self._lists["threads"] = self._threads_outside({d["id"]})
        else:
            self._lists["channels"][d["id"]] = dict(d)

    def _change_threads(self, type_: str, d: Mapping[str, Any]) -> None:
        threads = self._lists["threads"]
        if type_ == "THREAD_LIST_SYNC":
            channel_ids = d.get("channel_ids")
            self._lists["threads"] = ({} if channel_ids is None else self._threads_outside(channel_ids)) | _by_id(
                d["threads"]
            )
        elif type_ == "THREAD_DELETE" or (type_ != "THREAD_MEMBERS_UPDATE" and d["thread_metadata"]["archived"]):
            threads.pop(d["id"], None)  # those that arrive with a server are the active ones
        elif type_ != "THREAD_MEMBERS_UPDATE":
            threads[d["id"]] = {**threads.get(d["id"], {}), **d}

    def _threads_outside(self, channel_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        return {id_: each for id_, each in self._lists["threads"].items() if each["parent_id"] not in channel_ids}


def _by_id(listed: object) -> dict[str, dict[str, Any]]:
    if not isinstance(listed, list):
        return {}
    dicts = [cast("dict[str, Any]", each) for each in cast("list[object]", listed) if isinstance(each, dict)]
    return {str(each.get("id")): each for each in dicts}


GUILD_LEFT = "GUILD_DELETE"
MAX_READS = 32

log = logging.getLogger(__name__)


async def missed_guild_leaves(streams: JetStreamContext, ready: Mapping[str, Any]) -> Sequence[Dispatch]:
    """Return GUILD_DELETE dispatches for servers that workers still know but READY does not list: the bot was removed
    while no gateway ran. `ready`: the payload of READY. Empty if NATS does not answer: the next session tries again.
    """
    listed: object = ready.get("guilds")
    if not isinstance(listed, list):
        return ()
    there = {str(each["id"]) for each in cast("list[Mapping[str, Any]]", listed) if "id" in each}
    number, count = ready.get("shard") or (0, 1)
    try:
        subjects = (await streams.stream_info(PLACES, subjects_filter="places.>")).state.subjects or {}
        known = {subject.rpartition(".")[2] for subject in subjects}
        missing = sorted(int(each) for each in known - there if (int(each) >> 22) % count == number)
        slots = asyncio.Semaphore(MAX_READS)
        left_before = await asyncio.gather(*(_is_known_as_left(streams, guild_id, slots) for guild_id in missing))
        left = [guild_id for guild_id, known in zip(missing, left_before, strict=True) if not known]
    except AWAY_ERRORS as error:
        log.info("servers that were left meanwhile stay known: NATS does not answer (%s)", error)
        return ()
    for guild_id in left:
        log.info("server %d was left while nobody listened", guild_id)
    return [Dispatch(now(), GUILD_LEFT, {"id": str(guild_id)}) for guild_id in left]


async def _is_known_as_left(streams: JetStreamContext, guild_id: int, slots: asyncio.Semaphore) -> bool:
    async with slots:
        last = await streams.get_last_msg(PLACES, f"places.{guild_id}")
    try:
        dispatch = decode_compressed(last.data or b"")
    except BadLine:
        return False
    return dispatch.t == GUILD_LEFT and not dispatch.d.get("unavailable")


INTERACTION_TTL = "15m"
"""The lifetime of an interaction's token (API reference, "Interactions")."""

SUMMARISE_AFTER = 2_000
"""After so many changes of a server, its complete state is published as a new GUILD_CREATE. Without that the stream
would drop the oldest message, the first GUILD_CREATE, after ten times as many.
"""

_SNOWFLAKE = re.compile(r"[0-9]{1,20}")

_GUILD_TYPES = frozenset({"GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE"})
_PLACE_TYPES = frozenset(each for each in USED_TYPES if each.startswith(("CHANNEL_", "THREAD_"))) - {
    "THREAD_LIST_SYNC"  # of several places
}
_TYPES_IN_GUILD = _PLACE_TYPES | {
    "GUILD_ROLE_CREATE",
    "GUILD_ROLE_UPDATE",
    "GUILD_ROLE_DELETE",
    "GUILD_MEMBER_UPDATE",
    "THREAD_LIST_SYNC",
    "THREAD_MEMBERS_UPDATE",
}
_MESSAGE_TYPES = frozenset(
    each for each in USED_TYPES if each.startswith(("MESSAGE_", "TYPING_"))
) | {"INTERACTION_CREATE"}  # fmt: skip


class Publisher:
    """Publishes the dispatches of all shards of a process, those of one place in order. Made by `open_publisher`."""

    def __init__(
        self,
        streams: JetStreamContext,
        ordered: OrderedPublisher,
        watermarks: PublishWatermarks,
        threads: ThreadFacts | None,
        summarise_after: int,
    ) -> None:
        self.ordered_publisher = ordered
        self._streams = streams
        self._summarise_after = summarise_after
        self._changes: Counter[int] = Counter()  # by server, since its last GUILD_CREATE
        self._watermarks = watermarks
        self._threads = threads
        self._own_id: int | None = None
        self._process = uuid.uuid4().hex
        self._numbers = itertools.count()

    async def publish(self, dispatch: Dispatch) -> None:
        """Queue a dispatch; waits only if too many are queued. Types without a place, and types that the program does
        not read, are dropped. Raises nats.errors.Error: the connection was closed for good.
        """
        if dispatch.t == "READY":
            user = dispatch.d.get("user")
            self._own_id = _id(user, "id") if isinstance(user, dict) else None  # pyright: ignore[reportUnknownArgumentType] (JSON)
            for left in await missed_guild_leaves(self._streams, dispatch.d):
                await self.publish(left)
            return
        try:
            outgoing_messages = self._messages_of(dispatch)
        except ValueError as error:
            log.warning("one %s cannot be handed on: %s", dispatch.t, error)
            return
        for outgoing in outgoing_messages:
            await self.ordered_publisher.put(outgoing)
        guild_id = _id(dispatch.d, "guild_id")
        if guild_id is not None and self._changes[guild_id] >= self._summarise_after:
            await self._summarise(guild_id)

    async def drain(self) -> None:
        """Wait until the server has everything; the caller sets a limit. Raises as `publish`."""
        await self.ordered_publisher.drain()

    def _messages_of(self, dispatch: Dispatch) -> list[OutgoingMessage]:
        type_, d = dispatch.t, dispatch.d
        outgoing_messages: list[OutgoingMessage] = []
        if type_ in _GUILD_TYPES or type_ in _TYPES_IN_GUILD:
            guild_id = _id(d, "id" if type_ in _GUILD_TYPES else "guild_id")
            if guild_id is not None:
                outgoing_messages.append(self._guild_message(dispatch, guild_id))
        if type_ in _MESSAGE_TYPES or type_ in _PLACE_TYPES:
            place_id = _id(d, "channel_id" if type_ in _MESSAGE_TYPES else "id")
            if type_ == "INTERACTION_CREATE" and (button := button_in(d)) is not None:
                place_id = button.channel_id  # to the owner of the question's channel, who has the draft
            if place_id is not None:
                outgoing_messages.append(self._place_message(dispatch, place_id))
        return outgoing_messages

    def _guild_message(self, dispatch: Dispatch, guild_id: int) -> OutgoingMessage:
        headers = {MESSAGE_ID: self._unique_id()}
        self._changes[guild_id] += 1
        if dispatch.t in {"GUILD_CREATE", "GUILD_UPDATE"}:
            dispatch = strip_guild(dispatch, self._own_id)
        if dispatch.t == "GUILD_CREATE":
            self._changes[guild_id] = 0
        if dispatch.t == "GUILD_CREATE" or (dispatch.t == "GUILD_DELETE" and not dispatch.d.get("unavailable")):
            headers[ROLLUP] = "sub"  # it replaces all before
        return OutgoingMessage(f"places.{guild_id}", encode_compressed(dispatch), headers)

    async def _summarise(self, guild_id: int) -> None:
        """Replace the dispatches of a server in the stream by a summary: in a session of weeks they would grow without
        end. Its shard, which calls this, publishes nothing else of it meanwhile.
        """
        self._changes[guild_id] = 0
        subject = f"places.{guild_id}"
        await self.ordered_publisher.drain_subject(subject)
        snapshot = GuildSnapshot()
        try:
            async for entry in read_stream(self._streams, PLACES, subject):
                snapshot.apply(decode_compressed(entry.data))
        except (Error, TimeoutError, BadLine) as error:
            log.warning("server %d is not told whole (%s); tried again after its next changes", guild_id, error)
            return
        whole = snapshot.as_guild_create()
        if whole is not None:
            headers = {MESSAGE_ID: self._unique_id(), ROLLUP: "sub", SUMMARY: "1"}
            await self.ordered_publisher.put(OutgoingMessage(subject, encode_compressed(whole), headers))

    def _place_message(self, dispatch: Dispatch, place_id: int) -> OutgoingMessage:
        headers = {MESSAGE_ID: self._message_id(dispatch)}
        # A thread belongs to the partition of its channel, and a message in it goes there too.
        parent_id = _id(dispatch.d, "parent_id") if dispatch.t.startswith("THREAD_") else None
        guild_id = _id(dispatch.d, "guild_id")
        if dispatch.t == "INTERACTION_CREATE":
            headers[TTL] = INTERACTION_TTL
        if dispatch.t in _MESSAGE_TYPES and self._threads is not None and guild_id is not None:
            facts = self._threads(guild_id, place_id)
            if facts is not None:
                headers[PLACE_HEADER] = render_facts(facts)
                parent_id = _id(facts, "parent_id")
        line = encode_line(dispatch)
        on_settled = None
        if dispatch.t == "MESSAGE_CREATE" and (message_id := _id(dispatch.d, "id")) is not None:
            on_settled = self._watermarks.note_publishing(guild_id or 0, place_id, message_id)
        return OutgoingMessage(f"messages.{parent_id or place_id}", line, headers, on_settled)

    def _message_id(self, dispatch: Dispatch) -> str:
        """Return an id, the same in every gateway and after a restart if Discord gives the dispatch one."""
        id_ = dispatch.d.get("id")
        match dispatch.t:
            case "MESSAGE_CREATE":
                return f"C:{id_}"
            case "MESSAGE_UPDATE":
                return f"U:{id_}:{dispatch.d.get('edited_timestamp')}"
            case "MESSAGE_DELETE":
                return f"D:{id_}"
            case "INTERACTION_CREATE":
                return f"I:{id_}"
            case _:
                return self._unique_id()

    def _unique_id(self) -> str:
        """Return an id for a message that only this process may repeat."""
        return f"{self._process}:{next(self._numbers)}"


@asynccontextmanager
async def open_publisher(
    client: Client,
    watermarks: PublishWatermarks,
    threads: ThreadFacts | None = None,
    *,
    summarise_after: int = SUMMARISE_AFTER,
) -> AsyncGenerator[Publisher]:
    """Open a publisher until the end of the block. `threads`: looks up the thread of a message, to be sent with it.

    Messages that are not drained on leaving are lost, and catch-up fetches them again.
    """
    async with OrderedPublisher(client).running() as ordered:
        yield Publisher(streams_of(client), ordered, watermarks, threads, summarise_after)


def _id(payload: object, name: str) -> int | None:
    """Return an id in a payload; None: it is missing or not a number, and must not become part of a subject."""
    value: object = payload.get(name) if hasattr(payload, "get") else None  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    return int(value) if isinstance(value, str) and _SNOWFLAKE.fullmatch(value) else None


async def run_gateways(gateways: Sequence[Gateway], publisher: Publisher) -> None:
    """Run the gateways until each has stopped, and publish their dispatches in order of arrival. Messages may still be
    queued then: see `Publisher.drain`.

    Raises:
        GatewayRefused: Discord refuses the bot for good; the others have been stopped and cut off.
        nats.errors.Error: the connection to NATS was closed for good.
    """

    async def publish_all(gateway: Gateway) -> None:
        stream = gateway.dispatches()
        try:
            async for dispatch in stream:
                await publisher.publish(dispatch)
        finally:
            await stream.aclose()

    tasks = [asyncio.create_task(publish_all(gateway)) for gateway in gateways]
    try:
        await asyncio.gather(*tasks)
    finally:
        await cancel_and_wait(*tasks)
