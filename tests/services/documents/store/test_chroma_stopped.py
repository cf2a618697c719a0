"""A server that stops, hangs, comes back or is cut off in the middle of a write: never is half of something shown."""

from __future__ import annotations

import asyncio
import socket
import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest

import clock
from services.documents.store.chroma import ChromaCollections, chroma_store
from services.documents.store.chroma_records import ABANDONED_SECONDS
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import ChunkSearch, State, StoreUnavailable
from services.documents.tools import libraries
from services.documents.tools.libraries import Status
from tests.services.documents import cases
from tests.services.documents.store import chroma_server, imitated_chroma

pytestmark = pytest.mark.real_time
NAME = cases.case().name


async def test_wherever_a_write_is_cut_off_it_has_happened_whole_or_not_at_all(tmp_path: Path) -> None:
    """Also for whoever opens the store then, and for a write that is tried again."""
    whole = False
    for requests in range(40):
        server = imitated_chroma.Chroma()
        store = imitated_chroma.new_store(tmp_path / f"{requests}", server)
        old = await cases.post(store, "shop.log", cases.LOG)
        server.requests_left = requests
        try:
            await store.add(cases.case(), [cases.new("shop.log", cases.OTHER_LOG)], drop=[old.doc_id])
            whole = True
        except StoreUnavailable:
            assert not whole, "with more requests it went well"
        server.requests_left, server.down = None, False
        after = imitated_chroma.new_store(tmp_path / f"after-{requests}", server)
        for each in (store, after):
            found = [bool(await each.search(NAME, ChunkSearch(word))) for word in ("declined", "collision")]
            assert found in ([True, False], [False, True]), requests
        await after.add(cases.case(), [cases.new("shop.log", cases.OTHER_LOG)], drop=[old.doc_id])
        for each in (store, after):
            assert not await each.search(NAME, ChunkSearch("declined"))
            described = await each.describe(NAME)
            assert described is not None
            assert [doc.filename for doc in described.documents] == ["shop.log"]
        assert not [record for record in records(server) if record.get("doc_id") == old.doc_id], requests
    assert whole


async def test_what_a_crash_has_left_goes_with_the_first_write_an_hour_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = imitated_chroma.Chroma()
    store = imitated_chroma.new_store(tmp_path, server)
    await cases.post(store, "shop.log", cases.LOG)
    before = len(records(server))
    server.requests_left = 2  # its pieces come, its head does not
    with pytest.raises(StoreUnavailable):
        await store.add(cases.case(), [cases.new("depot.log", cases.OTHER_LOG)])
    server.requests_left, server.down = None, False
    left = len(records(server)) - before
    assert left == 1
    await cases.post(store, "second.log", f"{cases.LOG}again\n")
    assert len(records(server)) == 2 * before - 1 + left
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + ABANDONED_SECONDS + 60)
    await store.fail(NAME, "gone", "no such document")
    await cases.post(store, "third.log", f"{cases.LOG}and again\n")
    assert len(records(server)) == 3 * before - 2


async def test_a_document_that_has_lost_a_part_is_left_out_and_can_be_posted_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = imitated_chroma.Chroma()
    await cases.post(imitated_chroma.new_store(tmp_path / "one", server), "depot.log", cases.OTHER_LOG)
    store = imitated_chroma.new_store(tmp_path / "two", server)
    shop = await cases.post(store, "shop.log", cases.LOG)
    (shelf,) = server.shelves.values()
    for key in [
        key for key, record in shelf.records.items() if record.get("doc_id") == shop.doc_id and "data" in record
    ]:
        del shelf.records[key]
    after = imitated_chroma.new_store(tmp_path / "after", server)
    assert await after.search(NAME, ChunkSearch("declined")) == []
    assert await after.search(NAME, ChunkSearch("collision"))
    assert "post it again" in caplog.text
    await cases.post(after, "shop.log", cases.LOG)
    assert await after.search(NAME, ChunkSearch("declined"))
    assert await imitated_chroma.new_store(tmp_path / "last", server).search(NAME, ChunkSearch("declined"))


