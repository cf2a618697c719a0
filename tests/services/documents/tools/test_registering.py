"""Building the tools, binding them for a model, and adding a library of one's own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from services.documents.store.document_store import DocumentStore, embed_document
from services.documents.store.protocol import Collection, SearchMode, Weights
from services.documents.tools import libraries
from services.documents.tools.core import DocumentQATool
from services.documents.tools.libraries import LIBRARIES, KBConfig, Status, ToolContext
from services.documents.tools.scopes import FileShelf
from services.documents.tools.toolset import Toolset, build
from services.search.embedding import Vectors
from tests.hashing import HashingEmbedder
from tests.searching import by_words
from tests.services.documents import cases
from tests.world import Shelf


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return cases.new_store(tmp_path)


GLOSSARY = KBConfig(
    name="answer_from_glossary",
    description="Explains words.",
    system_prompt="You explain words of the trade, in one sentence each.",
    citation_format="[word]",
    collection=lambda _: "glossary",
    admits=lambda ctx: ctx.guild_id is not None,
    cache_ttl=60,
    header={"Word": "word"},
    named_by=("word",),
    unnamed="Unknown word",
    cited={"source": "[{}]"},
    footer="🔤 Words:",
    most_sources=2,
    weights=Weights(prose=0.1),
)
"""A fifth library: words of the trade, one collection for all, in guilds only."""

BY_MEANING = replace(GLOSSARY, search_mode=SearchMode.VECTOR)
"""The same, of which nothing is found by its words alone."""


async def test_a_fifth_library_needs_no_change_of_the_core(store: DocumentStore) -> None:
    tools = cases.tools_over(store, embedder=HashingEmbedder())
    tool = tools[GLOSSARY.name] = replace(tools[libraries.CASE], config=GLOSSARY)
    await store.add(
        Collection("glossary", "glossary"),
        [cases.new("escrow.md", "# Escrow\n\nMoney that a third party keeps until both sides agree.\n", word="escrow")],
    )
    toolset = Toolset(tools, cases.context())
    await toolset.prepare()
    assert [each.name for each in toolset.tools] == ["answer_from_glossary"]
    text = await tool.run(cases.context(), "What does escrow mean?")
    assert "third party" in text
    assert text.splitlines()[-1].startswith("🔤 Words: escrow (1 chunks, ")
    denied = await tool.ask(cases.context(guild=None), "What does escrow mean?")
    assert denied.status is Status.DENIED


async def found(store: DocumentStore, config: KBConfig, question: str, embedder: HashingEmbedder | None) -> list[str]:
    """The words that a glossary has for a question, best first."""
    tool = DocumentQATool(config=config, shelf=FileShelf(store), embedder=embedder)
    return list((await tool.answer_question(question, k=1)).sources)


async def test_a_library_searched_by_meaning_goes_by_words_only_where_it_has_no_vectors(store: DocumentStore) -> None:
    class Contrary(HashingEmbedder):
        """Takes a ledger for an escrow."""

        async def embed(self, texts: Sequence[str]) -> Vectors:
            return await super().embed([text.replace("ledger", "escrow") for text in texts])

    words = Collection("glossary", "glossary")
    near = cases.new("escrow.md", "# Escrow\n\nEscrow, escrow: kept by a third party, no. ord-58213.\n", word="escrow")
    literal = cases.new("book.md", "# Book\n\nA big book, in which each posting of the ledger stands.\n", word="book")
    question, identifier = "ledger?", 'What is "ord-58213" in a ledger ledger ledger book?'
    await store.add(words, [near, literal])
    assert await found(store, BY_MEANING, question, Contrary()) == ["book"], "there are no vectors yet"
    assert await found(store, BY_MEANING, question, None) == ["book"]
    described = await store.describe("glossary")
    assert described is not None
    await embed_document(store, Contrary(), "glossary", described.documents[0].doc_id)
    assert await found(store, GLOSSARY, question, None) == ["book"]
    await embed_document(store, Contrary(), "glossary", described.documents[1].doc_id)
    assert await found(store, GLOSSARY, question, Contrary()) == ["book"]
    assert await found(store, BY_MEANING, question, Contrary()) == ["escrow"]
    assert await found(store, BY_MEANING, question, None) == ["book"]
    assert await found(store, BY_MEANING, identifier, HashingEmbedder()) == ["escrow"]


async def test_the_four_libraries_are_searched_by_meaning_and_by_words(store: DocumentStore) -> None:
    assert {config.search_mode for config in LIBRARIES} == {SearchMode.HYBRID}


async def test_one_line_says_which_tools_there_are(store: DocumentStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tools = build(store=store, search=by_words(Shelf()), embedder=HashingEmbedder())
    assert list(tools) == [libraries.CASE, libraries.TEAM, libraries.GLOBAL]
    lines = [record.getMessage() for record in caplog.records if "Document tools" in record.getMessage()]
    names = f"{libraries.CASE}, {libraries.TEAM}, {libraries.GLOBAL}"
    assert lines == [f"Document tools: {names}; embeddings by hashing-256; condensed by extractive/1"]


async def test_a_tool_without_content_is_not_offered(store: DocumentStore) -> None:
    tools = cases.tools_over(store, sharing=[cases.FRAN])

    async def offered(ctx: ToolContext) -> list[str]:
        return [name for name, tool in tools.items() if await tool.is_available(ctx)]

    assert await offered(cases.context()) == []
    await cases.post(store, "shop.log", cases.LOG)
    assert await offered(cases.context()) == [libraries.CASE]
    assert await offered(cases.context(cases.OTHER_THREAD)) == []


async def test_the_model_never_says_who_asks_or_where(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    tools = Toolset(cases.tools_over(store), cases.context())
    await tools.prepare()
    tool, _ = tools.tools
    assert set(tool.parameters["properties"]) == {"question", "k"}
    text = await tool.run({"question": "What is on line 4 of shop.log?", "thread_id": cases.OTHER_THREAD})
    assert "card expired" in str(text)


async def test_calls_of_one_answer_go_on_from_each_other(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    tools = Toolset(cases.tools_over(store), cases.context())
    await tools.prepare()
    tool, _ = tools.tools
    await tool.run({"question": "Which entries mention 10.20.30.40:2525?", "k": 3})
    assert "shop.log:7 " in str(await tool.run({"question": "and what came right after that?"}))


@pytest.mark.parametrize(("k", "most"), [(-3, 1), (0, 1), (2, 2), (500, 20)])
async def test_k_is_brought_into_its_range(store: DocumentStore, k: int, most: int) -> None:
    lines = [f"2031-03-04 10:{n:02}:00 ERROR a.B: broken {'x' * (n % 7)} by part-{n}00" for n in range(60)]
    await cases.post(store, "many.log", "\n".join(lines) + "\n")
    result = await cases.tools_over(store)[libraries.CASE].ask(cases.context(), "what is broken by parts", k=k)
    assert 1 <= result.chunk_count <= most


async def test_calling_a_tool_without_awaiting_it_is_an_error(store: DocumentStore) -> None:
    tool = cases.tools_over(store)[libraries.CASE]
    with pytest.raises(NotImplementedError, match="await"):
        tool(cases.context(), "What happened?")


@pytest.mark.parametrize("config", LIBRARIES, ids=[config.name for config in LIBRARIES])
def test_each_description_says_what_for_and_what_else(config: KBConfig) -> None:
    assert config.description.count("?") >= 4
    assert "Use it" in config.description
    assert "Gives" in config.description
    assert [other for other in LIBRARIES if other is not config and other.name in config.description]
    assert libraries.PARAMETERS["required"] == ["question"]


async def test_filters_that_nobody_knows_are_refused(store: DocumentStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    await cases.post(store, "depot.log", cases.OTHER_LOG)
    tool = DocumentQATool(config=GLOSSARY, shelf=FileShelf(store))
    assert (await tool.answer_question("what?", None, filters={"colour": "red"})).status is Status.INVALID
