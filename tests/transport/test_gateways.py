"""Shards of a loopback Discord, handed on to a real server."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from nats.aio.client import Client as Nats

from services.discord import Dispatch, GatewayRefused
from services.discord.live import Client, RestFetcher
from services.discord.wire import Decoder
from streams.gateway import Gateway, GatewayHooks, GatewayRules
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server, hurried_discord
from tests.transport.connected import client
from transport.connection import streams_of
from transport.dispatches import decode_line, place_payload, thread_facts
from transport.gateway_publisher import open_publisher, run_gateways
from transport.watermarks import PublishWatermarks, open_watermarks

__all__ = ["client", "discord_server", "hurried_discord"]

pytestmark = pytest.mark.real_time


class Shards:
    """Two of four, each a client and a gateway of its own."""

    def __init__(self, marks: PublishWatermarks, turns: list[int], token: str) -> None:
        async def turn(shard_id: int) -> None:
            turns.append(shard_id)

        self.clients = [Client(shard_id=number, shard_count=4) for number in (2, 3)]
        self.gateways = [gateway(each, token, marks, turn) for each in self.clients]


def gateway(client: Client, token: str, marks: PublishWatermarks, turn: Callable[[int], Awaitable[None]]) -> Gateway:
    return Gateway(
        client,
        token,
        fetcher=RestFetcher(client.http),
        watermarks=marks.by_place,
        rules=GatewayRules(catch_up_minutes=60, most_waiting=1),
        hooks=GatewayHooks(on_guild=marks.note_guild, before_identify=turn),
        pause=lambda _: 0.0,
    )


@pytest.fixture
async def marks(client: Nats) -> AsyncIterator[PublishWatermarks]:
    async with open_watermarks(streams_of(client)) as made:
        yield made


async def test_each_shard_begins_in_turn_and_what_they_say_is_published(
    discord_server: DiscordServer, hurried_discord: None, client: Nats, marks: PublishWatermarks
) -> None:
    turns: list[int] = []
    shards = Shards(marks, turns, discord_server.token)
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    async with open_publisher(client, marks, thread_facts(shards.clients[0])) as out:
        running = asyncio.create_task(run_gateways(shards.gateways, out))
        await discord_server.until(lambda: out.ordered_publisher.stored == 2)  # the server, from each
        identified = {tuple(each.log[0][1]["shard"]) for each in discord_server.gateway.sessions.values()}
        said = await discord_server.say(channel, ada, "hello")
        thread = await discord_server.open_thread(said, ada, "a thread")
        within = await discord_server.say(thread, ada, "in there")
        await discord_server.until(lambda: marks.by_place().get(thread.id) == within.id)
        for each in shards.gateways:
            each.stop()
        await running
        await out.drain()
    for each in shards.clients:
        await each.close()
    streams = streams_of(client)
    state = (await streams.stream_info("MESSAGES")).state
    found = [await streams.get_msg("MESSAGES", number) for number in range(1, state.last_seq + 1)]
    published = [decode_line(each.data or b"") for each in found]
    texts = [each.d["content"] for each in published if each.t == "MESSAGE_CREATE" and each.d["content"]]
    assert texts == ["hello", "in there"]
    assert sorted(turns) == [2, 3]
    assert identified == {(2, 4), (3, 4)}
    facts = next(place_payload(each.headers) for each in found if b"in there" in (each.data or b""))
    assert facts is not None
    decoder = Decoder()
    place = decoder.place(facts)
    assert (place.id, place.parent_id, place.owner_id, place.name) == (thread.id, channel.id, ada.id, "a thread")
    assert marks.by_place()[channel.id] == said.id


async def test_one_that_is_refused_ends_all(
    discord_server: DiscordServer, hurried_discord: None, client: Nats, marks: PublishWatermarks
) -> None:
    async def turn(_: int) -> None:
        pass

    clients = [Client(shard_id=number, shard_count=2) for number in (0, 1)]
    tokens = [discord_server.token, "wrong"]
    gateways = [gateway(each, token, marks, turn) for each, token in zip(clients, tokens, strict=True)]
    async with open_publisher(client, marks) as out:
        with pytest.raises(GatewayRefused):
            await run_gateways(gateways, out)
    for each in clients:
        await each.close()


async def test_while_nobody_takes_what_was_read_no_more_is_read(
    discord_server: DiscordServer, hurried_discord: None
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    one = Client()
    live = Gateway(
        one,
        discord_server.token,
        fetcher=RestFetcher(one.http),
        watermarks=dict[int, int],
        rules=GatewayRules(catch_up_minutes=0, most_waiting=2),
        hooks=GatewayHooks(),
    )
    stream = live.dispatches()
    taken: list[Dispatch] = [await anext(stream)]
    for number in range(20):
        await discord_server.say(channel, ada, str(number))
    assert live._queue.qsize() <= 2  # pyright: ignore[reportPrivateUsage]
    async for dispatch in stream:
        taken.append(dispatch)
        if dispatch.d.get("content") == "19":
            break
    assert [each.d["content"] for each in taken if each.t == "MESSAGE_CREATE"] == [str(n) for n in range(20)]
    await stream.aclose()
    await one.close()


async def test_how_many_may_identify_at_once_is_asked(discord_server: DiscordServer, hurried_discord: None) -> None:
    one = Client()
    await one.log_in(discord_server.token)
    assert await one.concurrent_identifies() == 1
    await one.close()
