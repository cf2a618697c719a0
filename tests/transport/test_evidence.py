"""Files of threads and runbooks survive the process that took them in: real servers, a folder for each process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from nats.aio.client import Client

from services.documents.store import (
    CollectionSummary,
    DocumentStore,
    Origin,
    State,
    StoreUnavailable,
    protocol,
)
from services.documents.store.collection_files import SqliteCollections
from services.documents.store.document_store import SharedStore
from services.documents.store.protocol import ChunkSearch, LineWhere
from services.documents.store.schema import rows_of
from tests.hashing import HashingEmbedder
from tests.loopback.nats_server import NatsServer
from tests.services.documents import cases
from tests.transport.connected import client
from transport.connection import streams_of
from transport.document_store import CollectionReplicas
from transport.object_store import ObjectBucket, ObjectChanged, ObjectInfo
from transport.streams import EVIDENCE

__all__ = ["client"]

pytestmark = pytest.mark.real_time

NAME = cases.case().name
OBJECT = f"evidence/{NAME}.sqlite"
LINES = 150_000
LATER = 3600.0
"""Nothing is sent by itself as long as a test runs."""
NewProcess = Callable[..., SharedStore]


@pytest.fixture
async def process(client: Client, tmp_path: Path) -> AsyncGenerator[NewProcess]:
    """A store of another process each time: its name goes in."""
    made: list[SharedStore] = []

    def new(name: str, soon_seconds: float = LATER) -> SharedStore:
        copies = SqliteCollections(cases.folders(tmp_path / name))
        store = SharedStore(CollectionReplicas(client, tmp_path / name, copies, soon_seconds=soon_seconds))
        made.append(store)
        return store

    yield new
    for store in made:
        await store.close()


@pytest.fixture
def one(process: NewProcess) -> SharedStore:
    return process("one")


@pytest.fixture
def two(process: NewProcess) -> SharedStore:
    return process("two")


async def described(store: DocumentStore, name: str = NAME) -> CollectionSummary:
    found = await store.describe(name)
    assert found is not None
    return found


async def test_what_one_process_takes_in_another_finds(one: SharedStore, two: SharedStore) -> None:
    assert await two.search(NAME, ChunkSearch("card")) == []
    document = await cases.post(one, "shop.log", cases.LOG)
    hits = await two.search(NAME, ChunkSearch("card expired"))
    assert {hit.chunk.doc_id for hit in hits} == {document.doc_id}
    await one.flush()
    assert (await described(two)).documents[0].state is State.READY
    assert await two.unfinished(HashingEmbedder().id) == []


async def test_both_know_a_collection_by_the_same_version(one: SharedStore, two: SharedStore) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    await one.flush()
    await cases.post(two, "depot.log", cases.OTHER_LOG)
    await two.flush()
    assert (await described(one)).version == (await described(two)).version


async def test_a_description_is_had_without_the_bytes(one: SharedStore, two: SharedStore, tmp_path: Path) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    await one.flush()
    assert (await described(two)).documents == (await described(one)).documents
    assert list((tmp_path / "two").rglob("*.sqlite")) == []
    assert await two.search(NAME, ChunkSearch("card"))
    assert (await described(two)).documents == (await described(one)).documents


async def test_a_deletion_is_seen(one: SharedStore, two: SharedStore, tmp_path: Path, client: Client) -> None:
    document = await cases.post(one, "shop.log", cases.LOG)
    other = await cases.post(one, "depot.log", cases.OTHER_LOG)
    assert await two.search(NAME, ChunkSearch("card"))
    assert await one.delete_document(NAME, document.doc_id)
    assert await two.search(NAME, ChunkSearch("card")) == []
    assert [doc.doc_id for doc in (await described(two)).documents] == [other.doc_id]
    assert await two.delete_collection(NAME)
    assert await one.describe(NAME) is None
    assert await one.list_collections() == []
    assert list((tmp_path / "one").rglob("*.sqlite")) == []
    state = (await streams_of(client).stream_info(f"OBJ_{EVIDENCE}", subjects_filter=">")).state
    assert [subject for subject in state.subjects or () if ".C." in subject] == []  # no bytes stay either


async def test_one_made_anew_is_not_taken_for_the_old_one(one: SharedStore, two: SharedStore) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    old = (await described(two)).version
    assert await two.search(NAME, ChunkSearch("card"))
    await one.delete_collection(NAME)
    await cases.post(one, "depot.log", cases.OTHER_LOG)
    assert await two.search(NAME, ChunkSearch("card")) == []
    assert await two.search(NAME, ChunkSearch("collision"))
    assert (await described(two)).version > old


async def test_of_two_additions_at_once_none_is_lost(one: SharedStore, two: SharedStore) -> None:
    name, titles = protocol.user_collection("311"), [f"runbook {number}" for number in range(6)]
    await asyncio.gather(
        *(
            cases.write_runbook(store, f"{cases.RUNBOOK}\n{title}\n", 311, title)
            for number, title in enumerate(titles)
            for store in ((one, two)[number % 2],)
        )
    )
    for store in (one, two):
        await store.flush()
    for store in (one, two):
        documents = (await described(store, name)).documents
        assert {doc.origin.extra["title"] for doc in documents} == set(titles)
        assert {doc.state for doc in documents} == {State.READY}


async def test_vectors_that_wait_survive_what_others_write(one: SharedStore, two: SharedStore) -> None:
    await cases.post(one, "shop.log", cases.LOG)  # its vectors wait
    await cases.post(two, "depot.log", cases.OTHER_LOG)
    await two.flush()
    assert {doc.state for doc in (await described(one)).documents} == {State.READY}
    await one.flush()
    assert {doc.state for doc in (await described(two)).documents} == {State.READY}


async def test_what_waits_is_dropped_with_its_collection(one: SharedStore, two: SharedStore) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    await one.expect(cases.case(), Origin("later.log", attachment_id=3))
    await two.delete_collection(NAME)
    assert await one.add(cases.case(), [cases.new("later.log", cases.LOG)], create=False) == []
    await one.flush()
    assert await two.describe(NAME) is None


async def test_vectors_are_sent_by_themselves(process: NewProcess, two: SharedStore) -> None:
    one, told, waiting = process("one", 0.01), asyncio.Event(), [1]

    def heard(name: str, there: bool) -> None:
        assert (name, there) == (NAME, True)
        if len(waiting) == 2:
            told.set()
        waiting.append(1)

    await two.follow(heard)
    await cases.post(one, "shop.log", cases.LOG)
    await told.wait()
    assert (await described(two)).documents[0].state is State.READY


async def test_who_follows_is_told_of_all_and_of_each_change(one: SharedStore, two: SharedStore) -> None:
    heard: asyncio.Queue[tuple[str, bool]] = asyncio.Queue()
    await cases.post(one, "shop.log", cases.LOG)
    await two.follow(lambda name, there: heard.put_nowait((name, there)))
    assert heard.get_nowait() == (NAME, True)
    await cases.write_runbook(one, cases.RUNBOOK, 311)
    assert await heard.get() == (protocol.user_collection("311"), True)
    await one.delete_collection(NAME)
    assert await heard.get() == (NAME, False)


async def test_killed_between_the_bytes_and_the_head_nothing_is_half(
    one: SharedStore, two: SharedStore, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was killed on its way leaves the old state, and what it left is deleted later."""
    await cases.post(one, "shop.log", cases.LOG)
    await one.flush()
    before = await described(two)

    async def killed(*_: object) -> int:
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(ObjectBucket, "_publish_head", killed)
        with pytest.raises(asyncio.CancelledError):
            await one.add(cases.case(), [cases.new("depot.log", cases.OTHER_LOG)])
    assert await described(two) == before
    for store in (one, two):
        assert await store.search(NAME, ChunkSearch("collision")) == []
    bucket = ObjectBucket(streams_of(client), EVIDENCE)
    assert await pieces(client) == 2
    await bucket.clear_orphans(await bucket.heads(), LATER)
    assert await pieces(client) == 2
    await bucket.clear_orphans(await bucket.heads(), 0.0)
    assert await pieces(client) == 1
    assert await two.search(NAME, ChunkSearch("card"))


