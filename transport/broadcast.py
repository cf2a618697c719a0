"""Follow the stream PLACES: servers, their channels, roles and threads, which every worker needs."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import api
from nats.js.errors import APIError

from services.discord import Dispatch
from transport.connection import streams_of
from transport.fence import read_stream
from transport.layout import PLACES
from transport.places import FOLDED
from transport.wire import parse_dispatch

ALL = "places.>"
AGAIN_SECONDS = 1.0

log = logging.getLogger(__name__)


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
        """Whether it was said that the bot has left a server; not so of one that nobody has told of yet."""
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
        listening = await streams_of(self._client).subscribe(ALL, stream=PLACES, ordered_consumer=True, config=config)
        try:
            async for message in listening.messages:
                self._take(message)
        finally:
            await listening.unsubscribe()

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
