"""Two processes that serve the same people: what one learns or forgets the other knows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.client import Client

from assembly.documents import Documents, documents_for
from model.messages import Attachment
from services.documents import Candidate
from services.documents.store import Origin, SharedDocuments, SharedStore, StoreUnavailable, protocol
from services.documents.store.collection_files import SqliteCollections
from settings import Settings
from tests.loopback.nats_server import NatsServer
from tests.services.documents import cases
from tests.transport.connected import client
from tests.waiting import wait_until
from tests.world import Uploads
from transport.document_store import CollectionReplicas
from transport.people import SharedFlags

__all__ = ["client"]

pytestmark = pytest.mark.real_time

FILE = Candidate(
    case_id=cases.THREAD,
    guild_id=cases.GUILD,
    place_id=cases.THREAD,
    message_id=70,
    uploader_id=cases.FRAN,
    attachment=Attachment(700, "shop.log", 12, ""),
    at=1000.0,
)
BLOCK = replace(FILE, attachment=Attachment(70, "message-70-block-1.log", 12, ""), text="x")


@pytest.fixture
async def stack() -> AsyncGenerator[AsyncExitStack]:
    async with AsyncExitStack() as opened:
        yield opened


async def process(name: str, client: Client, folder: Path, stack: AsyncExitStack) -> Documents:
    root = folder / name
    store, notes = (
        SharedStore(CollectionReplicas(client, root, SqliteCollections(cases.folders(root)))),
        SharedFlags(client),
    )
    stack.push_async_callback(store.close)
    stack.push_async_callback(notes.aclose)
    together = SharedDocuments(store, notes)
    settings = Settings().resolve_paths(root)
    documents = await stack.enter_async_context(documents_for(settings, None, Uploads(), None, shared=together))
    assert documents is not None
    return documents


@pytest.fixture
async def one(client: Client, tmp_path: Path, stack: AsyncExitStack) -> Documents:
    return await process("one", client, tmp_path, stack)


@pytest.fixture
async def two(client: Client, tmp_path: Path, stack: AsyncExitStack) -> Documents:
    return await process("two", client, tmp_path, stack)


def unheard(_key: str, _value: bytes | None) -> None:
    raise AssertionError


async def until(true: Callable[[], bool]) -> None:
    await wait_until(true, 20)


async def test_a_runbook_is_known_everywhere(one: Documents, two: Documents) -> None:
    await one.runbooks.add(cases.FRAN, "runbook.md", cases.RUNBOOK.encode(), "Timeouts")
    await until(lambda: two.runbooks.titles(cases.FRAN) == ("Timeouts",))
    await two.runbooks.add(cases.FRAN, "other.md", b"# Other\n\nRestart the depot.\n", "Depot")
    await until(lambda: set(one.runbooks.titles(cases.FRAN)) == {"Timeouts", "Depot"})
    await two.runbooks.show_in_threads(cases.FRAN, shown=True)
    await until(lambda: one.runbooks.shown_in_threads(cases.FRAN))
    assert await one.forget(cases.FRAN) == (0, 2)
    await until(lambda: not two.runbooks.has_any(cases.FRAN) and not two.runbooks.shown_in_threads(cases.FRAN))


async def test_a_thread_with_files_is_known_everywhere(one: Documents, two: Documents) -> None:
    await cases.post(one.store, "shop.log", cases.LOG)
    await until(lambda: two.cases.has_files(cases.THREAD))
    await two.store.delete_collection(protocol.case_collection(str(cases.THREAD)))
    await until(lambda: not one.cases.has_files(cases.THREAD))


async def test_a_file_that_somebody_has_removed_is_read_by_nobody(
    one: Documents, two: Documents, client: Client, tmp_path: Path, stack: AsyncExitStack
) -> None:
    reading = two.cases.begin(FILE)
    assert reading is not None
    await one.cases.tombstones.add([FILE.origin, BLOCK.origin])
    await until(lambda: two.cases.tombstones.forbids(FILE) and two.cases.tombstones.forbids(BLOCK))
    assert reading.token.error is not None  # it is called off where it is being read
    later = await process("later", client, tmp_path, stack)
    assert later.cases.tombstones.forbids(FILE)
    await two.cases.tombstones.forget_messages([70])
    await until(lambda: not one.cases.tombstones.forbids(FILE) and not later.cases.tombstones.forbids(BLOCK))


async def test_that_a_thread_was_closed_is_known_everywhere(one: Documents, two: Documents) -> None:
    await one.cases.tombstones.close(cases.THREAD, 2000.0)
    await until(lambda: two.cases.tombstones.is_unannounced(cases.THREAD))
    assert two.cases.tombstones.forbids(FILE)
    await two.cases.tombstones.note_announced(cases.THREAD)
    await until(lambda: not one.cases.tombstones.is_unannounced(cases.THREAD))
    assert one.cases.tombstones.forbids(FILE)


async def test_what_changes_is_still_heard_after_a_restart_of_the_server(
    one: Documents, two: Documents, nats_server: NatsServer
) -> None:
    await one.cases.tombstones.close(cases.OTHER_THREAD, 2000.0)
    await until(lambda: two.cases.tombstones.is_unannounced(cases.OTHER_THREAD))
    nats_server.end()
    nats_server.start()
    await one.cases.tombstones.close(cases.THREAD, 2000.0)
    await cases.post(one.store, "shop.log", cases.LOG)
    await until(lambda: two.cases.tombstones.is_unannounced(cases.THREAD) and two.cases.has_files(cases.THREAD))


async def test_all_of_a_person_is_forgotten_by_one_process(one: Documents, two: Documents) -> None:
    origin = Origin("shop.log", uploader_id=cases.FRAN, message_id=70, attachment_id=700)
    new = cases.new("shop.log", cases.LOG)
    await one.store.add(cases.case(), [replace(new, origin=origin)])
    assert await two.forget(cases.FRAN) == (1, 0)
    assert await one.store.describe(protocol.case_collection(str(cases.THREAD))) is None
    await until(lambda: one.cases.tombstones.forbids(FILE))


async def test_without_the_server_files_are_left_alone_and_that_is_said(
    client: Client,
    tmp_path: Path,
    nats_server: NatsServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("transport.connection.PATIENCE_SECONDS", 0.0)
    nats_server.end()
    copies = SqliteCollections(cases.folders(tmp_path))
    together = SharedDocuments(SharedStore(CollectionReplicas(client, tmp_path, copies)), SharedFlags(client))
    async with documents_for(Settings().resolve_paths(tmp_path), None, Uploads(), None, shared=together) as documents:
        assert documents is None
    assert "documents: NATS does not serve" in caplog.text
    with pytest.raises(OSError, match="NATS does not serve"):
        await together.notes.put("shown.1", b"true")
    with pytest.raises(StoreUnavailable, match="NATS does not serve"):
        await together.notes.follow("shown.", unheard)
    await together.store.close()
    nats_server.start()
    await until(lambda: client.is_connected)
