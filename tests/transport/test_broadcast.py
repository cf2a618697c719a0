"""What workers are told of places, and which of their partitions hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from nats.aio.client import Client

from clock import cancel_and_wait
from services.discord import Dispatch
from tests.transport.connected import client, until
from transport.connection import streams_of
from transport.dispatches import PlacesFollower, for_partition, partition_of_thread
from transport.gateway_publisher import Publisher, open_publisher
from transport.streams import partition_of
from transport.watermarks import open_watermarks

__all__ = ["client"]

pytestmark = pytest.mark.real_time

GUILD = "700"
PARTITIONS = 32
HERE, ELSEWHERE = "10", "11"
HOME = partition_of(int(HERE), PARTITIONS)


def said(type_: str, id_: str, parent: str | None = None, **more: Any) -> Dispatch:
    parents = {} if parent is None else {"parent_id": parent}
    return Dispatch(2.0, type_, {"id": id_, "guild_id": GUILD, "type": 0, **parents, **more})


ARRIVAL = Dispatch(1.0, "GUILD_CREATE", {"id": GUILD, "roles": [], "channels": [], "threads": []})


@pytest.fixture
async def out(client: Client) -> AsyncGenerator[Publisher]:
    """Tells a server whole again after every third change."""
    async with open_watermarks(streams_of(client)) as marks, open_publisher(client, marks, summarise_after=3) as made:
        yield made


async def test_who_has_heard_all_changes_is_not_told_the_server_anew(client: Client, out: Publisher) -> None:
    heard = list[str]()
    broadcast = PlacesFollower(client, lambda dispatch: heard.append(f"{dispatch.t} {dispatch.d['id']}"))
    following = asyncio.create_task(broadcast.follow())
    await out.publish(ARRIVAL)
    for number in range(11, 15):
        await out.publish(said("CHANNEL_CREATE", str(number)))
    await until(lambda: len(heard) == 5)
    await cancel_and_wait(following)  # before its client goes
    assert heard == ["GUILD_CREATE 700", *(f"CHANNEL_CREATE {number}" for number in range(11, 15))]
    # Who joins now begins with it.
    assert [each.t for each in broadcast.dispatches_so_far()] == ["GUILD_CREATE", "CHANNEL_CREATE"]


async def test_who_has_missed_changes_is_told_the_server_anew(client: Client, out: Publisher) -> None:
    heard = list[str]()
    broadcast = PlacesFollower(client, lambda dispatch: heard.append(f"{dispatch.t} {dispatch.d['id']}"))
    await out.publish(ARRIVAL)
    await out.drain()
    await broadcast.catch_up()
    for number in range(11, 15):  # while it does not listen; all but the last are in the arrival by then
        await out.publish(said("CHANNEL_CREATE", str(number)))
    await out.drain()
    following = asyncio.create_task(broadcast.follow())
    await until(lambda: len(heard) == 3)
    await cancel_and_wait(following)  # before its client goes
    assert heard == ["GUILD_CREATE 700", "GUILD_CREATE 700", "CHANNEL_CREATE 14"]


def test_a_thread_concerns_the_partition_of_its_channel_alone() -> None:
    assert partition_of(int(ELSEWHERE), PARTITIONS) != HOME
    for type_ in ("THREAD_CREATE", "THREAD_UPDATE", "THREAD_DELETE"):
        assert partition_of_thread(said(type_, "20", HERE), PARTITIONS) == HOME
        assert for_partition(said(type_, "20", HERE), HOME, PARTITIONS) == said(type_, "20", HERE)
        assert for_partition(said(type_, "20", ELSEWHERE), HOME, PARTITIONS) is None


@pytest.mark.parametrize(
    "dispatch",
    [said("CHANNEL_CREATE", "20", HERE), said("THREAD_CREATE", "20"), said("THREAD_LIST_SYNC", "20", threads=[])],
    ids=["a channel in a category", "a thread that names none", "many threads"],
)
def test_everything_else_concerns_all(dispatch: Dispatch) -> None:
    assert partition_of_thread(dispatch, PARTITIONS) is None
    assert for_partition(dispatch, 0, PARTITIONS) == for_partition(dispatch, 1, PARTITIONS) == dispatch


def test_of_a_server_a_partition_hears_of_its_own_threads() -> None:
    threads: list[object] = [{"id": "20", "parent_id": HERE}, {"id": "21", "parent_id": ELSEWHERE}, {"id": "22"}, "odd"]
    arrival = Dispatch(1.0, "GUILD_CREATE", {"id": GUILD, "channels": [{"id": HERE}], "threads": threads})
    told = for_partition(arrival, HOME, PARTITIONS)
    assert told is not None
    assert (told.d["id"], told.d["channels"]) == (GUILD, [{"id": HERE}])
    assert cast("list[object]", told.d["threads"]) == [{"id": "20", "parent_id": HERE}, {"id": "22"}, "odd"]


async def test_a_server_was_left_when_it_was_said(client: Client, out: Publisher) -> None:
    broadcast = PlacesFollower(client, lambda _: None)
    for guild_id, unavailable in (("1", None), ("2", True), ("3", False)):
        await out.publish(Dispatch(1.0, "GUILD_CREATE", {"id": guild_id, "channels": [], "threads": []}))
        if unavailable is not None:
            gone = {"id": guild_id, "unavailable": True} if unavailable else {"id": guild_id}
            await out.publish(Dispatch(2.0, "GUILD_DELETE", gone))
    await out.drain()
    await broadcast.catch_up()
    assert [broadcast.has_left(each) for each in (1, 2, 3, 4)] == [False, False, True, False]
