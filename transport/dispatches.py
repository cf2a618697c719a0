"""Discord dispatches as NATS messages: encoding and decoding, what is sent of servers and threads, and the stream of
servers, channels and roles that every worker follows.
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

LARGEST = 64 * 1024 * 1024
"""Of a line, in bytes: a server of 250,000 members, whose channels and roles Discord sends at once, takes a tenth."""
QUICKLY = 1
"""The level of compression: a server's 500 channels take 1 ms of the loop, and a tenth of their size."""


def encode_line(dispatch: Dispatch) -> bytes:
    """The line of a dispatch in UTF-8, also of an interaction, which no recording holds: it carries a token.

    Raises:
        ValueError: `d` is no JSON, or nested too deep.
    """
    if not dispatch.t.startswith("INTERACTION_"):
        return render_line(dispatch).encode()
    fields = {"at": rfc3339(dispatch.at, digits=6), "t": dispatch.t, "d": dispatch.d}
    try:
        return json.dumps(fields, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None


def decode_line(data: bytes) -> Dispatch:
    """Raises BadLine: it is none."""
    try:
        return parse_line(data.decode())
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None


def encode_compressed(dispatch: Dispatch) -> bytes:
    """The same, compressed (zlib). Raises as `encode_line`."""
    return zlib.compress(encode_line(dispatch), QUICKLY)


def decode_compressed(data: bytes) -> Dispatch:
    """Raises BadLine: it is none, or too long."""
    unpacking = zlib.decompressobj()
    try:
        line = unpacking.decompress(data, LARGEST)
    except zlib.error:
        raise BadLine("not compressed by zlib") from None
    if unpacking.unconsumed_tail:
        raise BadLine(f"more than {LARGEST} bytes")
    if not unpacking.eof:
        raise BadLine("not compressed by zlib")
    return decode_line(line)


PLACE = "Place"
"""The header of a message in a thread: its facts as compact JSON in ASCII."""

_OF_A_SERVER = frozenset(
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

_OF_A_THREAD = frozenset({"THREAD_CREATE", "THREAD_UPDATE", "THREAD_DELETE"})
FOLDED = "Folded"
"""The header of a GUILD_CREATE that says nothing new: the server with all its changes so far, told anew."""

ThreadFacts = Callable[[int, int], Mapping[str, object] | None]
"""By the ids of a server and a thread in it: the thread's payload as far as it is known; None for what is no thread."""


def strip_guild(dispatch: Dispatch, own_id: int | None) -> Dispatch:
    """Reduce a GUILD_CREATE or GUILD_UPDATE to the fields that are read; of its members only the bot stays."""
    fields: dict[str, object] = {name: value for name, value in dispatch.d.items() if name in _OF_A_SERVER}
    members = dispatch.d.get("members")
    if isinstance(members, list):
        fields["members"] = [each for each in cast("list[object]", members) if _user_id(each) == own_id]
    return Dispatch(dispatch.at, dispatch.t, fields)


def partition_of_thread(dispatch: Dispatch, partitions: int) -> int | None:
    """The partition of the channel that a thread dispatch (THREAD_CREATE, _UPDATE, _DELETE) belongs to; None for any
    other dispatch, which every partition gets.
    """
    return _home(dispatch.d, partitions) if dispatch.t in _OF_A_THREAD else None


def for_partition(dispatch: Dispatch, number: int, partitions: int) -> Dispatch | None:
    """The dispatch as one partition gets it: a GUILD_CREATE keeps only the threads in channels of the partition. None:
    it concerns other partitions only.
    """
    if dispatch.t == "GUILD_CREATE":
        threads = dispatch.d.get("threads")
        listed = cast("list[Mapping[str, Any]]", threads) if isinstance(threads, list) else []
        # What is no object is left for the decoder to complain of.
        own = [each for each in listed if not hasattr(each, "get") or _home(each, partitions) in {None, number}]
        return Dispatch(dispatch.at, dispatch.t, {**dispatch.d, "threads": own})
    return dispatch if partition_of_thread(dispatch, partitions) in {None, number} else None


def _home(thread: Mapping[str, Any], partitions: int) -> int | None:
    """None: it names no channel."""
    parent = thread.get("parent_id")
    return partition_of(int(parent), partitions) if isinstance(parent, str) and parent.isdecimal() else None


def _user_id(member: object) -> int | None:
    try:
        return int(cast("dict[str, Any]", member)["user"]["id"])
    except (KeyError, TypeError, ValueError):
        return None


def thread_facts(client: discord.Client) -> ThreadFacts:
    """Look threads up in the cache of a gateway's client, which is up to date by the time a message is published."""

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


def rendered(facts: Mapping[str, object]) -> str:
    """The value of the header, in ASCII: a name may hold anything."""
    return json.dumps(facts, separators=(",", ":"))


def place_payload(headers: Mapping[str, str] | None) -> dict[str, object] | None:
    """The thread that a message was written in, for a decoder that has not seen it; None where the message names none.

    To be shown to a decoder that does not know the place: it says less than the thread's own events.
    """
    written = None if headers is None else headers.get(PLACE)
    if written is None:
        return None
    try:
        read: object = json.loads(written)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", read) if isinstance(read, dict) else None


OF_A_MESSAGE = frozenset({"MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"})
INTERACTIONS = "INTERACTION_"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReceivedDispatch:
    """A dispatch as it came.

    Attributes:
        message_ids: the messages that it is about: itself, or what it changes.
        place: introduces the thread that it is in.
    """

    dispatch: Dispatch
    message_ids: tuple[int, ...]
    place: Dispatch | None = None

    @property
    def interaction(self) -> Mapping[str, Any] | None:
        """The payload of a call of a command."""
        return self.dispatch.d if self.dispatch.t.startswith(INTERACTIONS) else None


def parse_message(message: Msg) -> ReceivedDispatch | None:
    """Decode one message of the stream MESSAGES. None: it is damaged, which is logged; the caller acknowledges it,
    since a retry would not help.
    """
    dispatch = parse_dispatch(message.data)
    if dispatch is None:
        return None
    shown = place_payload(cast("Mapping[str, str] | None", message.headers))
    place = None if shown is None else Dispatch(dispatch.at, "THREAD_CREATE", shown)
    return ReceivedDispatch(dispatch, _concerned(dispatch), place)


def parse_dispatch(data: bytes) -> Dispatch | None:
    """A line, as it is or compressed."""
    try:
        # A line begins with a brace, what zlib writes does not.
        return decode_line(data) if data[:1] == b"{" else decode_compressed(data)
    except BadLine as error:
        log.error("a message from the gateway cannot be read, and is left out: %s", error)  # noqa: TRY400 (a line for the operator)
        return None


def _concerned(dispatch: Dispatch) -> tuple[int, ...]:
    given = dispatch.d
    if dispatch.t in OF_A_MESSAGE:
        ids: object = [given.get("id")]
    elif dispatch.t == "MESSAGE_DELETE_BULK":
        ids = given.get("ids")
    else:
        return ()
    listed = cast("list[object]", ids) if isinstance(ids, list) else []
    return tuple(int(str(each)) for each in listed if str(each).isdecimal())


ALL = "places.>"
AGAIN_SECONDS = 1.0


class PlacesFollower:
    """Keeps the dispatches about each server since its last GUILD_CREATE, and passes each new one on, in order.

    `heard`: called with each dispatch that is new.
    """

    def __init__(self, client: Client, heard: Callable[[Dispatch], None]) -> None:
        self._client, self._heard = client, heard
        self._last = 0
        self._by_server: dict[str, list[Dispatch]] = {}

    def dispatches_so_far(self) -> Iterator[Dispatch]:
        """What a newcomer has to be told."""
        for said in self._by_server.values():
            yield from said

    def has_left(self, guild_id: int) -> bool:
        """Return whether it was said that the bot has left a server; not so of one that nobody has told of yet."""
        said = self._by_server.get(str(guild_id), ())
        return any(each.t == "GUILD_DELETE" and not each.d.get("unavailable") for each in said)

    async def catch_up(self) -> None:
        """Read what is there. Raises as the client."""
        async for message in read_stream(streams_of(self._client), PLACES, ALL):
            self._take(message)

    async def follow(self) -> None:
        """Until cancelled; begins again where a server was away."""
        while True:
            try:
                await self._listen()
            except (Error, TimeoutError, APIError) as error:
                log.info("places: the server does not answer (%s)", error or type(error).__name__)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _listen(self) -> None:
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE, opt_start_seq=self._last + 1, inactive_threshold=30
        )
        async with aclosing(watch(self._client, PLACES, ALL, config)) as messages:
            async for message in messages:
                if message is not None:
                    self._take(message)

    def _take(self, message: Msg) -> None:
        before, number = self._last, message.metadata.sequence.stream
        if number <= before:
            return
        self._last = number
        dispatch = parse_dispatch(message.data)
        if dispatch is None:
            return
        server = message.subject.rpartition(".")[2]
        if dispatch.t in {"GUILD_CREATE", "GUILD_DELETE"}:
            self._by_server[server] = []  # it says everything anew
        self._by_server.setdefault(server, []).append(dispatch)
        # Who has heard all that was said before knows what is told anew.
        if number != before + 1 or FOLDED not in (message.headers or {}):
            self._heard(dispatch)
