"""Building the tools, binding them for a model, and adding a library of one's own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from services.documents.bound import BoundTools
from services.documents.filling import fill
from services.documents.results import Status, ToolContext
from services.documents.store.embedded import EmbeddedStore
from services.documents.store.protocol import Collection, SearchMode, Weights
from services.documents.tools import schemas
from services.documents.tools.config import KBConfig, footer, parts, score_part
from services.documents.tools.configs import CaseEvidence, GlobalKB, TeamKB, UserKB
from services.documents.tools.core import DocumentQATool
from services.documents.tools.factory import build
from services.documents.tools.schemas import PARAMETERS, SCHEMAS, ToolSchema
from services.documents.tools.wrappers import DocumentTool
from services.search.embedding.hashing import HashingEmbedder
from services.search.embedding.protocol import Vectors
from tests.services.documents import cases


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return cases.new_store(tmp_path)


class Glossary(KBConfig):
    """A fifth library: words of the trade, one collection for all."""

    @property
    def requires_scope_id(self) -> bool:
        return False

    @property
    def cache_ttl(self) -> int:
        return 60

    @property
    def system_prompt(self) -> str:
        return "You explain words of the trade, in one sentence each."

    def get_collection_name(self, scope_id: str | None) -> str:
        return "glossary"

    def format_chunk_metadata(self, metadata: Mapping[str, str], score: float | None) -> str:
        return parts(score_part(score), ("Word", metadata.get("word")))

    def extract_source_name(self, metadata: Mapping[str, str]) -> str:
        return metadata.get("word") or "Unknown word"

    def get_citation_format(self) -> str:
        return "[word]"

    weights = Weights(prose=0.1)

    def format_response(self, answer: str, sources: Sequence[str], chunk_count: int, confidence: float) -> str:
        return answer + footer("🔤 Words:", sources, chunk_count, confidence, 2)


class AnswerFromGlossary(DocumentTool):
    def _scope(self, ctx: ToolContext) -> str | None:
        return None

    async def _admit(self, ctx: ToolContext) -> None:
        if ctx.guild_id is None:
            raise PermissionError("in guilds only")


async def test_a_fifth_library_needs_no_change_of_the_core(store: EmbeddedStore) -> None:
    tools = cases.toolbox(store, embedder=HashingEmbedder())
    core = DocumentQATool("answer_from_glossary", Glossary(), tools.shared)
    tools.register(AnswerFromGlossary(core), ToolSchema("answer_from_glossary", "Explains words.", PARAMETERS))
    await store.add(
        Collection("glossary", "glossary"),
        [cases.new("escrow.md", "# Escrow\n\nMoney that a third party keeps until both sides agree.\n", word="escrow")],
    )
    assert list(await tools.offered(cases.context())) == ["answer_from_glossary"]
    text = await tools.tools["answer_from_glossary"].run(cases.context(), "What does escrow mean?")
    assert "third party" in text
    assert text.splitlines()[-1].startswith("🔤 Words: escrow (1 chunks, ")
    denied = await tools.tools["answer_from_glossary"].ask(cases.context(guild=None), "What does escrow mean?")
    assert denied.status is Status.DENIED


class ByMeaning(Glossary):
    """The same, of which nothing is found by its words alone."""

    search_mode = SearchMode.VECTOR


async def found(store: EmbeddedStore, config: KBConfig, question: str, embedder: HashingEmbedder | None) -> list[str]:
    """The words that a glossary has for a question, best first."""
    core = DocumentQATool("answer_from_glossary", config, cases.toolbox(store, embedder=embedder).shared)
    return list((await core.answer_question(question, k=1)).sources)


async def test_a_library_searched_by_meaning_goes_by_words_only_where_it_has_no_vectors(store: EmbeddedStore) -> None:
    class Contrary(HashingEmbedder):
        """Takes a ledger for an escrow."""

        async def embed(self, texts: Sequence[str]) -> Vectors:
            return await super().embed([text.replace("ledger", "escrow") for text in texts])

    words = Collection("glossary", "glossary")
    near = cases.new("escrow.md", "# Escrow\n\nEscrow, escrow: kept by a third party, no. ord-58213.\n", word="escrow")
    literal = cases.new("book.md", "# Book\n\nA big book, in which each posting of the ledger stands.\n", word="book")
    question, identifier = "ledger?", 'What is "ord-58213" in a ledger ledger ledger book?'
    await store.add(words, [near, literal])
    assert await found(store, ByMeaning(), question, Contrary()) == ["book"], "there are no vectors yet"
    assert await found(store, ByMeaning(), question, None) == ["book"]
    described = await store.describe("glossary")
    assert described is not None
    await fill(store, Contrary(), "glossary", described.documents[0].doc_id)
    assert await found(store, Glossary(), question, None) == ["book"]
    await fill(store, Contrary(), "glossary", described.documents[1].doc_id)
    assert await found(store, Glossary(), question, Contrary()) == ["book"]
    assert await found(store, ByMeaning(), question, Contrary()) == ["escrow"]
    assert await found(store, ByMeaning(), question, None) == ["book"]
    assert await found(store, ByMeaning(), identifier, HashingEmbedder()) == ["escrow"]


async def test_the_four_libraries_are_searched_by_meaning_and_by_words(store: EmbeddedStore) -> None:
    assert {config().search_mode for config in (CaseEvidence, UserKB, TeamKB, GlobalKB)} == {SearchMode.HYBRID}


async def test_without_a_store_there_is_no_tool(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert build(store=None) is None
    assert "none" in caplog.text


async def test_one_line_says_which_tools_there_are(store: EmbeddedStore, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        tools = build(store=store, embedder=HashingEmbedder())
    assert tools is not None
    assert list(tools.tools) == [schemas.CASE, schemas.TEAM, schemas.GLOBAL]
    lines = [record.getMessage() for record in caplog.records if "Document tools" in record.getMessage()]
    names = f"{schemas.CASE}, {schemas.TEAM}, {schemas.GLOBAL}"
    assert lines == [f"Document tools: {names}; embeddings by hashing-256; condensed by extractive/1"]


async def test_a_tool_without_content_is_not_offered(store: EmbeddedStore) -> None:
    tools = cases.toolbox(store, sharing=[cases.FRAN])
    assert await tools.offered(cases.context()) == {}
    await cases.post(store, "shop.log", cases.LOG)
    assert list(await tools.offered(cases.context())) == [schemas.CASE]
    assert await tools.offered(cases.context(cases.OTHER_THREAD)) == {}


async def test_the_model_never_says_who_asks_or_where(store: EmbeddedStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    tools = BoundTools(cases.toolbox(store), cases.context())
    await tools.ready()
    (tool,) = tools.tools
    assert set(tool.parameters["properties"]) == {"question", "k"}
    text = await tool.run({"question": "What is on line 4 of shop.log?", "thread_id": cases.OTHER_THREAD})
    assert "card expired" in text


async def test_calls_of_one_answer_go_on_from_each_other(store: EmbeddedStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    tools = BoundTools(cases.toolbox(store), cases.context())
    await tools.ready()
    (tool,) = tools.tools
    await tool.run({"question": "Which entries mention 10.20.30.40:2525?", "k": 3})
    assert "shop.log:7 " in await tool.run({"question": "and what came right after that?"})


@pytest.mark.parametrize(("k", "most"), [(-3, 1), (0, 1), (2, 2), (500, 20)])
async def test_k_is_brought_into_its_range(store: EmbeddedStore, k: int, most: int) -> None:
    lines = [f"2031-03-04 10:{n:02}:00 ERROR a.B: broken {'x' * (n % 7)} by part-{n}00" for n in range(60)]
    await cases.post(store, "many.log", "\n".join(lines) + "\n")
    result = await cases.toolbox(store).tools[schemas.CASE].ask(cases.context(), "what is broken by parts", k=k)
    assert 1 <= result.chunk_count <= most


async def test_calling_a_tool_without_awaiting_it_is_an_error(store: EmbeddedStore) -> None:
    tool = cases.toolbox(store).tools[schemas.CASE]
    with pytest.raises(NotImplementedError, match="await"):
        tool(cases.context(), "What happened?")


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_each_description_says_what_for_and_what_else(schema: ToolSchema) -> None:
    assert schema.description.count("?") >= 4
    assert "Use it" in schema.description
    assert "Gives" in schema.description
    assert [name for name in SCHEMAS if name != schema.name and name in schema.description]
    assert schema.parameters["required"] == ["question"]


async def test_filters_that_nobody_knows_are_refused(store: EmbeddedStore) -> None:
    await cases.post(store, "shop.log", cases.LOG)
    await cases.post(store, "depot.log", cases.OTHER_LOG)
    tools = cases.toolbox(store)
    core = DocumentQATool("case", Glossary(), tools.shared)
    assert (await core.answer_question("what?", None, filters={"colour": "red"})).status is Status.INVALID
