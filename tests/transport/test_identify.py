"""One IDENTIFY at a time, and one number of shards, over several processes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest
from nats.aio.client import Client

from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client, until
from transport.address import ServersUnusable
from transport.connection import Address, connect, streams_of
from transport.locks import hold_shard_count, make_identify_turn
from transport.streams import LOCKS

__all__ = ["client"]

pytestmark = pytest.mark.real_time


@pytest.fixture
async def other(nats_server: NatsServer, client: Client) -> AsyncGenerator[Client]:
    _ = client  # which has emptied the server
    connected = await connect(Address((nats_server.url,)), "other")
    yield connected
    await connected.close()


async def test_two_processes_take_turns_for_each_key(client: Client, other: Client) -> None:
    one, two = [await streams_of(each).key_value(LOCKS) for each in (client, other)]
    first = make_identify_turn(one, 2, "one", hold_seconds=1, poll_seconds=0.02)
    second = make_identify_turn(two, 2, "two", hold_seconds=1, poll_seconds=0.02)
    begun = time.monotonic()
    await asyncio.gather(first(0), second(3))  # another key: both at once
    at_once = time.monotonic() - begun
    times: list[float] = []

    async def turn(take: Callable[[int], Awaitable[None]]) -> None:
        await take(2)
        times.append(time.monotonic())

    await asyncio.gather(turn(first), turn(second))
    assert at_once < 1.0
    assert times[0] - begun >= 1.0
    assert times[1] - times[0] >= 1.0


async def test_a_turn_waits_for_a_server_that_is_away(client: Client, nats_server: NatsServer) -> None:
    bucket = await streams_of(client).key_value(LOCKS)
    nats_server.end()
    await until(lambda: not client.is_connected)
    turn = asyncio.ensure_future(make_identify_turn(bucket, 1, "one", poll_seconds=0.02)(5))
    nats_server.start()
    async with asyncio.timeout(30):
        await turn
    assert (await bucket.get("identify-0")).value == b"one"


async def test_another_number_of_shards_is_refused_in_one_line(client: Client, other: Client) -> None:
    async with hold_shard_count(streams_of(client), 64):
        async with hold_shard_count(streams_of(other), 64):
            pass
        with pytest.raises(
            ServersUnusable, match=r"^--shards: other gateways run with 64 shards and this one with 32; give .* 30 s"
        ):
            async with hold_shard_count(streams_of(other), 32):
                pass


async def test_after_the_last_gateway_the_number_is_free(client: Client, other: Client) -> None:
    async with hold_shard_count(streams_of(client), 64, keep_seconds=1):
        pass
    async with asyncio.timeout(30):
        while True:
            try:
                async with hold_shard_count(streams_of(other), 32):
                    break
            except ServersUnusable:
                await asyncio.sleep(0)


async def test_while_a_gateway_runs_the_number_stays(client: Client, other: Client) -> None:
    async with hold_shard_count(streams_of(client), 64, keep_seconds=2, renew_every=0.05):
        bucket = await streams_of(client).key_value(LOCKS)
        first = (await bucket.get("shards")).revision or 0
        async with asyncio.timeout(30):
            for _ in range(1000):
                if ((await bucket.get("shards")).revision or 0) >= first + 3:
                    break
                await asyncio.sleep(0.01)
        with pytest.raises(ServersUnusable):
            async with hold_shard_count(streams_of(other), 32):
                pass


async def test_a_gateway_that_slept_while_the_number_was_changed_says_so(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    bucket = await streams_of(client).key_value(LOCKS)
    async with hold_shard_count(streams_of(client), 64, renew_every=0.05):
        await bucket.put("shards", b"32")
        await until(lambda: [each for each in caplog.records if each.levelno == logging.ERROR])
        assert (await bucket.get("shards")).value == b"32"
