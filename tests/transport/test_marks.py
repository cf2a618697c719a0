"""How far each place was handed on, over a restart."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

import nats.errors
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from model.messages import DISCORD_EPOCH_MS
from tests.transport.connected import client
from transport import watermarks as module
from transport.connection import streams_of
from transport.streams import SEEN
from transport.watermarks import PublishWatermarks, open_watermarks

__all__ = ["client"]

DAY = 86_400_000 << 22  # of ids


class Bucket:
    """Counts what is written, and refuses it where told so."""

    def __init__(self) -> None:
        self.written: list[tuple[str, bytes]] = []
        self.refuses = False
        self.tried = 0

    async def put(self, key: str, value: bytes) -> None:
        self.tried += 1
        if self.refuses:
            raise nats.errors.TimeoutError
        self.written.append((key, value))


def marks_on(bucket: Bucket, kept: Mapping[int, Mapping[int, int]] | None = None) -> PublishWatermarks:
    return PublishWatermarks(bucket, kept or {})  # pyright: ignore[reportArgumentType] (a stand-in)


def test_a_mark_is_below_everything_that_is_under_way_and_never_goes_back() -> None:
    marks = marks_on(Bucket())
    ended = {number: marks.note_publishing(7, 10, number) for number in (100, 103, 101)}
    assert marks.by_place() == {10: 99}
    ended[100]()
    assert marks.by_place() == {10: 100}
    ended[103]()
    assert marks.by_place() == {10: 100}
    ended[101]()
    assert marks.by_place() == {10: 103}
    marks.note_publishing(7, 10, 50)
    assert marks.by_place() == {10: 103}


def test_a_message_that_overtook_another_counts_up_to_that_one() -> None:
    marks = marks_on(Bucket())
    marks.note_publishing(7, 10, 100)
    marks.note_publishing(7, 10, 200)()
    assert marks.by_place() == {10: 99}


async def test_only_servers_in_which_something_was_confirmed_are_written() -> None:
    bucket = Bucket()
    marks = marks_on(bucket, {5: {50: 1}})
    marks.note_publishing(6, 60, 9)
    marks.note_publishing(7, 70, 8)()
    await marks.save()
    await marks.save()
    assert bucket.written == [("7", b'{"70":"8"}')]


async def test_a_write_that_fails_is_made_up_for(caplog: pytest.LogCaptureFixture) -> None:
    bucket = Bucket()
    marks = marks_on(bucket)
    marks.note_publishing(7, 70, 8)()
    bucket.refuses = True
    for _ in range(3):
        await marks.save()
    bucket.refuses = False
    await marks.save()
    assert bucket.written == [("7", b'{"70":"8"}')]
    assert len([each for each in caplog.records if each.levelno == logging.WARNING]) == 1


async def test_while_nats_is_away_not_each_server_is_tried() -> None:
    bucket = Bucket()
    marks = marks_on(bucket)
    for guild_id in range(100):
        marks.note_publishing(guild_id, guild_id + 1000, 8)()
    bucket.refuses = True
    await marks.save()
    assert bucket.tried <= module.WRITE_AT_ONCE
    bucket.refuses = False
    await marks.save()
    assert len(bucket.written) == 100


async def test_the_first_time_that_a_server_is_met_counts_for_its_places_without_messages() -> None:
    marks = marks_on(Bucket())
    marks.note_guild(7, DISCORD_EPOCH_MS / 1000 + 1)
    marks.note_guild(7, DISCORD_EPOCH_MS / 1000 + 9)
    assert marks.by_place() == {-7: 1000 << 22}


async def test_places_that_are_quiet_for_long_are_left_to_the_mark_of_their_server() -> None:
    bucket = Bucket()
    marks = marks_on(bucket, {7: {-7: 1, 10: 5, 11: 2 * DAY}})
    waiting = marks.note_publishing(7, 12, 6)
    marks.note_publishing(7, 13, 31 * DAY)()
    await marks.save()
    assert marks.by_place() == {-7: 1, 11: 2 * DAY, 12: 5, 13: 31 * DAY}
    waiting()
    await marks.save()
    assert 12 not in marks.by_place()


async def test_of_too_many_places_the_longest_quiet_ones_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PLACES", 2)
    marks = marks_on(Bucket())
    for place in (10, 11, 12):
        marks.note_publishing(7, place, 100 - place)()
    await marks.save()
    assert marks.by_place() == {10: 90, 11: 89}


@pytest.mark.real_time
async def test_the_next_process_goes_on_where_the_last_one_was(client: Client) -> None:
    async with open_watermarks(streams_of(client), write_seconds=3600) as marks:
        marks.note_guild(7, DISCORD_EPOCH_MS / 1000)
        marks.note_guild(7, DISCORD_EPOCH_MS / 1000 + 5)
        marks.note_guild(8, DISCORD_EPOCH_MS / 1000 + 5)
        marks.note_publishing(7, 10, 1 << 60)()
        marks.note_publishing(8, 20, 1 << 60)()
    async with open_watermarks(streams_of(client)) as marks:
        assert marks.by_place() == {-7: 0, 10: 1 << 60, -8: 5000 << 22, 20: 1 << 60}
    async with open_watermarks(streams_of(client), is_ours=lambda guild_id: guild_id == 7) as marks:
        assert marks.by_place() == {-7: 0, 10: 1 << 60}


@pytest.mark.real_time
async def test_marks_are_written_while_it_runs(client: Client) -> None:
    written: asyncio.Queue[bytes] = asyncio.Queue()

    async def hear(message: Msg) -> None:
        written.put_nowait(message.data)

    await client.subscribe(f"$KV.{SEEN}.7", cb=hear)
    async with open_watermarks(streams_of(client), write_seconds=0.01) as marks, asyncio.timeout(10):
        marks.note_publishing(7, 10, 5)()
        assert await written.get() == b'{"10":"5"}'


@pytest.mark.real_time
async def test_damage_is_left_out(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    bucket = await streams_of(client).key_value(SEEN)
    for key, value in (("x", b"{}"), ("5", b"["), ("6", b"[1]"), ("7", b'{"a":"1"}'), ("8", b'{"10":"1"}')):
        await bucket.put(key, value)
    async with open_watermarks(streams_of(client)) as marks:
        assert marks.by_place() == {10: 1}
    assert caplog.text.count("damaged and left out") == 4
