"""Every row of the table of errors: each situation has its own status and its own words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from services.documents.store.collection_files import SqliteCollections
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import CollectionSummary, Origin, StoreUnavailable
from services.documents.tools import libraries
from services.documents.tools.core import Breaker, DocumentQATool
from services.documents.tools.libraries import QAResult, Status
from services.documents.tools.toolset import build
from services.knowledge import LibrarySearch
from services.search.embedding import EmbeddingFailed, Vectors
from tests.hashing import HashingEmbedder
from tests.searching import by_words
from tests.services.documents import cases
from tests.world import Shelf

SECRET = "disk sda1 is on fire"


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return cases.new_store(tmp_path)


async def ask(
    tools: Mapping[str, DocumentQATool], question: str, *, tool: str = libraries.CASE, thread: int | None = cases.THREAD
) -> QAResult:
    return await tools[tool].ask(cases.context(thread), question)


async def test_without_a_thread_there_is_no_evidence(store: DocumentStore) -> None:
    result = await ask(cases.tools_over(store), "What happened?", thread=None)
    assert result.status is Status.INVALID


@pytest.mark.parametrize("question", ["", "   \n", "why? " * 300])
async def test_a_question_must_be_one(store: DocumentStore, question: str) -> None:
    result = await ask(cases.tools_over(store), question)
    assert result.status is Status.INVALID
    assert "question" in result.answer


async def test_where_nothing_was_posted_the_user_is_to_be_asked(store: DocumentStore) -> None:
    result = await ask(cases.tools_over(store), "What happened?")
    assert result.status is Status.NOT_INDEXED
    assert "ask the user" in result.answer
    assert await store.list_collections() == []


async def test_files_on_their_way_are_told(store: DocumentStore) -> None:
    await store.expect(cases.case(), Origin("big.log", attachment_id=1))
    result = await ask(cases.tools_over(store), "What happened?")
    assert result.status is Status.INDEXING
    assert "1 of 1 file" in result.answer


async def test_what_is_there_is_searched_while_others_are_on_their_way(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    await store.expect(cases.case(), Origin("big.log", attachment_id=1))
    tools = cases.tools_over(store)
    found = await ask(tools, "What happened to ord-58213?")
    assert found.status is Status.OK
    assert "1 of 2 files still being indexed" in found.answer
    missing = await ask(tools, "What happened to ord-11111?")
    assert missing.status is Status.INDEXING
    assert not (await ask(tools, "What happened to ord-58213?")).cached


async def test_a_file_that_could_not_be_read_is_named_with_the_reason(store: DocumentStore) -> None:
    expected = await store.expect(cases.case(), Origin("photo.log", attachment_id=1))
    await store.fail(cases.case().name, expected.doc_id, "it is no text")
    result = await ask(cases.tools_over(store), "What happened?")
    assert result.status is Status.NOT_INDEXED
    assert result.answer == "photo.log could not be read: it is no text."


@pytest.mark.parametrize(
    ("error", "told"),
    [
        ("a.exe is a program.", "a.exe could not be read: it is a program"),
        (
            "a.exe could not be downloaded. Post it again.",
            "a.exe could not be read: it could not be downloaded. Post it again",
        ),
        ("", "a.exe could not be read"),
    ],
)
async def test_what_could_not_be_read_is_named_once_in_answers_from_the_rest(
    store: DocumentStore, error: str, told: str
) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    for number, (name, reason) in enumerate([("a.exe", error), ("old.log", "old.log was removed by its owner.")], 1):
        expected = await store.expect(cases.case(), Origin(name, number % 2 or None, number, number))
        await store.fail(cases.case().name, expected.doc_id, reason)
    result = await ask(cases.tools_over(store), "What happened to ord-58213?")
    assert result.answer.splitlines()[-2:] == [f"Note: {told}.", "Note: old.log was removed by its owner."]


async def test_nothing_found_says_where_was_looked(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    result = await ask(cases.tools_over(store), "What happened to ord-11111?")
    assert result.status is Status.NOT_FOUND
    assert result.answer.startswith("Searched 1 file (shop.log) for")


async def test_what_is_too_far_away_is_refused_without_a_claim(store: DocumentStore) -> None:
    await cases.write_runbook(store, cases.RUNBOOK, cases.FRAN)
    tools = cases.tools_over(store, embedder=HashingEmbedder(), sharing=[cases.FRAN])
    result = await ask(tools, "Which wine goes with grilled trout?", tool=libraries.USER)
    assert result.status is Status.REFUSED_IRRELEVANT
    assert "close enough" in result.answer
    near = await ask(tools, "How do I check the connection pool?", tool=libraries.USER)
    assert near.status is Status.OK
    assert "poolctl show" in near.answer


async def test_an_exact_name_passes_the_gate(store: DocumentStore) -> None:
    await cases.write_runbook(store, f"{cases.RUNBOOK}\n## E-10421\n\nAsk the vendor.\n", cases.FRAN)
    tools = cases.tools_over(store, embedder=HashingEmbedder(), sharing=[cases.FRAN])
    result = await ask(tools, "Tell me whatever is known on E-10421, when, where and by whom", tool=libraries.USER)
    assert result.status is Status.OK


async def test_access_denied_hints_at_nothing(store: DocumentStore) -> None:
    await cases.write_runbook(store, cases.RUNBOOK, cases.FRAN)
    with_runbooks = await ask(cases.tools_over(store), "What are my steps?", tool=libraries.USER)
    without = await cases.tools_over(store)[libraries.USER].ask(cases.context(asker=cases.MARA), "What are my steps?")
    assert with_runbooks == without
    assert with_runbooks.status is Status.DENIED


async def test_without_an_embedder_words_are_compared_and_that_is_said(store: DocumentStore) -> None:
    await cases.write_runbook(store, cases.RUNBOOK, cases.FRAN)
    tools = cases.tools_over(store, sharing=[cases.FRAN])
    result = await ask(tools, "How do I check the connection pool?", tool=libraries.USER)
    assert result.status is Status.OK
    assert "keyword search only" in result.answer


class BrokenEmbedder(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbeddingFailed(SECRET)


async def test_an_embedder_that_fails_costs_no_answer(store: DocumentStore) -> None:
    await cases.write_runbook(store, cases.RUNBOOK, cases.FRAN)
    tools = cases.tools_over(store, embedder=BrokenEmbedder(), sharing=[cases.FRAN])
    result = await ask(tools, "How do I check the connection pool?", tool=libraries.USER)
    assert result.status is Status.OK
    assert SECRET not in result.answer


class BrokenStore(DocumentStore):
    """Fails, or hangs, as often as it is told to."""

    failures = 1_000_000
    hangs = False
    asked = 0

    async def describe(self, name: str) -> CollectionSummary | None:
        self.asked += 1
        if self.failures > 0:
            self.failures -= 1
            if self.hangs:
                await asyncio.sleep(3600)
            raise StoreUnavailable(SECRET)
        return await super().describe(name)


def broken(
    tmp_path: Path, *, failures: int = 1_000_000, hangs: bool = False
) -> tuple[BrokenStore, dict[str, DocumentQATool]]:
    store = BrokenStore(SqliteCollections(cases.folders(tmp_path)))
    store.failures, store.hangs = failures, hangs
    return store, build(store=store)


async def test_a_store_that_fails_twice_is_asked_a_third_time(tmp_path: Path) -> None:
    await cases.post(cases.new_store(tmp_path), "shop.log", cases.LOG)
    store, tools = broken(tmp_path)
    store.failures = 2
    result = await ask(tools, "What is on line 3 of shop.log?")
    assert result.status is Status.OK


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_store_that_is_down_is_said_in_neutral_words(tmp_path: Path, hangs: bool) -> None:
    """No text of an exception is ever shown."""
    _, tools = broken(tmp_path, hangs=hangs)
    result = await ask(tools, "What happened?")
    assert result.status is Status.RETRIEVAL_ERROR
    assert "temporarily unavailable" in result.answer
    assert SECRET not in result.answer


async def test_a_store_that_stays_down_is_left_alone_for_a_minute(tmp_path: Path) -> None:
    store, tools = broken(tmp_path)
    for _ in range(5):
        await ask(tools, "What happened?")
    asked = store.asked
    result = await ask(tools, "What happened?")
    assert result.status is Status.RETRIEVAL_ERROR
    assert store.asked == asked
    store.failures = 0
    await asyncio.sleep(61)
    assert (await ask(tools, "What happened?")).status is Status.NOT_INDEXED


async def test_files_are_read_while_what_is_published_cannot_be_brought_up_to_date(
    store: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def late(_: LibrarySearch) -> None:
        await asyncio.sleep(3600)

    search = by_words(Shelf())
    monkeypatch.setattr(LibrarySearch, "refresh", late)
    await cases.post(store, "shop.log", cases.LOG)
    tools = build(store=store, search=search)
    for _ in range(6):
        failed = await ask(tools, "How are backups restored?", tool=libraries.GLOBAL)
        assert failed.status is Status.RETRIEVAL_ERROR
    assert (await ask(tools, "What is on line 3 of shop.log?")).status is Status.OK


async def test_the_breaker_opens_after_five_failures_in_a_row() -> None:
    breaker = Breaker()
    for _ in range(4):
        breaker.note_failure()
    breaker.note_success()
    for _ in range(4):
        breaker.note_failure()
    assert not breaker.is_open
    breaker.note_failure()
    assert breaker.is_open


def test_each_situation_has_words_of_its_own() -> None:
    """One "nothing found" for four situations tells nobody what to do."""
    texts = [libraries.CASE_EVIDENCE.no_result_message(status) for status in Status if status is not Status.OK]
    assert len(set(texts)) == len(texts)
