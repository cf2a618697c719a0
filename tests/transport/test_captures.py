"""Captures on their way from the workers to the one who keeps the archive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import TimeoutError as NatsTimeout

from assembly.distributed.worker import sending_capture_parts
from clock import now
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind, snowflake_time
from model.outcomes import Outcome, OutcomeKind, Reason
from services.team import Capture, CapturedMessage, PairTurn, Revision, Speaker
from settings import load
from streams.captures import RemoteRevisions
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import begun_anew
from tests.waiting import wait_until
from transport.captures import CaptureReceiver, CaptureSender, parse_part, render_part
from transport.connection import streams_of
from transport.streams import CAPTURES, Layout

pytestmark = pytest.mark.real_time

LEASE = 1.0


def capture(message_id: int) -> Capture:
    author, place = Author(2, "tom"), Place(8, PlaceKind.THREAD, guild_id=9, parent_id=7)
    message = Message(message_id, 8, author, "use --restore", snowflake_time(message_id), 9)
    part = Part(3, (message,), AuthorType.TEAM_MEMBER, place, 0.0)
    asked = CapturedMessage(message_id - 1, 1, PairTurn(Speaker.USER, "how?"))
    return Capture(part, "thread_8", (asked, CapturedMessage(message_id, 2, PairTurn(Speaker.TEAM, "use --restore"))))


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    async with begun_anew(nats_server, Layout(lease_seconds=LEASE)) as connected:
        yield connected


async def until(true: Callable[[], object]) -> None:
    await wait_until(true, 10)


async def until_left(client: Client, count: int) -> None:
    async with asyncio.timeout(10):
        while (await streams_of(client).stream_info(CAPTURES)).state.messages != count:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)


class Writer:
    """Takes captures, and says of each how it ended."""

    def __init__(self, client: Client, name: str) -> None:
        self.handed = CaptureReceiver(client, name, lease_seconds=LEASE)
        self.got: list[Capture] = []
        self.revised: list[RemoteRevisions] = []
        self.handed.captures.subscribe(self.take)

    def take(self, given: Capture | RemoteRevisions) -> None:
        if isinstance(given, Capture):
            self.got.append(given)
        else:
            self.revised.append(given)

    def end(self, given: Capture, kind: OutcomeKind = OutcomeKind.CAPTURED, reason: str | None = None) -> None:
        assert given.part is not None
        self.handed.on_result(Outcome(given.part, now(), kind, reason))


async def test_a_part_keeps_the_ids_that_an_archive_needs() -> None:
    part = capture(50).part
    assert part is not None
    read = parse_part(render_part(part), 5)
    assert (read.number, read.place.id, read.place.guild_id, read.place.parent_id) == (5, 8, 9, 7)
    assert (read.message_ids, read.author.id, read.place.is_thread) == ((50,), 2, True)
    assert "restore" not in render_part(part)


async def test_one_writer_gets_what_was_said_in_order_and_once(client: Client) -> None:
    giving, writer, other = CaptureSender(client), Writer(client, "one"), Writer(client, "two")
    assert await writer.handed.take()
    assert not await other.handed.take()
    for message_id in (50, 60, 60, 70):
        await giving.send(capture(message_id))
    assert writer.got == []
    writer.handed.begin()
    await until(lambda: len(writer.got) == 3)
    assert [each.messages[-1].message_id for each in writer.got] == [50, 60, 70]
    assert writer.got[0].messages == capture(50).messages
    for each in writer.got:
        writer.end(each)
    await until_left(client, 0)
    await writer.handed.release()


async def test_edits_deletions_and_doubts_come_once_and_stay_until_they_are_stored(client: Client) -> None:
    giving, writer = CaptureSender(client), Writer(client, "one")
    edited, deleted = Revision(50, "use --restore now", 2, 1), Revision(60)
    doubted = Revision(50, is_doubt=True)
    await giving.send_revisions(9, [edited, doubted, deleted])
    await giving.send_revisions(None, [deleted])
    assert await writer.handed.take()
    writer.handed.begin()
    await until(lambda: len(writer.revised) == 2)
    assert [(each.guild_id, each.revisions) for each in writer.revised] == [
        (9, (edited, doubted, deleted)),
        (None, (deleted,)),
    ]
    await until_left(client, 2)
    for each, is_stored in zip(writer.revised, (True, False), strict=True):
        each.on_handled(is_stored)
    await until_left(client, 1)
    await writer.handed.release()


async def test_a_later_worker_hands_on_what_changes_in_a_capture_that_waits(client: Client, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"app: {{data_dir: {tmp_path}}}")
    sender, settings = CaptureSender(client), load(tmp_path / "config.yaml")
    later = sending_capture_parts(settings, client, lambda _: False)
    for changed in (Revision(50), Revision(49, "why?", 1)):
        await later.revise(9, [changed])
    await until_left(client, 0)  # it is in no capture
    await later.revise(None, [Revision(0, is_doubt=True, pair_id="qa_1")])
    await until_left(client, 1)  # it was shown by the bot, so that the archive knows it
    await sender.send(capture(50))
    await later.revise(9, [Revision(50)])
    await until_left(client, 3)


async def test_what_was_not_stored_comes_again_to_the_next_writer(client: Client) -> None:
    giving, first, second = CaptureSender(client), Writer(client, "one"), Writer(client, "two")
    assert await first.handed.take()
    first.handed.begin()
    for message_id in (50, 60, 70):
        await giving.send(capture(message_id))
    await until(lambda: len(first.got) == 3)
    first.end(first.got[0])
    first.end(first.got[1], OutcomeKind.CANCELLED, Reason.SHUTDOWN)
    await until_left(client, 2)
    first.handed.stop()
    await first.handed.release()
    assert await second.handed.take()
    second.handed.begin()
    await until(lambda: len(second.got) == 2)
    assert [each.messages[-1].message_id for each in second.got] == [60, 70]
    await second.handed.release()


async def test_a_server_that_is_away_is_waited_for(client: Client, nats_server: NatsServer) -> None:
    nats_server.end()
    giving = asyncio.create_task(CaptureSender(client).send(capture(50)))
    await asyncio.sleep(0.1)
    assert not giving.done()
    nats_server.start()
    async with asyncio.timeout(20):
        await giving
    await until_left(client, 1)


async def test_an_acknowledgement_that_is_lost_is_sent_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the capture stays in the stream for as long as its writer has the right to it."""
    sent, tries = Msg.ack_sync, list[float]()

    async def lost_once(message: Msg, timeout: float = 1.0) -> Msg:  # noqa: ASYNC109 (as the client has it)
        tries.append(timeout)
        if len(tries) == 1:
            raise NatsTimeout
        return await sent(message, timeout)

    monkeypatch.setattr(Msg, "ack_sync", lost_once)
    giving, writer = CaptureSender(client), Writer(client, "one")
    assert await writer.handed.take()
    writer.handed.begin()
    await giving.send(capture(50))
    await until(lambda: writer.got)
    writer.end(writer.got[0])
    await until_left(client, 0)
    assert len(tries) == 2
    await writer.handed.release()
