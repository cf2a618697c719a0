"""What the server shows while a drill runs: every entry of the log, as it comes, and who owns what."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, Self

import nats
from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext, api

from benchmarks.scale.judge import Entry, Log
from clock.cancellation import cancel_and_wait

LOG = "LOG"
AT_ONCE = 500
LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 30.0


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncGenerator[Client]:
    """A connection that outlives a restart of the server, and says nothing of it. `url`: of one server, or of several
    with commas.
    """

    async def quiet(_: Exception) -> None:
        return

    client = await nats.connect(url.split(","), max_reconnect_attempts=-1, reconnect_time_wait=0.1, error_cb=quiet)
    try:
        yield client
    finally:
        await client.close()


class Watch:
    """Keeps every entry of the log in `log`, also those that later ones replace.

    It reads on after a restart of the server, from the entry that it was sent last.
    """

    def __init__(self, client: Client) -> None:
        self.log = Log()
        self._streams = client.jetstream()
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reading = asyncio.create_task(self._read(), name="watch")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._reading is not None
        await cancel_and_wait(self._reading)

    async def _read(self) -> None:
        while True:
            try:
                await self._follow()
            except (Error, TimeoutError, ValueError):  # the server is away, or its consumer is
                await asyncio.sleep(LOOK_SECONDS / 5)

    async def _follow(self) -> None:
        config = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.log.sequence + 1,
            ack_policy=api.AckPolicy.NONE,
            inactive_threshold=PATIENCE_SECONDS,
        )
        reading = await self._streams.pull_subscribe("log.>", stream=LOG, config=config)
        sent = 0
        while True:
            try:
                entries = await reading.fetch(AT_ONCE, timeout=LOOK_SECONDS)
            except TimeoutError:
                await reading.consumer_info()  # raises where it is gone
                continue
            for entry in entries:
                place = entry.metadata
                sent += 1
                if place.sequence.consumer != sent:
                    return  # some were lost on their way: from the last one again
                headers = entry.headers or {}
                at = place.timestamp.timestamp()
                self.log.add(Entry(entry.subject, place.sequence.stream, at, entry.data, headers))

    async def caught_up(self) -> None:
        """Wait until everything that the log holds now has been read. Raises TimeoutError."""
        info = await self._streams.stream_info(LOG)

        async def read() -> bool:
            return self.log.sequence >= info.state.last_seq

        if await until(read, PATIENCE_SECONDS) is None:
            raise TimeoutError


async def shares(streams: JetStreamContext, stream: str = "MESSAGES") -> Mapping[str, int]:
    """How many consumers each process has on a work queue."""
    found = await streams.consumers_info(stream)
    return Counter((each.config.metadata or {}).get("process", "") for each in found)


async def waiting(streams: JetStreamContext) -> int:
    """How many messages have no outcome yet."""
    return (await streams.stream_info("MESSAGES")).state.messages


async def until(condition: Callable[[], Awaitable[Any]], seconds: float, pause: float = 0.05) -> float | None:
    """Seconds until the condition held; None: it did not in that time. A server that is away holds nothing."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while loop.time() - began < seconds:
        with contextlib.suppress(Error, TimeoutError):
            if await condition():
                return loop.time() - began
        await asyncio.sleep(pause)
    return None
