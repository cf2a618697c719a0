"""Servers that were left while no gateway listened."""

from __future__ import annotations

import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NoAnswer
from nats.js import JetStreamContext

from services.discord import Dispatch
from tests.transport.connected import client
from transport.connection import streams_of
from transport.dispatches import encode_compressed
from transport.gateway_publisher import missed_guild_leaves
from transport.streams import PLACES

__all__ = ["client"]

pytestmark = pytest.mark.real_time

HERE, LEFT, OTHERS = 4 << 22, 6 << 22, 7 << 22
"""The last one is of the second of two shards."""


@pytest.fixture
async def streams(client: Client) -> JetStreamContext:
    found = streams_of(client)
    for guild_id in (HERE, LEFT, OTHERS):
        await said(found, "GUILD_CREATE", guild_id)
    return found


async def said(streams: JetStreamContext, type_: str, guild_id: int, **fields: object) -> None:
    told = encode_compressed(Dispatch(1.0, type_, {"id": str(guild_id), **fields}))
    await streams.publish(f"places.{guild_id}", told, stream=PLACES)


async def left(streams: JetStreamContext, **ready: object) -> list[int]:
    found = await missed_guild_leaves(streams, {"guilds": [{"id": str(HERE), "unavailable": True}], **ready})
    assert all(each.t == "GUILD_DELETE" for each in found)
    return [int(str(each.d["id"])) for each in found]


async def test_what_a_session_does_not_name_was_left(streams: JetStreamContext) -> None:
    assert await left(streams) == [LEFT, OTHERS]


async def test_a_shard_tells_of_its_own_servers(streams: JetStreamContext) -> None:
    assert await left(streams, shard=[0, 2]) == [LEFT]
    assert await left(streams, shard=[1, 2]) == [OTHERS]


async def test_what_was_told_is_not_told_again(streams: JetStreamContext) -> None:
    await said(streams, "GUILD_DELETE", LEFT)
    await said(streams, "GUILD_DELETE", OTHERS, unavailable=True)  # an outage of Discord
    assert await left(streams) == [OTHERS]


async def test_what_cannot_be_read_is_told(streams: JetStreamContext) -> None:
    await streams.publish(f"places.{LEFT}", b"odd", stream=PLACES)
    assert await left(streams, shard=[0, 2]) == [LEFT]


@pytest.mark.parametrize("listed", [None, {}, "x"])
async def test_a_session_that_names_no_servers_says_nothing(streams: JetStreamContext, listed: object) -> None:
    assert await left(streams, guilds=listed) == []


async def test_an_entry_without_an_id_names_no_server(streams: JetStreamContext) -> None:
    assert await left(streams, guilds=[{}, {"id": str(HERE)}, {"id": str(OTHERS)}]) == [LEFT]


async def test_without_an_answer_of_nats_they_stay_known(
    streams: JetStreamContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object, **__: object) -> None:
        raise NoAnswer

    monkeypatch.setattr(JetStreamContext, "stream_info", silent)
    assert await left(streams) == []