async def test_what_changes_each_time_it_is_read_is_unavailable(tmp_path: Path) -> None:
    server = imitated_chroma.Chroma()
    await cases.post(imitated_chroma.new_store(tmp_path / "one", server), "shop.log", cases.LOG)
    (shelf,) = server.shelves.values()

    def written_meanwhile() -> None:
        shelf.records["version"]["version"] += 1

    server.before_each = written_meanwhile
    two = imitated_chroma.new_store(tmp_path / "two", server)
    with pytest.raises(StoreUnavailable, match="changes while it is read"):
        await two.search(NAME, ChunkSearch("card"))
    with pytest.raises(StoreUnavailable):
        await two.add(cases.case(), [cases.new("depot.log", cases.OTHER_LOG)])


async def test_who_is_always_overtaken_gives_up(tmp_path: Path) -> None:
    server = imitated_chroma.Chroma()
    store = imitated_chroma.new_store(tmp_path / "one", server)
    await cases.post(store, "shop.log", cases.LOG)
    (shelf,) = server.shelves.values()
    upsert = shelf.upsert

    def overtaken(**records: object) -> None:
        shelf.records["version"]["write"] += "x"
        upsert(**records)  # pyright: ignore[reportArgumentType] (as they come)

    shelf.upsert = overtaken
    with pytest.raises(StoreUnavailable, match="written by other processes"):
        await store.add(cases.case(), [cases.new("depot.log", cases.OTHER_LOG)])
    assert not [record for record in records(server) if "collision" in str(record.get("row"))]
    described = await imitated_chroma.new_store(tmp_path / "two", server).describe(NAME)
    assert described is not None
    assert [doc.filename for doc in described.documents] == ["shop.log"]


async def test_a_case_that_is_closed_while_something_is_written_stays_closed(tmp_path: Path) -> None:
    server = imitated_chroma.Chroma()
    store = imitated_chroma.new_store(tmp_path, server)
    await cases.post(store, "shop.log", cases.LOG)
    (shelf,) = server.shelves.values()
    upsert = shelf.upsert

    def closed_meanwhile(**records: object) -> None:
        server.shelves.clear()
        shelf.deleted = True
        upsert(**records)  # pyright: ignore[reportArgumentType] (as above)

    shelf.upsert = closed_meanwhile
    assert await store.add(cases.case(), [cases.new("depot.log", cases.OTHER_LOG)], create=False) == []
    assert await store.list_collections() == []


