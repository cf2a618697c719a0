"""Publish what a gateway receives: messages to `messages.<channel>`, changes of servers, channels and roles to
`places.<server>`.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import itertools
import logging
import re
import uuid
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext

from services.discord import BadLine, Dispatch
from services.discord.wire import USED_TYPES
from transport.connection import streams_of
from transport.departures import missed_guild_leaves
from transport.fence import read_stream
from transport.lanes import OrderedPublisher, OutgoingMessage, ordered_publisher
from transport.layout import PLACES
from transport.lines import decode_compressed, encode_compressed, encode_line
from transport.marks import PublishWatermarks
from transport.places import FOLDED, PLACE, ThreadFacts, rendered, strip_guild
from transport.protocol import MESSAGE_ID, ROLLUP, TTL
from transport.snapshots import GuildSnapshot

log = logging.getLogger(__name__)

INTERACTION_TTL = "15m"
"""For as long as the token of an interaction is good (API reference, "Interactions")."""

FOLD_AFTER = 2_000
"""After so many changes of a server, its complete state is published as a new GUILD_CREATE. Without that the stream
would drop the oldest message, the first GUILD_CREATE, after ten times as many.
"""

_SNOWFLAKE = re.compile(r"[0-9]{1,20}")

_SERVER_ITSELF = frozenset({"GUILD_CREATE", "GUILD_UPDATE", "GUILD_DELETE"})
_OF_A_PLACE = frozenset(each for each in USED_TYPES if each.startswith(("CHANNEL_", "THREAD_")))
_OF_A_SERVER = _OF_A_PLACE | {
    "GUILD_ROLE_CREATE",
    "GUILD_ROLE_UPDATE",
    "GUILD_ROLE_DELETE",
    "GUILD_MEMBER_UPDATE",
    "THREAD_LIST_SYNC",
    "THREAD_MEMBERS_UPDATE",
}
_WRITTEN = frozenset(
    each for each in USED_TYPES if each.startswith(("MESSAGE_", "TYPING_"))
) | {"INTERACTION_CREATE"}  # fmt: skip


class Publisher:
    """Made by `publisher`. Takes the dispatches of all the shards of a process, those of one place in order.

    Attributes:
        lanes: what is on its way, and counts of what arrived.
    """

    def __init__(
        self,
        streams: JetStreamContext,
        on_the_way: OrderedPublisher,
        marks: PublishWatermarks,
        threads: ThreadFacts | None,
        fold_after: int,
    ) -> None:
        self.ordered_publisher = on_the_way
        self._streams = streams
        self._fold_after = fold_after
        self._changes: Counter[int] = Counter()  # by server, since it was told whole
        self._marks = marks
        self._threads = threads
        self._own_id: int | None = None
        self._process = uuid.uuid4().hex
        self._numbers = itertools.count()

    async def publish(self, dispatch: Dispatch) -> None:
        """Put it on its way; returns before it has arrived, unless too much waits. Types without a place, and those
        that no part of the program reads, go nowhere.

        Raises:
            nats.errors.Error: the connection was closed for good.
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
        if guild_id is not None and self._changes[guild_id] >= self._fold_after:
            await self._fold(guild_id)

    async def drain(self) -> None:
        """Wait until the server has everything; the caller sets a limit. Raises as `publish`."""
        await self.ordered_publisher.drain()

    def _messages_of(self, dispatch: Dispatch) -> list[OutgoingMessage]:
        type_, d = dispatch.t, dispatch.d
        outgoing_messages: list[OutgoingMessage] = []
        if type_ in _SERVER_ITSELF or type_ in _OF_A_SERVER:
            guild_id = _id(d, "id" if type_ in _SERVER_ITSELF else "guild_id")
            if guild_id is not None:
                outgoing_messages.append(self._of_a_server(dispatch, guild_id))
        if type_ in _WRITTEN or type_ in _OF_A_PLACE:
            place_id = _id(d, "channel_id" if type_ in _WRITTEN else "id")
            if place_id is not None:
                outgoing_messages.append(self._of_a_place(dispatch, place_id))
        return outgoing_messages

    def _of_a_server(self, dispatch: Dispatch, guild_id: int) -> OutgoingMessage:
        headers = {MESSAGE_ID: self._once()}
        self._changes[guild_id] += 1
        if dispatch.t in {"GUILD_CREATE", "GUILD_UPDATE"}:
            dispatch = strip_guild(dispatch, self._own_id)
        if dispatch.t == "GUILD_CREATE":
            self._changes[guild_id] = 0
        if dispatch.t == "GUILD_CREATE" or (dispatch.t == "GUILD_DELETE" and not dispatch.d.get("unavailable")):
            headers[ROLLUP] = "sub"  # nothing before it matters any more
        return OutgoingMessage(f"places.{guild_id}", encode_compressed(dispatch), headers)

    async def _fold(self, guild_id: int) -> None:
        """Tell a server whole again, made of what the stream holds of it: in a session that lasts for weeks its changes
        would grow without end. Nothing more of it is published meanwhile: it belongs to one shard.
        """
        self._changes[guild_id] = 0
        subject = f"places.{guild_id}"
        await self.ordered_publisher.drain_subject(subject)
        made = GuildSnapshot()
        try:
            async for told in read_stream(self._streams, PLACES, subject):
                made.see(decode_compressed(told.data))
        except (Error, TimeoutError, BadLine) as error:
            log.warning("server %d is not told whole (%s); tried again after its next changes", guild_id, error)
            return
        whole = made.as_guild_create()
        if whole is not None:
            await self.ordered_publisher.put(
                OutgoingMessage(
                    subject, encode_compressed(whole), {MESSAGE_ID: self._once(), ROLLUP: "sub", FOLDED: "1"}
                )
            )

    def _of_a_place(self, dispatch: Dispatch, place_id: int) -> OutgoingMessage:
        headers = {MESSAGE_ID: self._message_id(dispatch)}
        # What is said in a thread concerns its channel: who answers there, and whether the team has.
        home = _id(dispatch.d, "parent_id") if dispatch.t.startswith("THREAD_") else None
        guild_id = _id(dispatch.d, "guild_id")
        if dispatch.t == "INTERACTION_CREATE":
            headers[TTL] = INTERACTION_TTL
        if dispatch.t in _WRITTEN and self._threads is not None and guild_id is not None:
            facts = self._threads(guild_id, place_id)
            if facts is not None:
                headers[PLACE] = rendered(facts)
                home = _id(facts, "parent_id")
        line = encode_line(dispatch)
        settled = None
        if dispatch.t == "MESSAGE_CREATE" and (message_id := _id(dispatch.d, "id")) is not None:
            settled = self._marks.under_way(guild_id or 0, place_id, message_id)
        return OutgoingMessage(f"messages.{home or place_id}", line, headers, settled)

    def _message_id(self, dispatch: Dispatch) -> str:
        """The same in every gateway and after a restart, where Discord says what makes a dispatch the same."""
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
                return self._once()

    def _once(self) -> str:
        """For what may be sent again by nobody but this process."""
        return f"{self._process}:{next(self._numbers)}"


@asynccontextmanager
async def publisher(
    client: Client, marks: PublishWatermarks, threads: ThreadFacts | None = None, *, fold_after: int = FOLD_AFTER
) -> AsyncGenerator[Publisher]:
    """What was not drained by the end of the block is given up; catch-up brings it again. `threads`: of which threads
    a message says where it was written (`transport.places`).
    """
    async with ordered_publisher(client) as on_the_way:
        yield Publisher(streams_of(client), on_the_way, marks, threads, fold_after)


def _id(payload: object, name: str) -> int | None:
    """An id as Discord sends it; None for what is none: subjects are made of them."""
    value: object = payload.get(name) if hasattr(payload, "get") else None  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    return int(value) if isinstance(value, str) and _SNOWFLAKE.fullmatch(value) else None
