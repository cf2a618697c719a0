"""A store over a bucket of NATS, emptied before."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from services.documents.store import SharedStore, SqliteCollections
from tests.loopback.nats_server import delete_all_streams
from tests.services.documents import cases
from transport.connection import Address, connect
from transport.document_store import CollectionReplicas
from transport.streams import Layout, create_streams


@asynccontextmanager
async def opened(address: str, folder: Path) -> AsyncGenerator[SharedStore]:
    """`address`: of the server."""
    client = await connect(Address((address,)), "test")
    await delete_all_streams(client)
    await create_streams(client, Layout())
    yield SharedStore(CollectionReplicas(client, folder, SqliteCollections(cases.folders(folder))))
    await client.close()
