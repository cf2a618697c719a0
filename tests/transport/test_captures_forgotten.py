"""Captures on their way to the archive, of somebody who is to be forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from dataflow import of_type
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind
from services.team import Capture, Revision
from services.team.archive import PairTurn, Speaker
from services.team.captures import CapturedMessage
from tests.transport.connected import client, until
from transport import captures
from transport.captures import CaptureReceiver, CaptureSender
from transport.connection import streams_of
from transport.streams import CAPTURES

__all__ = ["client"]

pytestmark = pytest.mark.real_time

ADA, BEN, HELPER = 42, 43, 1


def capture_of(asker_id: int, number: int) -> Capture:
    message = Message(number, 7, Author(HELPER, "helper"), "", 1.0, 5)
    part = Part(number, (message,), AuthorType.TEAM_MEMBER, Place(7, PlaceKind.CHANNEL, guild_id=5), 1.0)
    said = (
        CapturedMessage(number - 1, asker_id, PairTurn(Speaker.USER, "What is it?")),
        CapturedMessage(number, HELPER, PairTurn(Speaker.TEAM, "This.")),
    )
    return Capture(part, f"reply_{number}", said)


@pytest.fixture
async def handed(client: Client) -> AsyncGenerator[CaptureReceiver]:
    writer = CaptureReceiver(client, "writer", lease_seconds=3)
    yield writer
    await writer.lease.release()


async def left(client: Client) -> int:
    return (await streams_of(client).stream_info(CAPTURES)).state.messages


async def test_what_waits_for_the_archive_is_dropped(client: Client, handed: CaptureReceiver) -> None:
    """Pitfall 49."""
    given = CaptureSender(client)
    for number, asker_id in ((10, ADA), (20, BEN), (30, ADA)):
        await given.send(capture_of(asker_id, number))
    assert await handed.take()
    assert await handed.forget(ADA) == 2
    emitted: list[str] = []
    handed.captures.pipe(of_type(Capture)).subscribe(lambda capture: emitted.append(capture.conversation_id))
    handed.begin()
    await given.send(capture_of(ADA, 40))  # said after they were forgotten
    await until(lambda: len(emitted) == 2)
    assert emitted == ["reply_20", "reply_40"]


async def test_edits_of_theirs_are_dropped_and_deletions_stay(client: Client, handed: CaptureReceiver) -> None:
    given = CaptureSender(client)
    for revision in (Revision(10, "What is this?", ADA), Revision(10), Revision(20, "And this?", BEN)):
        await given.send_revisions(5, [revision])
    assert await handed.take()
    assert await handed.forget(ADA) == 1
    assert await left(client) == 2


async def test_what_is_being_stored_is_waited_for(client: Client, handed: CaptureReceiver) -> None:
    assert await handed.take()
    emitted: list[Capture] = []
    handed.captures.pipe(of_type(Capture)).subscribe(emitted.append)
    handed.begin()
    await CaptureSender(client).send(capture_of(ADA, 10))
    await until(lambda: emitted)
    forgetting = asyncio.create_task(handed.forget(ADA))
    await streams_of(client).stream_info(CAPTURES)
    assert not forgetting.done()
    part = emitted[0].part
    assert part is not None
    handed.on_result(Outcome(part, 1.0, OutcomeKind.CAPTURED))
    assert await forgetting <= 1  # its acknowledgement is on its way
    assert await left(client) == 0


async def test_what_is_acknowledged_between_look_and_deletion_is_gone(
    client: Client, handed: CaptureReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user_id, message_id in ((BEN, 10), (ADA, 20), (BEN, 30)):
        await CaptureSender(client).send(capture_of(user_id, message_id))
    delete = JetStreamContext.delete_msg

    async def deleted_before(streams: JetStreamContext, stream: str, number: int) -> bool:
        await delete(streams, stream, number)
        return await delete(streams, stream, number)

    monkeypatch.setattr(JetStreamContext, "delete_msg", deleted_before)
    assert await handed.forget(ADA) == 0
    assert await left(client) == 2


async def test_what_stays_in_hand_is_an_error(
    client: Client, handed: CaptureReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captures, "FORGET_SECONDS", 0.1)
    assert await handed.take()
    emitted: list[Capture] = []
    handed.captures.pipe(of_type(Capture)).subscribe(emitted.append)
    handed.begin()
    await CaptureSender(client).send(capture_of(ADA, 10))
    await until(lambda: emitted)
    with pytest.raises(OSError, match="captures on their way"):
        await handed.forget(ADA)
    assert await left(client) == 1
