"""Watch a key-value bucket: first every value, then each change; reconnects by itself and reports what it missed."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from transport.connection import AWAY, streams_of
from transport.fence import READ_SECONDS

LOOK_SECONDS = 0.25
"""How often it is seen whether the connection was lost: a restarted server does not know who reads from it."""
LOOKS = 20
"""After so many without a change the server is asked whether it knows."""
AGAIN_SECONDS = 0.2

Heard = Callable[[str, bytes], object]
"""Called with a key and its value; nothing: it is gone. Must not raise."""

log = logging.getLogger(__name__)


class BucketWatcher:
    """Calls `heard` with every value of the bucket, then with each change, also those made while the server was away."""

    def __init__(self, client: Client, bucket: str, heard: Heard) -> None:
        self._client, self._bucket, self._heard = client, bucket, heard
        self._known: set[str] = set()
        self._caught_up = asyncio.Event()
        self._ended = False

    async def caught_up(self) -> None:
        """Wait until everything has been told that was there at some moment after the begin of `following`."""
        await self._caught_up.wait()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """For as long as the block runs."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            # The client takes a message that comes at this very moment for an answer, and the cancelling for done.
            self._ended = True
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._ended:
            try:
                await self._follow()
            except AWAY as error:
                log.debug("%s: out of reach: %s", self._bucket, error)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _follow(self) -> None:
        """Returns once the server may have forgotten it."""
        connects = self._client.stats["reconnects"]
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT)
        reading = await streams_of(self._client).subscribe(
            f"$KV.{self._bucket}.>", stream=f"KV_{self._bucket}", ordered_consumer=True, config=config
        )
        try:
            await self._fill(reading)
            looks = 0
            while not self._ended and self._client.stats["reconnects"] == connects:
                try:
                    message = await reading.next_msg(timeout=LOOK_SECONDS)
                except TimeoutError:
                    looks += 1
                    if looks == LOOKS:
                        await reading.consumer_info()
                        looks = 0
                    continue
                self._tell(message)
        finally:
            await reading.unsubscribe()

    async def _fill(self, reading: JetStreamContext.PushSubscription) -> None:
        before, self._known = self._known, set()
        info = await reading.consumer_info()
        left = (info.num_pending or 0) + (info.delivered.consumer_seq if info.delivered else 0)
        while left:
            if self._ended:
                return
            message = await reading.next_msg(timeout=READ_SECONDS)
            left = message.metadata.num_pending
            self._tell(message)
        for key in before - self._known:
            self._heard(key, b"")
        self._caught_up.set()

    def _tell(self, message: Msg) -> None:
        key = message.subject.removeprefix(f"$KV.{self._bucket}.")
        (self._known.add if message.data else self._known.discard)(key)
        self._heard(key, message.data)