async def pieces(client: Client) -> int:
    info = await streams_of(client).stream_info(f"OBJ_{EVIDENCE}", subjects_filter=f"$O.{EVIDENCE}.C.>")
    return len(info.state.subjects or {})


async def test_what_a_killed_process_left_in_its_folder_is_not_trusted(
    one: SharedStore, process: NewProcess, tmp_path: Path
) -> None:
    killed = cases.new_store(tmp_path / "two")
    await cases.post(killed, "half.log", cases.OTHER_LOG)
    await killed.close()
    again = process("two")
    assert await again.search(NAME, ChunkSearch("collision")) == []
    await cases.post(one, "shop.log", cases.LOG)
    assert [doc.filename for doc in (await described(again)).documents] == ["shop.log"]
    assert await again.search(NAME, ChunkSearch("card"))


async def test_a_large_log_arrives_whole(one: SharedStore, two: SharedStore) -> None:
    texts = [f"2031-03-04 10:00:00,100 INFO [main] shop.db.Pool: connection {number:07}" for number in range(LINES)]
    assert sum(map(len, texts)) > 10_000_000
    small = cases.new("large.log", cases.LOG)
    rows = rows_of(small.origin, small.prepared)
    lines = [(number, text, *[None] * 7) for number, text in enumerate(texts, 1)]
    await one.add(cases.case(), [replace(small, rows=replace(rows, lines=lines, line_tokens=texts))])
    (document,) = (await described(two)).documents
    found = await two.lines(NAME, LineWhere((document.doc_id,)), newest_first=True, limit=1)
    assert found.total == LINES
    assert found.lines[0].text == texts[-1]


