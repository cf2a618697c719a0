"""What every store of documents does alike."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from services.documents.store.document_store import DocumentStore, embed_document
from services.documents.store.protocol import (
    ChunkSearch,
    Collection,
    LineWhere,
    NewDocument,
    Origin,
    SearchMode,
    State,
)
from tests.hashing import HashingEmbedder
from tests.loopback.nats_server import NatsServer
from tests.services.documents import cases
from tests.services.documents.store import chroma_server, imitated_chroma, nats_bucket

pytestmark = pytest.mark.real_time
EMBEDDER = HashingEmbedder()


@pytest.fixture(params=["embedded", "imitated chroma", "chroma", "nats"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[DocumentStore]:
    async with AsyncExitStack() as stack:
        opened: DocumentStore
        if request.param == "embedded":
            opened = cases.new_store(tmp_path)
        elif request.param == "imitated chroma":
            opened = imitated_chroma.new_store(tmp_path)
        elif request.param == "chroma":
            opened = chroma_server.new_store(tmp_path, str(request.getfixturevalue("chroma_address")))
        else:
            server: NatsServer = request.getfixturevalue("nats_server")
            opened = await stack.enter_async_context(nats_bucket.opened(server.url, tmp_path))
        yield opened
        for name in await opened.list_collections():
            await opened.delete_collection(name)
        await opened.close()


async def test_reading_what_is_not_there_gives_nothing_and_makes_nothing(store: DocumentStore) -> None:
    name = cases.case().name
    assert await store.describe(name) is None
    assert await store.search(name, ChunkSearch("anything")) == []
    assert (await store.lines(name, LineWhere(("x",)))).total == 0
    assert await store.distinct(name, LineWhere(("x",)), "severity") == []
    assert await store.chunks(name, "x", [0]) == []
    assert await store.count_chunks_with(name, ["x"]) == ({}, 0)
    assert await store.unembedded(name, "x", EMBEDDER.id) == {}
    assert not await store.fail(name, "x", "gone")
    assert not await store.embed(name, "x", EMBEDDER.id, {})
    assert not await store.delete_document(name, "x")
    assert not await store.delete_collection(name)
    assert await store.list_collections() == []


async def test_a_file_can_be_searched_by_words_as_soon_as_it_is_added(store: DocumentStore) -> None:
    (document,) = await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    assert document.state is State.LEXICAL
    assert document.n_lines == 8
    hits = await store.search(cases.case().name, ChunkSearch("card EXPIRED"))
    assert "card expired" in hits[0].chunk.text
    assert hits[0].score is None


async def test_both_parts_and_wholes_of_names_are_words(store: DocumentStore) -> None:
    await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    for words in ("ord-58213", "58213", "10.20.30.40:2525", "shop.payment.Gateway", "gateway", "PAYMENT"):
        hits = await store.search(cases.case().name, ChunkSearch(words))
        assert hits, words


async def test_vectors_come_later_and_give_cosines(store: DocumentStore) -> None:
    (document,) = await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    name = cases.case().name
    waiting = await store.unembedded(name, document.doc_id, EMBEDDER.id)
    some = dict(zip(waiting, await EMBEDDER.embed(list(waiting.values())), strict=True))
    first = next(iter(some))
    assert await store.embed(name, document.doc_id, EMBEDDER.id, {first: some.pop(first)})
    assert await state_of(store, document.doc_id) is State.LEXICAL
    assert await store.embed(name, document.doc_id, EMBEDDER.id, some)
    assert await state_of(store, document.doc_id) is State.READY
    question = waiting[first]
    hits = await store.search(name, ChunkSearch(question, (await EMBEDDER.embed([question]))[0], EMBEDDER.id))
    scores = [hit.score for hit in hits if hit.score is not None]
    assert max(scores) == pytest.approx(1.0, abs=1e-5)  # a cosine, not a distance
    assert min(scores) >= -1.0001


async def test_vectors_of_another_embedder_are_never_compared(store: DocumentStore) -> None:
    document = await cases.post(store, "shop.log", cases.LOG)
    other = HashingEmbedder(64)
    hits = await store.search(cases.case().name, ChunkSearch("card", (await other.embed(["card"]))[0], other.id))
    assert hits
    assert all(hit.score is None for hit in hits)
    assert [doc.doc_id for _, doc in await store.unfinished(other.id)] == [document.doc_id]
    assert await store.unembedded(cases.case().name, document.doc_id, other.id)


async def test_the_same_file_again_changes_nothing(store: DocumentStore) -> None:
    first = await cases.post(store, "shop.log", cases.LOG)
    before = await version(store)
    (again,) = await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    assert again.doc_id == first.doc_id
    assert await version(store) == before


async def test_of_two_files_of_one_name_the_newer_answers_and_both_are_kept(store: DocumentStore) -> None:
    old = await cases.post(store, "shop.log", cases.LOG)
    newer = await cases.post(store, "shop.log", cases.OTHER_LOG)
    described = await store.describe(cases.case().name)
    assert described is not None
    assert {doc.doc_id: (doc.revision, doc.current) for doc in described.documents} == {
        old.doc_id: (1, False),
        newer.doc_id: (2, True),
    }
    hits = await store.search(cases.case().name, ChunkSearch("card collision starting version"))
    assert {hit.chunk.doc_id for hit in hits} == {newer.doc_id}
    named = await store.search(cases.case().name, ChunkSearch("card", doc_ids=frozenset({old.doc_id})))
    assert {hit.chunk.doc_id for hit in named} == {old.doc_id}


async def test_a_file_replaces_none_of_its_name_by_another_person(store: DocumentStore) -> None:
    hers = await cases.post(store, "shop.log", cases.LOG, uploader=cases.FRAN)
    others = await cases.post(store, "shop.log", cases.OTHER_LOG, uploader=cases.MARA)
    newer = await cases.post(store, "shop.log", cases.OTHER_LOG + "\n", uploader=cases.MARA)
    described = await store.describe(cases.case().name)
    assert described is not None
    assert {doc.doc_id: (doc.revision, doc.current) for doc in described.documents} == {
        hers.doc_id: (1, True),
        others.doc_id: (1, False),
        newer.doc_id: (2, True),
    }
    hits = await store.search(cases.case().name, ChunkSearch("card collision starting version"))
    assert {hit.chunk.doc_id for hit in hits} == {hers.doc_id, newer.doc_id}


async def test_a_file_that_two_have_posted_is_replaced_by_neither_alone(store: DocumentStore) -> None:
    both = await cases.post(store, "shop.log", cases.LOG, uploader=cases.MARA)
    await cases.post(store, "shop.log", cases.LOG, uploader=cases.FRAN)
    await cases.post(store, "shop.log", cases.OTHER_LOG, uploader=cases.MARA)
    hits = await store.search(cases.case().name, ChunkSearch("card"))
    assert {hit.chunk.doc_id for hit in hits} == {both.doc_id}


async def test_each_write_raises_the_version_and_no_read_does(store: DocumentStore) -> None:
    name = cases.case().name
    seen = [0]

    async def raised() -> bool:
        seen.append(await version(store))
        return seen[-1] > seen[-2]

    await store.expect(cases.case(), Origin("later.log", attachment_id=5))
    assert await raised()
    (document,) = await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    assert await raised()
    await store.search(name, ChunkSearch("card"))
    assert not await raised()
    waiting = await store.unembedded(name, document.doc_id, EMBEDDER.id)
    first, text = next(iter(waiting.items()))
    await store.embed(name, document.doc_id, EMBEDDER.id, {first: (await EMBEDDER.embed([text]))[0]})
    assert await raised()
    await store.fail(name, document.doc_id, "no text")
    assert await raised()
    await store.delete_document(name, document.doc_id)
    assert await raised()


async def test_a_collection_made_anew_never_has_an_old_version(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    before = await version(store)
    assert await store.delete_collection(cases.case().name)
    await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    assert await version(store) > before


async def test_what_is_expected_becomes_the_file(store: DocumentStore) -> None:
    expected = await store.expect(cases.case(), Origin("shop.log", attachment_id=9))
    assert expected.state is State.PENDING
    again = await store.expect(cases.case(), Origin("shop.log", attachment_id=9))
    assert again.doc_id == expected.doc_id
    prepared = cases.new("shop.log", cases.LOG).prepared
    (document,) = await store.add(cases.case(), [NewDocument(Origin("shop.log", attachment_id=9), prepared)])
    assert document.doc_id == expected.doc_id
    assert await state_of(store, expected.doc_id) is State.LEXICAL


async def test_a_late_result_does_not_bring_a_closed_case_back(store: DocumentStore) -> None:
    await store.expect(cases.case(), Origin("shop.log", attachment_id=9))
    await store.delete_collection(cases.case().name)
    assert await store.add(cases.case(), [cases.new("shop.log", cases.LOG)], create=False) == []
    assert await store.list_collections() == []


async def test_unfinished_work_is_told_at_the_start(store: DocumentStore) -> None:
    pending = await store.expect(cases.case(), Origin("later.log", attachment_id=5))
    (lexical,) = await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    await cases.post(store, "done.log", cases.OTHER_LOG)
    found = await store.unfinished(EMBEDDER.id)
    assert {(name, doc.doc_id) for name, doc in found} == {
        (cases.case().name, pending.doc_id),
        (cases.case().name, lexical.doc_id),
    }


async def test_a_failed_file_can_be_posted_again(store: DocumentStore) -> None:
    expected = await store.expect(cases.case(), Origin("shop.log", attachment_id=9))
    assert await store.fail(cases.case().name, expected.doc_id, "it could not be downloaded")
    assert await state_of(store, expected.doc_id) is State.FAILED
    prepared = cases.new("shop.log", cases.LOG).prepared
    (document,) = await store.add(cases.case(), [NewDocument(Origin("shop.log", attachment_id=9), prepared)])
    assert document.state is State.LEXICAL


async def test_deleting_a_document_takes_all_of_it(store: DocumentStore) -> None:
    shop = await cases.post(store, "shop.log", cases.LOG)
    depot = await cases.post(store, "depot.log", cases.OTHER_LOG)
    assert await store.delete_document(cases.case().name, shop.doc_id)
    hits = await store.search(cases.case().name, ChunkSearch("card expired ord-58213 collision"))
    assert {hit.chunk.doc_id for hit in hits} == {depot.doc_id}
    assert (await store.lines(cases.case().name, LineWhere((shop.doc_id,)))).total == 0


async def test_lines_are_found_by_their_facts(store: DocumentStore) -> None:
    doc = await cases.post(store, "shop.log", cases.LOG)
    ids = (doc.doc_id,)
    wanted = {
        (4, 6): LineWhere(ids, severities=("ERROR",)),
        (4, 5): LineWhere(ids, holding=("ORD-58213",)),
        (3,): LineWhere(ids, clocks=("10:01:15", "10:01:16")),
        (7, 8): LineWhere(ids, first=7, last=20),
        (6,): LineWhere(ids, words=("refusing", "connections")),
        (2, 7): LineWhere(ids, components=("shop.db.Pool",)),
        (1, 2, 3, 4, 5, 6, 7, 8): LineWhere(ids, days=("2031-03-04", "2031-03-04")),
        (8,): LineWhere(ids, instants=("2031-03-04T10:04:01", "2031-03-04T10:05")),
        (7,): LineWhere(ids, instants=("03-04T10:04", "03-04T10:04:01")),
        (): LineWhere(ids, holding=("ord-5821",)),  # the beginning of another name
    }
    for numbers, where in wanted.items():
        found = await store.lines(cases.case().name, where)
        assert tuple(line.line_no for line in found.lines) == numbers, where
        assert found.total == len(numbers)
    newest = await store.lines(cases.case().name, LineWhere(ids, severities=("ERROR",)), limit=1, newest_first=True)
    assert [line.line_no for line in newest.lines] == [6]
    assert newest.total == 2
    levels = await store.distinct(cases.case().name, LineWhere(ids), "severity")
    assert dict(levels) == {"INFO": 4, "ERROR": 2, "WARN": 1, "FATAL": 1}
    for column, values in {
        "day": [("2031-03-04", 8)],
        "hour": [("2031-03-04 10h", 8)],
        "minute": [(f"2031-03-04 10:0{minute}", n) for minute, n in ((0, 2), (1, 1), (2, 2), (3, 1), (4, 2))],
    }.items():
        assert await store.distinct(cases.case().name, LineWhere(ids), column) == values


async def test_what_has_no_time_is_neither_the_earliest_nor_the_latest(store: DocumentStore) -> None:
    times = [f"2031-03-04 10:00:{second:02} INFO x: y" for second in (30, 10, 20)]
    doc = await cases.post(store, "a.log", "\n".join(["no time yet", *times, "  goes on"]) + "\n")
    for newest, order in ((False, [3, 4, 2]), (True, [2, 4, 3])):
        found = await store.lines(
            cases.case().name, LineWhere((doc.doc_id,)), limit=3, newest_first=newest, by_time=True
        )
        assert [line.line_no for line in found.lines] == order


async def test_a_revision_replaces_the_old_one_in_one_step(store: DocumentStore) -> None:
    collection = Collection("user_7_kb", "user", "7")
    (old,) = await store.add(collection, [cases.new("setup.md", "# Setup\n\nPress the green button.\n")])
    doc = cases.new("setup.md", "# Setup\n\nPress the blue button.\n")
    (fresh,) = await store.add(collection, [doc], drop=[old.doc_id])
    assert fresh.state is State.LEXICAL
    hits = await store.search("user_7_kb", ChunkSearch("button"))
    assert [hit.chunk.text for hit in hits if "green" in hit.chunk.text] == []
    assert any("blue" in hit.chunk.text for hit in hits)


async def test_by_meaning_words_count_only_where_there_are_no_vectors(store: DocumentStore) -> None:
    collection = Collection("user_7_kb", "user", "7")
    setup, prices = (
        cases.new("setup.md", "# Setup\n\nPress the green button until it clicks.\n"),
        cases.new("prices.md", "# Prices\n\nA button costs a penny.\n"),
    )
    (first,) = await store.add(collection, [setup])
    await embed_document(store, EMBEDDER, collection.name, first.doc_id)
    (second,) = await store.add(collection, [prices])
    question = (await EMBEDDER.embed(["green clicks until"]))[0]
    asked = ChunkSearch("penny button", question, EMBEDDER.id, depth=1, mode=SearchMode.VECTOR)
    found = [hit.chunk.doc_id for hit in await store.search(collection.name, asked)]
    assert sorted(found) == sorted([first.doc_id, second.doc_id]), "what has no vector yet is found by its words"
    await embed_document(store, EMBEDDER, collection.name, second.doc_id)
    assert [hit.chunk.doc_id for hit in await store.search(collection.name, asked)] == [first.doc_id]
    assert len(await store.search(collection.name, replace(asked, mode=SearchMode.HYBRID))) == 2
    literal = replace(asked, identifiers=("a penny",))
    assert [hit.chunk.doc_id for hit in await store.search(collection.name, literal)] == [second.doc_id, first.doc_id]


async def test_two_collections_know_nothing_of_each_other(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG, cases.THREAD)
    await cases.post(store, "depot.log", cases.OTHER_LOG, cases.OTHER_THREAD)
    assert await store.list_collections("case_") == [cases.case().name, cases.case(cases.OTHER_THREAD).name]
    hits = await store.search(cases.case(cases.OTHER_THREAD).name, ChunkSearch("card expired payment version"))
    assert {hit.chunk.extra["filename"] for hit in hits} == {"depot.log"}


async def version(store: DocumentStore) -> int:
    described = await store.describe(cases.case().name)
    assert described is not None
    return described.version


async def state_of(store: DocumentStore, doc_id: str) -> State:
    described = await store.describe(cases.case().name)
    assert described is not None
    return next(doc.state for doc in described.documents if doc.doc_id == doc_id)


async def test_a_file_that_was_posted_twice_goes_with_the_last_message_that_brought_it(store: DocumentStore) -> None:
    def posted(message: int, uploader: int) -> NewDocument:
        new = cases.new("shop.log", cases.LOG)
        origin = Origin("shop.log", uploader, message, message * 10, "2031-03-04T00:00:00Z", {"place_id": str(message)})
        return NewDocument(origin, new.prepared)

    first, again = posted(1, 311), posted(2, 312)
    collection = cases.case()
    (document,) = await store.add(collection, [first])
    before = await version(store)
    for _ in range(2):
        await store.expect(collection, again.origin)
        (same,) = await store.add(collection, [again])
        assert same.doc_id == document.doc_id
        assert same.origins == (first.origin, again.origin)
    assert (await store.expect(collection, again.origin)).doc_id == document.doc_id
    assert await version(store) > before
    (hit, *_) = await store.search(collection.name, ChunkSearch("declined"))
    assert "also_posted" not in hit.chunk.extra
    assert not await store.withdraw(collection.name, document.doc_id, lambda origin: origin.message_id == 3)
    assert await store.withdraw(collection.name, document.doc_id, lambda origin: origin.message_id == 1)
    described = await store.describe(collection.name)
    assert described is not None
    assert [doc.origins for doc in described.documents] == [(again.origin,)]
    assert await store.search(collection.name, ChunkSearch("declined"))
    assert await store.withdraw(collection.name, document.doc_id, lambda origin: origin.message_id == 2)
    assert not await store.search(collection.name, ChunkSearch("declined"))
    assert not await store.withdraw(collection.name, document.doc_id, lambda _: True)
