"""Reading a library: again when it has changed, and never on the event loop when it is large."""

from __future__ import annotations

import asyncio
import time

import pytest
from services.assistant.extractive.corpus import Content, Corpus, ExcerptCache, cut
from services.search.passages import passages

from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Source
from services.search.questions import read_query
from tests.services.assistant.extractive.lanternfish import INDEX, Bookcase


async def found(corpus: Corpus, query: str) -> list[str]:
    return [one.source_id for one in await corpus.search(read_query(query))]


async def test_sources_are_read_once_and_again_after_a_minute_or_when_the_index_changes() -> None:
    books = Bookcase()
    corpus = Corpus(books)
    for _ in range(3):
        await corpus.refresh()
    assert books.loads == len(INDEX)
    await asyncio.sleep(61)
    await corpus.refresh()
    assert books.loads == 2 * len(INDEX)
    books.entries = INDEX[:2]
    await corpus.refresh()
    assert books.loads == 2 * len(INDEX) + 2


async def test_questions_that_come_at_once_read_the_library_once() -> None:
    books = Bookcase()
    corpus = Corpus(books)
    await asyncio.gather(*(corpus.refresh() for _ in range(5)))
    assert books.loads == len(INDEX)


async def test_a_source_that_cannot_be_read_is_found_by_its_description() -> None:
    corpus = Corpus(Bookcase([IndexEntry("kb:gone.md", "Zeppelins and their moorings.")], ()))
    assert await found(corpus, "where do I moor a zeppelin?") == ["kb:gone.md"]


async def test_only_sources_that_are_offered_are_found() -> None:
    corpus = Corpus(Bookcase())
    query = read_query("how do I restore a backup of the database?")
    assert {one.source_id for one in await corpus.search(query, ["kb:guides/storage.md"])} == {"kb:guides/storage.md"}


@pytest.mark.real_time
async def test_the_event_loop_goes_on_while_half_a_megabyte_is_cut() -> None:
    page = "".join(f"## Part {n}\n\nThe {n}th valve is turned by lever {n * 7}.\n\n" for n in range(10_000))
    corpus = Corpus(Bookcase([IndexEntry("kb:big.md", "Valves.")], [Source("kb:big.md", page)]))
    work = asyncio.create_task(found(corpus, "which lever turns the 4711th valve?"))
    beats = 0
    while not work.done():
        await asyncio.sleep(0.01)
        beats += 1
    assert await work == ["kb:big.md"]
    assert beats > 5


@pytest.mark.parametrize(
    "text",
    [f"# a{' ' * 200_000}b", "- " * 200_000 + "x", "_" * 400_000 + "x", "#" * 400_000, "\n" * 400_000, "`" * 400_000],
    ids=["heading", "rule", "underscores", "hashes", "blank", "fence"],
)
def test_no_text_takes_long_to_cut(text: str) -> None:
    began = time.process_time()
    passages(text)
    assert time.process_time() - began < 2


def test_excerpts_are_cached_until_their_texts_are_too_long_together() -> None:
    cache = ExcerptCache(max_chars=5)
    contents = {text: Content(text, by_team=False) for text in ("aa", "bbb", "cc")}
    made = {text: cut(content) for text, content in contents.items()}
    for text in ("aa", "bbb", "aa", "cc"):
        cache.put(contents[text], made[text])
    assert [cache.get(contents[text]) for text in ("aa", "bbb", "cc")] == [made["aa"], None, made["cc"]]