@pytest.fixture
def silent() -> Generator[str]:
    """The address of somebody who takes connections and never says anything."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_a_server_that_says_nothing_is_unavailable(tmp_path: Path, silent: str) -> None:
    store = DocumentStore(ChromaCollections(silent, tmp_path, request_seconds=0.05))
    with pytest.raises(StoreUnavailable, match=r"Chroma at http://127.0.0.1:\d+ cannot be used \(TimeoutError\)"):
        await store.list_collections()
    await store.close()


async def test_where_there_is_no_server_reading_and_writing_say_so(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{listener.getsockname()[1]}"
        store = chroma_store(nobody, tmp_path)
        for asked in (store.list_collections(), store.describe(NAME), cases.post(store, "shop.log", cases.LOG)):
            with pytest.raises(StoreUnavailable, match=r"cannot be used \(ConnectionRefusedError\)"):
                await asked
        await store.close()


async def test_a_real_server_that_is_killed_and_comes_back_has_all_that_was_written(
    own_server: chroma_server.Server, tmp_path: Path
) -> None:
    store = chroma_server.new_store(tmp_path / "copies", own_server.address)
    await cases.post(store, "shop.log", cases.LOG)
    own_server.kill()
    tool = cases.tools_over(store)[libraries.CASE]
    for asked in (store.search(NAME, ChunkSearch("card")), cases.post(store, "depot.log", cases.OTHER_LOG)):
        with pytest.raises(StoreUnavailable, match="cannot be used"):
            await asked
    assert (await tool.ask(cases.context(), "Which card expired?")).status is Status.RETRIEVAL_ERROR
    own_server.start()
    assert (await tool.ask(cases.context(), "Which card expired?")).status is Status.OK
    assert await store.search(NAME, ChunkSearch("collision")) == []
    await cases.post(store, "depot.log", cases.OTHER_LOG)
    await cases.post(store, "depot.log", cases.OTHER_LOG)
    described = await store.describe(NAME)
    assert described is not None
    assert [(doc.filename, doc.state) for doc in described.documents] == [
        ("shop.log", State.READY),
        ("depot.log", State.READY),
    ]
    await store.close()


async def test_a_real_server_that_is_killed_while_two_write_and_read_never_shows_half(
    own_server: chroma_server.Server, tmp_path: Path
) -> None:
    """Each time somewhere else: what was told to be written is there, and the rest can be written again."""
    writing = chroma_server.new_store(tmp_path / "writing", own_server.address)
    reading = chroma_server.new_store(tmp_path / "reading", own_server.address)
    await cases.post(writing, "0.log", cases.LOG)
    acknowledged, killed = {"0.log"}, asyncio.Event()

    async def write() -> None:
        for number in range(1, 60):
            name = f"{number % 20}.log"
            try:
                await cases.post(writing, name, f"{cases.LOG}{number % 20}\n" if number % 20 else cases.LOG)
            except StoreUnavailable:
                own_server.kill()
                own_server.start()
                await cases.post(writing, name, f"{cases.LOG}{number % 20}\n" if number % 20 else cases.LOG)
            acknowledged.add(name)
            if number % 10 == 0:
                asyncio.get_running_loop().run_in_executor(None, own_server.kill)
        killed.set()

    async def read() -> None:
        while not killed.is_set():
            before = set(acknowledged)
            try:
                described = await reading.describe(NAME)
                hits = await reading.search(NAME, ChunkSearch("declined", depth=60))
            except StoreUnavailable:
                await asyncio.sleep(0)
                continue
            assert described is not None
            assert {doc.filename for doc in described.documents if doc.state is State.READY} >= before
            assert {hit.chunk.extra["filename"] for hit in hits} >= before

    await asyncio.gather(write(), read())
    for store in (writing, reading):
        await store.close()


async def test_a_real_server_that_hangs_is_unavailable_until_it_goes_on(
    own_server: chroma_server.Server, tmp_path: Path
) -> None:
    store = DocumentStore(ChromaCollections(own_server.address, tmp_path / "copies", request_seconds=1.0))
    await cases.post(store, "shop.log", cases.LOG)
    own_server.freeze()
    with pytest.raises(StoreUnavailable, match="Timeout"):
        await store.search(NAME, ChunkSearch("card"))
    own_server.thaw()
    assert await store.search(NAME, ChunkSearch("card"))
    await store.close()


async def test_of_a_closed_case_a_real_server_keeps_no_record_and_no_vector(
    own_server: chroma_server.Server, tmp_path: Path
) -> None:
    store = chroma_server.new_store(tmp_path / "copies", own_server.address)
    await cases.post(store, "shop.log", cases.LOG)
    with sqlite3.connect(f"file:{own_server.folder}/chroma.sqlite3?mode=ro", uri=True) as there:
        assert there.execute("SELECT count(*) FROM embedding_metadata").fetchone()[0]
        await store.delete_collection(NAME)
        for table in ("collections", "segments", "embeddings", "embeddings_queue", "embedding_metadata"):
            assert there.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table  # noqa: S608 (as above)
    there.close()
    assert not list((tmp_path / "copies").iterdir())
    await store.close()


def records(server: imitated_chroma.Chroma) -> list[imitated_chroma.Record]:
    return [record for shelf in server.shelves.values() for record in shelf.records.values()]
