"""A connection to a server with nothing in it but the streams. Tests import the fixture by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest
from nats.aio.client import Client

from tests.loopback.nats_server import NatsServer
from transport.connection import Address, connect
from transport.layout import Layout, clear, prepare


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    connected = await connect(Address((nats_server.url,)), "test")
    await clear(connected)
    await prepare(connected, Layout())
    yield connected
    await connected.close()


async def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 (nobody tells when it is so)
            await asyncio.sleep(0)
