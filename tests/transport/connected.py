"""A connection to a server with nothing in it but the streams. Tests import the fixture by name."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest
from nats.aio.client import Client

from tests.loopback.nats_server import NatsServer, delete_all_streams
from tests.waiting import wait_until
from transport.connection import Address, connect
from transport.streams import Layout, create_streams


@asynccontextmanager
async def begun_anew(server: NatsServer, layout: Layout | None = None) -> AsyncGenerator[Client]:
    """A connection for the time of the block, after everything was deleted and the streams were made."""
    connected = await connect(Address((server.url,)), "test")
    await delete_all_streams(connected)
    await create_streams(connected, layout or Layout())
    yield connected
    await connected.close()


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    async with begun_anew(nats_server) as connected:
        yield connected


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    await wait_until(condition, seconds)
