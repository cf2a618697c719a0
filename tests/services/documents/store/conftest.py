"""Servers that stores share: an imitated one, and Chroma's own where it is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from services.documents.store.document_store import DocumentStore
from tests.services.documents.store import chroma_server, imitated_chroma
from tests.transport.conftest import collected, nats_server

__all__ = ["collected", "nats_server"]

NewStore = Callable[[str], DocumentStore]
"""Of another process each time: its name goes in."""


@pytest.fixture(scope="session")
def chroma_address(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """Of a server that answers as long as the tests run. What tests leave there, they delete."""
    chroma_server.skip_where_there_is_none()
    named = os.environ.get(chroma_server.ADDRESS)
    if named:
        yield named
        return
    server = chroma_server.Server(tmp_path_factory.mktemp("chroma"))
    server.start()
    yield server.address
    server.kill()


@pytest.fixture
def own_server(tmp_path: Path) -> Generator[chroma_server.Server]:
    """Of this test alone, to be stopped and looked into."""
    chroma_server.skip_where_none_can_be_started()
    server = chroma_server.Server(tmp_path / "server")
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["imitated", "real"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> NewStore:
    """A store over the server that all of this test's stores share."""
    if request.param == "imitated":
        server = imitated_chroma.Chroma()
        return lambda name: imitated_chroma.new_store(tmp_path / name, server)
    address = str(request.getfixturevalue("chroma_address"))
    return lambda name: chroma_server.new_store(tmp_path / name, address)
