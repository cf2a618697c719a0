"""Documentation and the team's topics, which the tools ask search for."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.documents.store.document_store import DocumentStore
from services.documents.tools import libraries
from services.documents.tools.libraries import Status
from services.knowledge.library_search import LibrarySearch
from services.search.passage_store import PassageStore
from tests.hashing import HashingEmbedder
from tests.searching import by_words
from tests.services.documents import cases
from tests.world import Shelf

TOPIC = """\
--- QA ---
id: qa_20310304_100000.000000
timestamp: 2031-04-04T10:00:00.000000Z
said_at: 2031-03-04T10:00:00.000000Z
superseded: 2032-01-02T00:00:00Z It is four days.
User: How long do refunds take?
Team: Refunds take three days.
  Weekends do not count.

--- QA ---
id: qa_20310305_100000.000000
timestamp: 2031-03-05T10:00:00.000000Z
User: Who checks large refunds?
Team: Mara checks refunds above 900 EUR.

"""
LIMITS = "# Rate limits\n\nSixty calls a minute.\n"


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return cases.new_store(tmp_path)


async def test_one_conversation_of_a_topic_is_one_passage_with_what_no_longer_holds(store: DocumentStore) -> None:
    tool = cases.tools_over(store, by_words(Shelf({"team:refunds.txt": TOPIC})))[libraries.TEAM]
    result = await tool.ask(cases.context(), "How long do refunds take?", k=1)
    assert result.status is Status.OK
    assert 'topic "refunds" (2031-03-04)' in result.answer
    assert "Superseded in part on 2032-01-02: It is four days." in result.answer
    assert "Weekends do not count" in result.answer
    assert "Mara" not in result.answer
    text = await tool.run(cases.context(), "How long do refunds take?")
    assert text.splitlines()[-1].startswith("👥 Team notes: refunds (")


async def test_articles_are_cited_with_their_titles(store: DocumentStore) -> None:
    shelf = Shelf({"kb:guides/limits.md": LIMITS, "kb:plain.md": "Just text, no heading."})
    search = LibrarySearch(shelf, PassageStore(None), PassageStore(None), HashingEmbedder())
    text = await cases.tools_over(store, search)[libraries.GLOBAL].run(cases.context(), "How many calls a minute?", k=1)
    assert 'guides/limits.md "Rate limits"' in text
    assert "Sixty calls" in text
    assert "📖 Knowledge Base: guides/limits.md" in text


@pytest.mark.parametrize(
    ("source_id", "about"),
    [
        ("kb:guides/limits.md", ("guides/limits.md", "guides")),
        ("kb:@9/guides/limits.md", ("guides/limits.md", "guides")),
        ("kb:https://docs.example.org/faq?a=1", ("https://docs.example.org/faq?a=1", "docs.example.org")),
    ],
)
async def test_a_source_goes_by_its_path_or_address(source_id: str, about: tuple[str, str]) -> None:
    search = by_words(Shelf({source_id: LIMITS}))
    (hit, *_) = (await search.find("calls a minute")).hits
    found = libraries.ARTICLES.about(hit.passage)
    assert (found["kb_article_id"], found["category"], found["title"]) == (*about, "Rate limits")


async def test_a_source_that_is_gone_is_found_no_more(store: DocumentStore) -> None:
    shelf = Shelf({"kb:a.md": "# A\n\nAbout apples.\n", "kb:b.md": "# B\n\nAbout bananas.\n"})
    tool = cases.tools_over(store, by_words(shelf))[libraries.GLOBAL]
    assert "bananas" in await tool.run(cases.context(), "What about bananas?")
    del shelf.texts["kb:b.md"]
    assert "About bananas" not in await tool.run(cases.context(), "What about bananas?")
    del shelf.texts["kb:a.md"]
    assert (await tool.ask(cases.context(), "What about apples?")).status is Status.NOT_INDEXED
    assert not await tool.is_available(cases.context())


async def test_a_name_that_few_passages_hold_is_what_is_asked_about(store: DocumentStore) -> None:
    texts = {f"kb:{n}.md": f"# Errors\n\nAn error of the importer, number {n}.\n" for n in range(9)}
    texts["kb:codes.md"] = "# Codes\n\nE-1042: the disk is full.\n"
    tool = cases.tools_over(store, by_words(Shelf(texts)))[libraries.GLOBAL]
    result = await tool.ask(cases.context(), "Which error of the importer is E-1042?", k=1)
    assert (result.sources, result.confidence) == (("codes.md",), 1.0)


async def test_what_has_nothing_to_do_with_the_question_is_not_an_answer(store: DocumentStore) -> None:
    tool = cases.tools_over(store, by_words(Shelf({"kb:limits.md": LIMITS})))[libraries.GLOBAL]
    far = await tool.ask(cases.context(), "Which calls wake sleeping elephants underneath distant mountains?")
    assert far.status is Status.REFUSED_IRRELEVANT
    none = await tool.ask(cases.context(), "zebra?")
    assert none.status is Status.NOT_FOUND
    assert "limits.md" in none.answer
