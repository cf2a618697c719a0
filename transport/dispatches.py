"""Discord dispatches as NATS messages: encoding and decoding, the fields of servers and threads that are sent, and the
stream of servers, channels and roles that every worker follows.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import logging
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

import discord
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import api
from nats.js.errors import APIError

from clock import rfc3339
from services.discord import BadLine, Dispatch, parse_line, render_line
from transport.connection import streams_of
from transport.streams import PLACES, partition_of, read_stream, watch

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The channels and roles of a server with 250,000 members, which Discord sends at once, take a tenth of it."""
COMPRESSION_LEVEL = 1
"""Fast: 500 channels take 1 ms, and shrink to a tenth."""


def encode_line(dispatch: Dispatch) -> bytes:
    """Return the line of a dispatch in UTF-8. Unlike a line of a recording, it may be an interaction, with its token.
    Raises ValueError: `d` is no JSON, or nested too deep.
    """
    if not dispatch.t.startswith("INTERACTION_"):
        return render_line(dispatch).encode()
    fields = {"at": rfc3339(dispatch.at, digits=6), "t": dispatch.t, "d": dispatch.d}
    try:
        return json.dumps(fields, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None


def decode_line(data: bytes) -> Dispatch:
    """Raises BadLine."""
    try:
        return parse_line(data.decode())
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None


def encode_compressed(dispatch: Dispatch) -> bytes:
    """Encode a line as `encode_line` does, and compress it by zlib. Raises as `encode_line`."""
    return zlib.compress(encode_line(dispatch), COMPRESSION_LEVEL)


def decode_compressed(data: bytes) -> Dispatch:
    """Raises BadLine, also for a line over MAX_LINE_BYTES."""
    unpacking = zlib.decompressobj()
    try:
        line = unpacking.decompress(data, MAX_LINE_BYTES)
    except zlib.error:
        raise BadLine("not compressed by zlib") from None
    if unpacking.unconsumed_tail:
        raise BadLine(f"more than {MAX_LINE_BYTES} bytes")
    if not unpacking.eof:
        raise BadLine("not compressed by zlib")
    return decode_line(line)


PLACE_HEADER = "Place"
"""The header of a message in a thread: its facts as compact JSON in ASCII."""

_GUILD_FIELDS = frozenset(
    {
        "id",
        "name",
        "owner_id",
        "unavailable",
        "roles",
        "channels",
        "threads",
        "joined_at",
        "large",
        "member_count",
        "features",
        "preferred_locale",
    }
)
"""Fields that the decoder, or discord.py's cache of channels and permissions, reads."""

_THREAD_TYPES = frozenset({"THREAD_CREATE", "THREAD_UPDATE", "THREAD_DELETE"})
SUMMARY = "Folded"
"""The header of a GUILD_CREATE that sums up a server with all its changes so far, and contains nothing new."""

ThreadFacts = Callable[[int, int], Mapping[str, object] | None]
"""From the ids of a server and a thread to the thread's payload as far as it is known; None: no such thread."""


def strip_guild(dispatch: Dispatch, own_id: int | None) -> Dispatch:
    """Reduce a GUILD_CREATE or GUILD_UPDATE to the fields that are read, and its members to the bot."""
    fields: dict[str, object] = {name: value for name, value in dispatch.d.items() if name in _GUILD_FIELDS}
    members = dispatch.d.get("members")
    if isinstance(members, list):
        fields["members"] = [each for each in cast("list[object]", members) if _user_id(each) == own_id]
    return Dispatch(dispatch.at, dispatch.t, fields)


def partition_of_thread(dispatch: Dispatch, partitions: int) -> int | None:
    """Return the partition of the channel that a thread dispatch (THREAD_CREATE, _UPDATE, _DELETE) belongs to; None for
    any other dispatch, which every partition gets.
    """
    return _partition(dispatch.d, partitions) if dispatch.t in _THREAD_TYPES else None


def for_partition(dispatch: Dispatch, number: int, partitions: int) -> Dispatch | None:
    """Return the dispatch as one partition gets it: a GUILD_CREATE keeps only the threads in channels of the partition.
    None: it concerns other partitions only.
    """
    if dispatch.t == "GUILD_CREATE":
        threads = dispatch.d.get("threads")
        listed = cast("list[Mapping[str, Any]]", threads) if isinstance(threads, list) else []
        # Entries that are no objects are kept, so that the decoder reports them.
        own = [each for each in listed if not hasattr(each, "get") or _partition(each, partitions) in {None, number}]
        return Dispatch(dispatch.at, dispatch.t, {**dispatch.d, "threads": own})
    return dispatch if partition_of_thread(dispatch, partitions) in {None, number} else None


def _partition(thread: Mapping[str, Any], partitions: int) -> int | None:
    """Return the partition of a thread's channel; None: it names no channel."""
    parent = thread.get("parent_id")
    return partition_of(int(parent), partitions) if isinstance(parent, str) and parent.isdecimal() else None


def _user_id(member: object) -> int | None:
    try:
        return int(cast("dict[str, Any]", member)["user"]["id"])
    except (KeyError, TypeError, ValueError):
        return None


def thread_facts(client: discord.Client) -> ThreadFacts:
    """Return a function that looks threads up in the cache of a gateway's client; the cache is ahead of the stream."""

    def known(guild_id: int, thread_id: int) -> Mapping[str, object] | None:
        guild = client.get_guild(guild_id)
        thread = None if guild is None else guild.get_thread(thread_id)
        if thread is None:
            return None
        state: dict[str, object] = {"archived": thread.archived, "locked": thread.locked}
        return {
            "id": str(thread.id),
            "type": thread.type.value,
            "guild_id": str(guild_id),
            "parent_id": str(thread.parent_id),
            "owner_id": str(thread.owner_id),
            "name": thread.name,
            "thread_metadata": state,
            "applied_tags": [str(tag.id) for tag in thread.applied_tags],
        }

    return known


def render_facts(facts: Mapping[str, object]) -> str:
    """Return the value of the header, in ASCII since a thread's name may have any characters."""
    return json.dumps(facts, separators=(",", ":"))


def place_payload(headers: Mapping[str, str] | None) -> dict[str, object] | None:
    """Return the payload of the thread that a message was written in; None: the header is missing or damaged.

    For a decoder that does not know the thread: it has fewer fields than the thread's own events.
    """
    header = None if headers is None else headers.get(PLACE_HEADER)
    if header is None:
        return None
    try:
        read: object = json.loads(header)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", read) if isinstance(read, dict) else None


MESSAGE_TYPES = frozenset({"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"})
INTERACTION_PREFIX = "INTERACTION_"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReceivedDispatch:
    """A decoded message of the stream MESSAGES.

    Attributes:
        message_ids: the messages that it creates, edits or deletes.
        place: a THREAD_CREATE that introduces its thread; None: it is in no thread.
    """

    dispatch: Dispatch
    message_ids: tuple[int, ...]
    place: Dispatch | None = None

    @property
    def interaction(self) -> Mapping[str, Any] | None:
        """The payload of an interaction; None: it is another dispatch."""
        return self.dispatch.d if self.dispatch.t.startswith(INTERACTION_PREFIX) else None


def parse_message(message: Msg) -> ReceivedDispatch | None:
    """Decode a message of MESSAGES. None: it is damaged, which is logged; acknowledge it, as no retry would help."""
    dispatch = parse_dispatch(message.data)
    if dispatch is None:
        return None
    payload = place_payload(cast("Mapping[str, str] | None", message.headers))
    place = None if payload is None else Dispatch(dispatch.at, "THREAD_CREATE", payload)
    return ReceivedDispatch(dispatch, _message_ids(dispatch), place)


def parse_dispatch(data: bytes) -> Dispatch | None:
    """Decode a line, compressed or not; None: it is damaged, which is logged."""
    try:
        # A line begins with a brace, zlib data does not.
        return decode_line(data) if data[:1] == b"{" else decode_compressed(data)
    except BadLine as error:
        log.error("a message from the gateway cannot be read, and is left out: %s", error)  # noqa: TRY400 (a line for the operator)
        return None


def _message_ids(dispatch: Dispatch) -> tuple[int, ...]:
    given = dispatch.d
    if dispatch.t in MESSAGE_TYPES:
        ids: object = [given.get("id")]
    elif dispatch.t == "MESSAGE_DELETE_BULK":
        ids = given.get("ids")
    else:
        return ()
    listed = cast("list[object]", ids) if isinstance(ids, list) else []
    return tuple(int(str(each)) for each in listed if str(each).isdecimal())


ALL_PLACES = "places.>"
REWATCH_SECONDS = 1.0


class PlacesFollower:
    """Keeps the dispatches of each server since its last GUILD_CREATE, and calls `on_dispatch` with each new one."""

    def __init__(self, client: Client, on_dispatch: Callable[[Dispatch], None]) -> None:
        self._client, self._on_dispatch = client, on_dispatch
        self._last = 0
        self._by_server: dict[str, list[Dispatch]] = {}

    def dispatches_so_far(self) -> Iterator[Dispatch]:
        """Yield the dispatches that bring a new graph up to date."""
        for dispatches in self._by_server.values():
            yield from dispatches

    def has_left(self, guild_id: int) -> bool:
        """Return whether the bot has left a server; False for an unknown server."""
        dispatches = self._by_server.get(str(guild_id), ())
        return any(each.t == "GUILD_DELETE" and not each.d.get("unavailable") for each in dispatches)

    async def catch_up(self) -> None:
        """Read the dispatches in the stream so far. Raises as the client."""
        async for message in read_stream(streams_of(self._client), PLACES, ALL_PLACES):
            self._receive(message)

    async def follow(self) -> None:
        """Runs until cancelled; after an error it begins again."""
        while True:
            try:
                await self._watch()
            except (Error, TimeoutError, APIError) as error:
                log.info("places: the server does not answer (%s)", str(error) or type(error).__name__)
            await asyncio.sleep(REWATCH_SECONDS)

    async def _watch(self) -> None:
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._last + 1, inactive_threshold=30
        )
        async with aclosing(watch(self._client, PLACES, ALL_PLACES, config)) as messages:
            async for message in messages:
                if message is not None:
                    self._receive(message)

    def _receive(self, message: Msg) -> None:
        before, number = self._last, message.metadata.sequence.stream
        if number <= before:
            return
        self._last = number
        dispatch = parse_dispatch(message.data)
        if dispatch is None:
            return
        server = message.subject.rpartition(".")[2]
        if dispatch.t in {"GUILD_CREATE", "GUILD_DELETE"}:
            self._by_server[server] = []  # it replaces all before
        self._by_server.setdefault(server, []).append(dispatch)
        # A summary is news only to a follower that has missed something.
        if number != before + 1 or SUMMARY not in (message.headers or {}):
            self._on_dispatch(dispatch)
