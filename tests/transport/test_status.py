"""Every process says what it does when it is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from assembly.distributed.process import memory_mb
from model.processes import ProcessStatus
from tests.loopback.nats_server import NatsServer
from transport.connection import Address, connect
from transport.members import STATUS_SUBJECT, answer_status, gather_statuses

pytestmark = pytest.mark.real_time

ONE = ProcessStatus(
    name="one", roles=("worker",), version="0.1.0", uptime_seconds=1.5, partitions={3: 2, 4: 0}, results={"replied": 7}
)
TWO = ProcessStatus(name="two", roles=("gateway", "team"), version="0.1.0", uptime_seconds=2.0)


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    connected = await connect(Address((nats_server.url,)), "test")
    yield connected
    await connected.close()


async def test_all_that_are_there_answer(client: Client) -> None:
    answering = [await answer_status(client, lambda status=status: status) for status in (TWO, ONE)]
    assert await gather_statuses(client, 30.0, expected=2) == [ONE, TWO]
    assert ONE.in_flight == 2
    await answering[0].unsubscribe()
    assert await gather_statuses(client, 30.0, expected=1) == [ONE]


async def test_who_does_not_answer_is_left_out(client: Client) -> None:
    assert await gather_statuses(client, 0.05) == []
    await answer_status(client, lambda: ONE)
    assert await gather_statuses(client, 1.0, expected=2) == [ONE]


async def test_an_answer_of_another_version_is_left_out(client: Client) -> None:
    async def strange(message: Msg) -> None:
        await client.publish(message.reply, b'{"name": 3}')

    await client.subscribe(STATUS_SUBJECT, cb=strange)  # pyright: ignore[reportUnknownMemberType]
    await answer_status(client, lambda: TWO)
    assert await gather_statuses(client, 30.0, expected=1) == [TWO]


async def test_what_is_said_to_nobody_is_not_answered(client: Client) -> None:
    await answer_status(client, lambda: ONE)
    await client.publish(STATUS_SUBJECT)
    assert await gather_statuses(client, 30.0, expected=1) == [ONE]


def test_memory_is_told_where_the_system_tells_it() -> None:
    assert 10 < memory_mb() < 10_000
