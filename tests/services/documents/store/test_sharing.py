"""Several processes over one Chroma: an imitated server, and a real one where it is there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from services.documents.store import chroma_records
from services.documents.store.chroma_records import PackedDocument, merge_documents
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import ChunkSearch, NewDocument, Origin, State, StoreUnavailable
from tests.services.documents import cases
from tests.services.documents.store import imitated_chroma
from tests.services.documents.store.conftest import NewStore

pytestmark = pytest.mark.real_time
NAME = cases.case().name


@pytest.fixture
async def one(process: NewStore) -> AsyncGenerator[DocumentStore]:
    store = process("one")
    yield store
    for name in await store.list_collections():
        await store.delete_collection(name)
    await store.close()


@pytest.fixture
async def two(process: NewStore) -> AsyncGenerator[DocumentStore]:
    store = process("two")
    yield store
    await store.close()


async def test_what_one_process_writes_the_other_finds(one: DocumentStore, two: DocumentStore) -> None:
    assert await two.search(NAME, ChunkSearch("card")) == []
    document = await cases.post(one, "shop.log", cases.LOG)
    assert [hit.chunk.text for hit in await two.search(NAME, ChunkSearch("card expired"))]
    assert await two.describe(NAME) is not None
    assert await two.delete_document(NAME, document.doc_id)
    assert await one.search(NAME, ChunkSearch("card")) == []
    await cases.post(two, "depot.log", cases.OTHER_LOG)
    assert await one.search(NAME, ChunkSearch("collision"))
    assert await one.delete_collection(NAME)
    assert await two.describe(NAME) is None


async def test_both_know_a_collection_by_the_same_version(one: DocumentStore, two: DocumentStore) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    first = await version(two)
    assert first == await version(one)
    await cases.post(two, "depot.log", cases.OTHER_LOG)
    assert await version(one) == await version(two) > first


async def test_a_collection_made_anew_by_another_process_is_not_taken_for_the_old_one(
    one: DocumentStore, two: DocumentStore
) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    assert await two.search(NAME, ChunkSearch("card"))
    await one.delete_collection(NAME)
    await cases.post(one, "depot.log", cases.OTHER_LOG)
    assert await two.search(NAME, ChunkSearch("card")) == []
    assert await two.search(NAME, ChunkSearch("collision"))


async def test_of_a_case_that_another_process_has_closed_no_copy_stays(
    one: DocumentStore, two: DocumentStore, tmp_path: Path
) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    await two.search(NAME, ChunkSearch("card"))
    assert list((tmp_path / "two").iterdir())
    await one.delete_collection(NAME)
    assert not list((tmp_path / "one").iterdir())
    assert await two.list_collections() == []
    assert not list((tmp_path / "two").iterdir())


async def test_who_stops_leaves_no_copies(one: DocumentStore, two: DocumentStore, tmp_path: Path) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    await two.search(NAME, ChunkSearch("card"))
    await two.close()
    assert not list((tmp_path / "two").iterdir())
    assert await one.search(NAME, ChunkSearch("card"))


async def test_nothing_is_lost_where_two_write_at_the_same_moment(one: DocumentStore, two: DocumentStore) -> None:
    names = [f"{number}.log" for number in range(4)]
    for name in names:
        await asyncio.gather(
            cases.post(one, f"one-{name}", f"{cases.LOG}{name}\n"),
            cases.post(two, f"two-{name}", f"{cases.OTHER_LOG}{name}\n"),
        )
    for store in (one, two):
        described = await store.describe(NAME)
        assert described is not None
        assert {doc.filename for doc in described.documents} == {
            f"{who}-{name}" for who in ("one", "two") for name in names
        }
        assert {doc.state for doc in described.documents} == {State.READY}
    assert await version(one) == await version(two)


async def test_the_same_file_from_two_at_once_is_one_document(one: DocumentStore, two: DocumentStore) -> None:
    await asyncio.gather(*(cases.post(store, "shop.log", cases.LOG) for store in (one, two)))
    for store in (one, two):
        described = await store.describe(NAME)
        assert described is not None
        assert [doc.filename for doc in described.documents] == ["shop.log"]


async def test_a_write_that_nobody_waits_for_any_more_happens_whole_or_not_at_all(
    one: DocumentStore, two: DocumentStore
) -> None:
    await cases.post(one, "shop.log", cases.LOG)
    for turns in range(0, 40, 4):
        writing = asyncio.ensure_future(
            one.add(cases.case(), [cases.new(f"{turns}.log", f"{cases.OTHER_LOG}{turns}\n")])
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        writing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writing
        await cases.post(one, "after.log", f"{cases.LOG}{turns}\n")
    for store in (one, two):
        hits = await store.search(NAME, ChunkSearch("card"))
        assert {hit.chunk.extra["filename"] for hit in hits} >= {"shop.log", "after.log"}
    assert await version(one) == await version(two)


async def test_a_write_that_chroma_does_not_take_has_not_happened(tmp_path: Path) -> None:
    server = imitated_chroma.Chroma()
    store = imitated_chroma.new_store(tmp_path, server)
    await cases.post(store, "shop.log", cases.LOG)
    server.down = True
    with pytest.raises(StoreUnavailable, match="ConnectionError"):
        await cases.post(store, "depot.log", cases.OTHER_LOG)
    server.down = False
    assert await store.search(NAME, ChunkSearch("collision")) == []
    assert await store.search(NAME, ChunkSearch("card"))


async def version(store: DocumentStore) -> int:
    described = await store.describe(NAME)
    assert described is not None
    return described.version


async def test_one_file_posted_twice_at_the_same_moment_is_one_document(one: DocumentStore, two: DocumentStore) -> None:
    """Each as an attachment of its own, so that the two know nothing of each other until both are there."""
    prepared = cases.new("shop.log", cases.LOG).prepared
    await one.expect(cases.case(), Origin("later.log", attachment_id=3))
    await asyncio.gather(
        *(
            store.add(cases.case(), [NewDocument(Origin("shop.log", attachment_id=number), prepared)])
            for number, store in enumerate((one, two))
        )
    )
    for store in (one, two):
        described = await store.describe(NAME)
        assert described is not None
        assert [doc.filename for doc in described.documents] == ["later.log", "shop.log"]
    assert await one.fail(NAME, described.documents[0].doc_id, "it could not be downloaded")
    assert await two.search(NAME, ChunkSearch("declined"))


def test_documents_that_two_have_taken_in_are_numbered_anew_and_the_first_of_two_alike_stays() -> None:
    given = {"d": ("y", 3), "c": ("x", 2), "b": ("x", 1), "a": (None, 1), "e": (None, 9)}
    documents = {
        doc_id: PackedDocument(order, [NAME, doc_id, "shop.log", sha256], {}, {})
        for doc_id, (sha256, order) in given.items()
    }
    merged = merge_documents(documents)
    assert {doc_id: document.order for doc_id, document in merged.items()} == {"a": 1, "b": 2, "d": 3, "e": 9}


async def test_more_documents_than_a_request_takes_come_in_several(
    one: DocumentStore, two: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chroma_records, "HEADS_AT_ONCE", 2)
    await one.add(cases.case(), [cases.new(f"{number}.log", f"{cases.LOG}{number}\n") for number in range(5)])
    described = await two.describe(NAME)
    assert described is not None
    assert len(described.documents) == 5
    await two.add(cases.case(), [], drop=[doc.doc_id for doc in described.documents])
    assert await one.search(NAME, ChunkSearch("declined")) == []
