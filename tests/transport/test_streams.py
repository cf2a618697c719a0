"""Reading what a stream holds, from a server that miscounts."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any, cast

import pytest
from nats.aio.client import Client
from nats.errors import ConnectionClosedError
from nats.js import JetStreamContext, api

from clock import cancel_and_wait
from transport.streams import read_stream, watch


class Miscounting:
    """A server whose messages say that none is left after them."""

    def __init__(self, stored: int) -> None:
        self.stored, self.sent = stored, 0

    async def subscribe(self, *_: object, **__: object) -> Miscounting:
        return self

    async def consumer_info(self) -> Any:
        return SimpleNamespace(
            num_pending=self.stored - self.sent, delivered=SimpleNamespace(consumer_seq=self.sent, stream_seq=self.sent)
        )

    async def next_msg(self, **_: object) -> Any:
        self.sent += 1
        sequence = SimpleNamespace(consumer=self.sent, stream=self.sent)
        return SimpleNamespace(metadata=SimpleNamespace(num_pending=0, sequence=sequence))

    async def unsubscribe(self) -> None:
        pass


async def test_a_stream_is_read_to_its_end_although_a_message_says_that_it_is_the_last() -> None:
    for stored in (0, 1, 5):
        streams = cast("JetStreamContext", Miscounting(stored))
        read = [message.metadata.sequence.stream async for message in read_stream(streams, "LOG", "log.>")]
        assert read == list(range(1, stored + 1))


async def test_who_watches_a_stream_ends_when_cancelled_although_the_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Closed(Miscounting):
        async def next_msg(self, **_: object) -> Any:
            await asyncio.Event().wait()

        async def unsubscribe(self) -> None:
            raise ConnectionClosedError

    def streams_of(_client: object) -> Closed:
        return Closed(0)

    monkeypatch.setattr("transport.streams.streams_of", streams_of)
    client = cast("Client", SimpleNamespace(stats={"reconnects": 0}))

    async def follow() -> None:
        async with aclosing(watch(client, "LOG", "log.>", api.ConsumerConfig())) as messages:
            async for _ in messages:
                pass

    following = asyncio.create_task(follow())
    await asyncio.sleep(0)
    await cancel_and_wait(following)
    assert following.cancelled()