async def test_a_write_that_the_server_does_not_take_has_not_happened(
    one: SharedStore, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transport.connection.PATIENCE_SECONDS", 0.0)
    await cases.post(one, "shop.log", cases.LOG)
    nats_server.end()
    with pytest.raises(StoreUnavailable, match="NATS does not serve"):
        await cases.post(one, "depot.log", cases.OTHER_LOG)
    monkeypatch.undo()
    nats_server.start()
    assert await one.search(NAME, ChunkSearch("collision")) == []
    assert await one.search(NAME, ChunkSearch("card"))
    await one.flush()


async def test_a_restart_of_the_server_is_waited_for(
    one: SharedStore, two: SharedStore, nats_server: NatsServer
) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    nats_server.end()
    searching = asyncio.create_task(two.search(NAME, ChunkSearch("card")))
    nats_server.start()
    assert await searching


async def test_a_head_is_written_only_over_the_one_that_is_known(client: Client) -> None:
    bucket = ObjectBucket(streams_of(client), EVIDENCE)
    first = await bucket.put(ObjectInfo(OBJECT), b"one", {})
    second = await bucket.put(first, b"two", {"a": "b"})
    for over in (ObjectInfo(OBJECT), first):
        with pytest.raises(ObjectChanged):
            await bucket.put(over, b"late", {})
    assert await bucket.find_head(OBJECT) == second
    assert await bucket.fetch(second) == b"two"
    assert await bucket.fetch(first) is None
    assert await pieces(client) == 1


async def test_other_clients_read_what_is_kept(client: Client) -> None:
    bucket = ObjectBucket(streams_of(client), EVIDENCE)
    content = bytes(range(256)) * 4096
    await bucket.put(ObjectInfo(OBJECT), content, {})
    theirs = await streams_of(client).object_store(EVIDENCE)
    assert (await theirs.get(OBJECT)).data == content
