"""What a gateway hands on, read back from a real server."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import logging
import signal
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest
from nats.aio.client import Client

from services.discord import Dispatch
from services.discord.wire import Decoder
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client, until
from transport.connection import streams_of
from transport.dispatches import decode_compressed, decode_line, encode_line, place_payload
from transport.gateway_publisher import Publisher, open_publisher
from transport.watermarks import PublishWatermarks, open_watermarks

__all__ = ["client"]

pytestmark = pytest.mark.real_time

GUILD, BOT = 700, 42
READY = Dispatch(1.0, "READY", {"user": {"id": str(BOT)}})


@pytest.fixture
async def marks(client: Client) -> AsyncGenerator[PublishWatermarks]:
    async with open_watermarks(streams_of(client)) as made:
        yield made


@pytest.fixture
async def out(client: Client, marks: PublishWatermarks) -> AsyncGenerator[Publisher]:
    async with open_publisher(client, marks) as made:
        yield made


def message(number: int, channel: int = 10, **more: object) -> Dispatch:
    fields = {"id": str(number), "channel_id": str(channel), "guild_id": str(GUILD), "content": f"m{number}", **more}
    return Dispatch(1770000000.25, "MESSAGE_CREATE", fields)


async def stored(client: Client, stream: str) -> list[tuple[str, dict[str, str], bytes]]:
    """Everything in a stream, without taking it out: subject, headers, data."""
    streams = streams_of(client)
    state = (await streams.stream_info(stream)).state
    numbers = range(state.first_seq, state.last_seq + 1) if state.messages else range(0)
    found = [await streams.get_msg(stream, number) for number in numbers]
    return [(each.subject or "", cast("dict[str, str]", each.headers or {}), each.data or b"") for each in found]


async def sent(client: Client) -> list[Dispatch]:
    return [decode_line(data) for _, _, data in await stored(client, "MESSAGES")]


async def told(client: Client) -> list[Dispatch]:
    return [decode_compressed(data) for _, _, data in await stored(client, "PLACES")]


async def test_messages_lie_in_the_partition_of_their_place_in_order(client: Client, out: Publisher) -> None:
    places = {number: 10 + number * number % 50 for number in range(1, 1001)}
    for number, place in places.items():
        await out.publish(message(number, place))
    await out.drain()
    found = await stored(client, "MESSAGES")
    assert len(found) == 1000
    by_place: dict[str, list[int]] = {}
    for subject, headers, data in found:
        name, _partition, place = subject.split(".")
        dispatch = decode_line(data)
        assert (name, place) == ("messages", dispatch.d["channel_id"])
        assert headers["Nats-Msg-Id"] == f"C:{dispatch.d['id']}"
        by_place.setdefault(place, []).append(int(str(dispatch.d["id"])))
    assert all(numbers == sorted(numbers) for numbers in by_place.values())
    assert len({subject for subject, _, _ in found}) == len(by_place)


async def test_what_another_gateway_has_published_is_refused(
    client: Client, marks: PublishWatermarks, out: Publisher
) -> None:
    messages = [message(number, number % 30) for number in range(1, 401)]
    for each in messages:
        await out.publish(each)
    await out.drain()
    async with open_publisher(client, marks) as second:
        for each in messages:
            await second.publish(each)
        await second.drain()
        assert second.ordered_publisher.repeats == 400
    assert out.ordered_publisher.repeats == 0
    assert len(await sent(client)) == 400


async def test_edits_and_deletions_count_once_too_and_each_edit_for_itself(client: Client, out: Publisher) -> None:
    place = {"id": "5", "channel_id": "10", "guild_id": str(GUILD)}
    for time in ("t1", "t2", "t2"):
        await out.publish(Dispatch(1.0, "MESSAGE_UPDATE", {**place, "edited_timestamp": time}))
    for _ in range(2):
        await out.publish(Dispatch(1.0, "MESSAGE_DELETE", place))
    await out.drain()
    assert [each.t for each in await sent(client)] == ["MESSAGE_UPDATE", "MESSAGE_UPDATE", "MESSAGE_DELETE"]


async def test_types_that_nobody_reads_and_those_without_a_place_go_nowhere(client: Client, out: Publisher) -> None:
    for each in (
        READY,
        Dispatch(1.0, "RESUMED", {}),
        Dispatch(1.0, "PRESENCE_UPDATE", {"guild_id": "1", "channel_id": "1"}),
        Dispatch(1.0, "MESSAGE_CREATE", {"id": "1", "channel_id": "a.b"}),
        Dispatch(1.0, "MESSAGE_CREATE", {"id": "1"}),
        Dispatch(1.0, "GUILD_CREATE", {"id": ">"}),
    ):
        await out.publish(each)
    await out.drain()
    assert out.ordered_publisher.stored == 0


async def test_what_is_no_json_is_one_line_and_left_out(
    client: Client, out: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    await out.publish(message(1, odd=float("nan")))
    await out.publish(message(2))
    await out.drain()
    assert "one MESSAGE_CREATE cannot be handed on" in caplog.text
    assert [each.d["id"] for each in await sent(client)] == ["2"]


async def test_a_channel_and_a_thread_are_told_to_the_server_and_to_their_own_lane(
    client: Client, out: Publisher
) -> None:
    for type_ in ("CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE", "THREAD_CREATE", "THREAD_DELETE"):
        await out.publish(Dispatch(1.0, type_, {"id": "11", "guild_id": str(GUILD), "type": 0}))
    for type_ in ("GUILD_ROLE_UPDATE", "GUILD_MEMBER_UPDATE", "THREAD_LIST_SYNC", "THREAD_MEMBERS_UPDATE"):
        await out.publish(Dispatch(1.0, type_, {"id": "11", "guild_id": str(GUILD)}))
    await out.drain()
    own, all_ = [each.t for each in await sent(client)], [each.t for each in await told(client)]
    assert own == ["CHANNEL_CREATE", "CHANNEL_UPDATE", "CHANNEL_DELETE", "THREAD_CREATE", "THREAD_DELETE"]
    assert all_ == [*own, "GUILD_ROLE_UPDATE", "GUILD_MEMBER_UPDATE", "THREAD_LIST_SYNC", "THREAD_MEMBERS_UPDATE"]
    assert {subject for subject, _, _ in await stored(client, "PLACES")} == {f"places.{GUILD}"}


GUILD_PAYLOAD: dict[str, Any] = {
    "id": str(GUILD),
    "name": "Harbour",
    "owner_id": "1",
    "unavailable": False,
    "roles": [{"id": str(GUILD), "permissions": "1024"}],
    "channels": [{"id": "10", "type": 0, "name": "help", "position": 0}],
    "threads": [{"id": "20", "type": 11, "name": "t", "parent_id": "10", "owner_id": "1"}],
    "members": [{"user": {"id": "1"}, "roles": []}, {"user": {"id": str(BOT)}, "roles": ["9"]}, {"odd": 1}],
    "presences": [{"user": {"id": "1"}}],
    "voice_states": [{"user_id": "1"}],
    "emojis": [{"id": "3"}],
    "stickers": [{"id": "3"}],
    "soundboard_sounds": [{"sound_id": "3"}],
    "guild_scheduled_events": [{"id": "3"}],
    "stage_instances": [{"id": "3"}],
    "what_comes_next": [{"id": "3"}],
}


async def test_a_server_is_told_without_its_people_and_replaces_what_was_told_before(
    client: Client, out: Publisher
) -> None:
    await out.publish(READY)
    await out.publish(Dispatch(1.0, "GUILD_CREATE", GUILD_PAYLOAD | {"name": "Old"}))
    await out.publish(Dispatch(1.0, "CHANNEL_CREATE", {"id": "11", "guild_id": str(GUILD), "type": 0}))
    await out.publish(Dispatch(2.0, "GUILD_CREATE", GUILD_PAYLOAD))
    await out.publish(Dispatch(3.0, "GUILD_DELETE", {"id": str(GUILD), "unavailable": True}))
    await out.drain()
    found = await told(client)
    kept = {name: GUILD_PAYLOAD[name] for name in ("id", "name", "owner_id", "unavailable", "roles")}
    kept |= {name: GUILD_PAYLOAD[name] for name in ("channels", "threads")}
    kept["members"] = [{"user": {"id": str(BOT)}, "roles": ["9"]}]
    assert [each.t for each in found] == ["GUILD_CREATE", "GUILD_DELETE"]
    assert found[0] == Dispatch(2.0, "GUILD_CREATE", kept)
    assert Decoder().decode(found[0]) == Decoder().decode(Dispatch(2.0, "GUILD_CREATE", GUILD_PAYLOAD))


async def test_of_a_server_that_the_bot_has_left_nothing_is_kept_but_that(client: Client, out: Publisher) -> None:
    await out.publish(Dispatch(2.0, "GUILD_CREATE", GUILD_PAYLOAD))
    await out.publish(Dispatch(3.0, "GUILD_DELETE", {"id": str(GUILD)}))
    await out.drain()
    assert await told(client) == [Dispatch(3.0, "GUILD_DELETE", {"id": str(GUILD)})]


async def test_a_change_of_the_server_itself_is_told_without_its_emojis(client: Client, out: Publisher) -> None:
    await out.publish(Dispatch(1.0, "GUILD_UPDATE", {"id": str(GUILD), "name": "Dock", "emojis": [{"id": "3"}]}))
    await out.drain()
    assert await told(client) == [Dispatch(1.0, "GUILD_UPDATE", {"id": str(GUILD), "name": "Dock"})]


async def test_after_many_changes_a_server_is_told_whole_again(client: Client, marks: PublishWatermarks) -> None:
    async with open_publisher(client, marks, summarise_after=3) as out:
        await out.publish(READY)
        await out.publish(Dispatch(1.0, "GUILD_CREATE", GUILD_PAYLOAD))
        for number in range(11, 15):
            await out.publish(Dispatch(2.0, "CHANNEL_CREATE", {"id": str(number), "guild_id": str(GUILD), "type": 0}))
        await out.drain()
    arrival, last = await told(client)
    assert arrival.t == "GUILD_CREATE"
    channels = cast("list[dict[str, Any]]", arrival.d["channels"])
    assert [each["id"] for each in channels] == ["10", "11", "12", "13"]
    assert (last.t, last.d["id"]) == ("CHANNEL_CREATE", "14")


async def test_an_interaction_is_kept_for_as_long_as_its_token_is_good(client: Client, out: Publisher) -> None:
    asked = Dispatch(1.5, "INTERACTION_CREATE", {"id": "9", "channel_id": "10", "guild_id": "7", "token": "secret"})
    for _ in range(2):
        await out.publish(asked)
    await out.drain()
    [(_, headers, data)] = await stored(client, "MESSAGES")
    assert (headers["Nats-TTL"], headers["Nats-Msg-Id"]) == ("15m", "I:9")
    assert decode_line(data) == asked


async def test_a_message_in_a_thread_says_where_it_was_written(client: Client, marks: PublishWatermarks) -> None:
    thread = {"id": "20", "type": 11, "parent_id": "10", "owner_id": "5", "name": "Zürich\r\nNats-TTL: 1s 🚢"}
    async with open_publisher(
        client, marks, lambda guild, place: thread if (guild, place) == (GUILD, 20) else None
    ) as out:
        await out.publish(message(1, 20))
        await out.publish(message(2, 10))
        await out.publish(Dispatch(1.0, "THREAD_UPDATE", {**thread, "guild_id": str(GUILD)}))
        await out.drain()
    found = {
        decode_line(data).t + str(decode_line(data).d["id"]): headers
        for _, headers, data in await stored(client, "MESSAGES")
    }
    assert place_payload(found["MESSAGE_CREATE1"]) == thread
    assert place_payload(found["MESSAGE_CREATE2"]) is None
    assert place_payload(found["THREAD_UPDATE20"]) is None
    assert "Nats-TTL" not in found["MESSAGE_CREATE1"]
    # All of it goes to the partition of the channel.
    assert {subject.rpartition(".")[2] for subject, _, _ in await stored(client, "MESSAGES")} == {"10"}


@pytest.mark.parametrize("written", ["", "[]", "{", "[" * 100_000])
def test_a_header_that_says_no_place_is_none(written: str) -> None:
    assert place_payload({"Place": written}) is None
    assert place_payload(None) is None


@pytest.mark.slow
async def test_a_server_that_is_killed_loses_nothing_and_changes_no_order(
    client: Client,
    nats_server: NatsServer,
    out: Publisher,
    marks: PublishWatermarks,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)

    async def publish() -> None:
        for number in range(1, 3001):
            await out.publish(message(number, 10 + number % 20))
            if number % 20 == 0:
                await asyncio.sleep(0)

    publishing = asyncio.create_task(publish())
    await until(lambda: out.ordered_publisher.stored >= 300)
    nats_server.end(signal.SIGKILL)
    await publishing
    confirmed = out.ordered_publisher.stored
    assert confirmed < 3000
    assert all(below <= 3000 for below in marks.by_place().values())
    nats_server.start()
    await out.drain()
    found = await sent(client)
    by_place: dict[object, list[int]] = {}
    for each in found:
        by_place.setdefault(each.d["channel_id"], []).append(int(str(each.d["id"])))
    assert len(found) == 3000
    assert all(numbers == sorted(set(numbers)) for numbers in by_place.values())
    assert marks.by_place() == {place: max(numbers) for place, numbers in by_number(by_place).items()}


def by_number(places: dict[object, list[int]]) -> dict[int, list[int]]:
    return {int(str(place)): numbers for place, numbers in places.items()}


async def test_marks_never_pass_what_is_not_confirmed(
    client: Client, nats_server: NatsServer, out: Publisher, marks: PublishWatermarks
) -> None:
    """Pitfall 25."""
    await out.publish(message(100, 10))
    await out.drain()
    nats_server.end(signal.SIGKILL)
    await until(lambda: not client.is_connected)
    for number in (101, 102):
        await out.publish(message(number, 10))
    await out.publish(message(200, 11))
    assert marks.by_place() == {10: 100, 11: 199}
    nats_server.start()
    await out.drain()
    assert marks.by_place() == {10: 102, 11: 200}


async def test_a_stream_that_is_full_is_waited_for(
    client: Client, out: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    streams = streams_of(client)
    config = (await streams.stream_info("MESSAGES")).config
    await streams.update_stream(config.evolve(max_msgs=5))
    for number in range(1, 9):
        await out.publish(message(number, number))
    await until(lambda: out.ordered_publisher.stored == 5 and caplog.records)
    assert "NATS does not take messages: maximum messages exceeded (error 10077)" in caplog.text
    await streams.purge_stream("MESSAGES")
    await out.drain()
    assert out.ordered_publisher.stored == 8
    assert out.ordered_publisher.refused == 0


async def test_a_message_that_only_its_headers_make_too_large_ends_no_connection(
    client: Client, out: Publisher, caplog: pytest.LogCaptureFixture
) -> None:
    line = len(encode_line(message(1, content="")))
    await out.publish(message(1, content="x" * (client.max_payload - line)))
    await out.publish(message(2))
    await out.drain()
    assert out.ordered_publisher.refused == 1
    assert client.stats["reconnects"] == 0
    assert "max_payload" in caplog.text


def test_an_interaction_nested_too_deep_is_a_value_error() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deep"):
        encode_line(Dispatch(1.0, "INTERACTION_CREATE", {"d": deep}))
    assert json.loads(encode_line(Dispatch(1.0, "INTERACTION_CREATE", {"d": 1})))["d"] == {"d": 1}
