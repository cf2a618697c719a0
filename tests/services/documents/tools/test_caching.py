"""Answers that are kept: never stale, never somebody else's, each made once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from services.documents.asking.synthesis import ExtractiveSynthesiser, Material
from services.documents.store.document_store import DocumentStore
from services.documents.tools import libraries
from services.documents.tools.core import AnswerCache, DocumentQATool, normalise
from services.documents.tools.libraries import QAResult, Status
from services.documents.tools.scopes import FileShelf
from services.search.embedding import EmbeddingFailed, Vectors
from tests.hashing import HashingEmbedder
from tests.services.documents import cases

QUESTION = "What happened to ord-58213?"


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return cases.new_store(tmp_path)


async def test_the_same_question_again_is_answered_from_memory(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    tool = cases.tools_over(store)[libraries.CASE]
    first = await tool.ask(cases.context(), QUESTION)
    again = await tool.ask(cases.context(), "  WHAT happened   to ord-58213")
    assert (first.cached, again.cached) == (False, True)
    assert again.answer == first.answer
    assert not (await tool.ask(cases.context(), QUESTION, k=7)).cached


@pytest.mark.parametrize("seconds", [3599, 3601])
async def test_answers_keep_for_an_hour(store: DocumentStore, seconds: int) -> None:
    """A `cache_ttl` that somebody reads."""
    await cases.post(store, "shop.log", cases.LOG)
    tool = cases.tools_over(store)[libraries.CASE]
    await tool.ask(cases.context(), QUESTION)
    await asyncio.sleep(seconds)
    assert (await tool.ask(cases.context(), QUESTION)).cached is (seconds < 3600)


async def test_that_there_is_nothing_is_known_for_a_minute(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    tool = cases.tools_over(store)[libraries.CASE]
    for seconds, cached in ((0, False), (59, True), (2, False)):
        await asyncio.sleep(seconds)
        assert (await tool.ask(cases.context(), "What happened to ord-11111?")).cached is cached


async def test_closing_a_thread_forgets_its_answers(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    await cases.post(store, "depot.log", cases.OTHER_LOG, cases.OTHER_THREAD)
    tools = cases.tools_over(store)
    await tools[libraries.CASE].ask(cases.context(), QUESTION)
    await tools[libraries.CASE].ask(cases.context(cases.OTHER_THREAD), "How many lines mention zx-99?")
    cache = tools[libraries.CASE].cache
    assert len(cache) == 2
    cache.purge(cases.case().name)
    assert len(cache) == 1


async def test_an_answer_that_was_under_way_when_its_thread_was_closed_is_not_kept(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    asker = cases.ScriptedAsker("It was declined.")
    tools = cases.tools_over(store, asker=asker)

    async def closed(*args: Any, **kwargs: Any) -> Any:
        await store.delete_collection(cases.case().name)
        tools[libraries.CASE].cache.purge(cases.case().name)
        return await answered(*args, **kwargs)

    answered = asker.ask
    asker.ask = closed
    await tools[libraries.CASE].ask(cases.context(), QUESTION)
    assert len(tools[libraries.CASE].cache) == 0


async def test_no_more_is_kept_than_allowed() -> None:
    cache = AnswerCache(max_entries=3, max_bytes=3000)
    for number in range(5):
        cache.put(f"key {number}", "case_1", QAResult("short", Status.OK), 60)
    assert [cache.get(f"key {number}") is not None for number in range(5)] == [False, False, True, True, True]
    cache.put("large", "case_1", QAResult("x" * 2500, Status.OK), 60)
    assert cache.get("large") is not None
    assert cache.get("key 2") is None
    cache.put("too large", "case_1", QAResult("x" * 5000, Status.OK), 60)
    assert cache.get("too large") is None


@pytest.mark.parametrize(
    "status", [Status.RETRIEVAL_ERROR, Status.SYNTHESIS_ERROR, Status.DENIED, Status.INDEXING, Status.INVALID]
)
async def test_what_may_be_otherwise_in_a_moment_is_not_kept(status: Status) -> None:
    cache = AnswerCache()
    cache.put("key", "case_1", QAResult("no", status), 60)
    assert cache.get("key") is None


@dataclass
class Slow(ExtractiveSynthesiser):
    calls: list[str] = field(default_factory=list[str])

    async def answer(self, material: Material) -> str:
        self.calls.append(material.question)
        await asyncio.sleep(1)
        return await super().answer(material)


async def test_equal_questions_at_one_time_share_one_answer(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    slow = Slow()
    core = DocumentQATool(config=libraries.CASE_EVIDENCE, shelf=FileShelf(store), synthesiser=slow)
    results = await asyncio.gather(*(core.answer_question(QUESTION, "100") for _ in range(8)))
    assert len(slow.calls) == 1
    assert len({result.answer for result in results}) == 1


async def test_a_thousand_random_writes_and_reads_never_meet_a_stale_answer(store: DocumentStore) -> None:
    """The model is a dictionary: what each thread holds now. An answer that is not from it would be stale."""
    random_ = random.Random(20_311)  # noqa: S311 (repeatable, not secret)
    tools = cases.tools_over(store)
    held: dict[int, dict[str, int]] = {1: {}, 2: {}, 3: {}}
    hits = 0
    for step in range(1000):
        thread = random_.choice(tuple(held))
        files = held[thread]
        action = random_.random()
        if action < 0.12:
            name = f"f{random_.randrange(2)}.log"
            lines = [f"2031-03-04 10:00:{n:02} ERROR a.B: step {step}" for n in range(random_.randint(1, 4))]
            await store.add(cases.case(thread), [cases.new(name, "\n".join(lines) + "\n")])
            files[name] = len(lines)
        elif action < 0.15:
            await store.delete_collection(cases.case(thread).name)
            files.clear()
        else:
            result = await tools[libraries.CASE].ask(cases.context(thread), "How many ERROR entries are there?")
            hits += result.cached
            if files:
                assert result.plan["count"] == sum(files.values()), step
            else:
                assert result.status is Status.NOT_INDEXED
    assert hits > 300


def test_what_makes_no_difference_is_taken_out_of_questions() -> None:
    assert normalise("  Ｗhat   IS\tit ?!") == normalise("what is it")
    assert normalise("what is it") != normalise("what was it")


async def test_an_answer_found_without_the_embedder_that_there_is_is_not_kept(store: DocumentStore) -> None:
    class Faltering(HashingEmbedder):
        works = False

        async def embed(self, texts: Sequence[str]) -> Vectors:
            if not self.works:
                raise EmbeddingFailed("down")
            return await super().embed(texts)

    await cases.post(store, "shop.log", cases.LOG)
    embedder = Faltering()
    tool = cases.tools_over(store, embedder=embedder)[libraries.CASE]
    question = "Why did the customer get no mail?"
    without = await tool.ask(cases.context(), question)
    assert "keyword search only" in without.answer
    embedder.works = True
    fresh = await tool.ask(cases.context(), question)
    assert not fresh.cached
    assert "keyword search only" not in fresh.answer
    assert (await tool.ask(cases.context(), question)).cached


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Show FATAL or ERROR", "Show fatal or error"),
        ("list INFO", "list info"),
        ("What is NoFree?", "what is nofree?"),
    ],
)
async def test_questions_that_letter_case_makes_different_share_no_answer(
    store: DocumentStore, one: str, other: str
) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    fresh = [await cases.tools_over(store)[libraries.CASE].ask(cases.context(), question) for question in (one, other)]
    tool = cases.tools_over(store)[libraries.CASE]
    kept = [await tool.ask(cases.context(), question) for question in (one, other)]
    for alone, after in zip(fresh, kept, strict=True):
        assert alone.citations == after.citations
        assert alone.answer.casefold() == after.answer.casefold()
