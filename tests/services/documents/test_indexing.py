"""Keeping the team's topics and the documentation searchable."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from services.documents.indexing import Indexed, drop_topics, index_global, index_team
from services.documents.results import Status
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import ChunkSearch, State
from services.documents.tools import build, libraries
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import Source, SourceUnavailable
from services.search.embedding import EmbeddingFailed, Vectors
from tests.hashing import HashingEmbedder
from tests.services.documents import cases

BLOCK = """\
--- QA ---
id: qa_20310304_100000.000000
timestamp: 2031-03-04T10:00:00.000000Z
User: How long do refunds take?
Team: Refunds take three days.
  Weekends do not count.

"""
OTHER_BLOCK = """\
--- QA ---
id: qa_20310305_100000.000000
timestamp: 2031-03-05T10:00:00.000000Z
User: Who checks large refunds?
Team: Mara checks refunds above 900 EUR.

"""


class Shelf:
    """A `Library` of what is put into it."""

    def __init__(self, **texts: str) -> None:
        self.texts = {f"kb:{name.replace('_', '/')}.md": text for name, text in texts.items()}
        self.broken: set[str] = set()

    async def index(self) -> Sequence[IndexEntry]:
        return [IndexEntry("team:refunds.txt", "x"), *(IndexEntry(name, "x") for name in self.texts)]

    async def load(self, source_id: str) -> Source:
        if source_id in self.broken:
            raise SourceUnavailable(f"{source_id} cannot be read")
        return Source(source_id, self.texts[source_id])


class CountingEmbedder(HashingEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.texts = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += len(texts)
        return await super().embed(texts)


@pytest.fixture
def store(tmp_path: Path) -> DocumentStore:
    return cases.new_store(tmp_path / "data")


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    folder = tmp_path / "topics"
    folder.mkdir()
    (folder / "refunds.txt").write_text(BLOCK + OTHER_BLOCK)
    (folder / ".unfinished-1").write_text("half")
    return folder


async def test_one_conversation_of_a_topic_is_one_passage(store: DocumentStore, topics: Path) -> None:
    embedder = HashingEmbedder()
    indexed = await index_team(store, embedder, topics, team_id="7", guild_id=7, team_name="Support")
    assert indexed == Indexed(added=1)
    tools = cases.tools_over(store, embedder=embedder)
    result = await tools[libraries.TEAM].ask(cases.context(), "How long do refunds take?", k=1)
    assert result.status is Status.OK
    assert 'topic "refunds" (2031-03-04)' in result.answer
    assert "Weekends do not count" in result.answer
    assert "Mara" not in result.answer
    text = await tools[libraries.TEAM].run(cases.context(), "How long do refunds take?")
    assert text.splitlines()[-1].startswith("👥 Team notes: refunds (")


async def test_only_what_has_changed_is_indexed_again(store: DocumentStore, topics: Path) -> None:
    embedder = CountingEmbedder()
    (topics / "fraud.txt").write_text(OTHER_BLOCK)
    assert await index_team(store, embedder, topics, team_id="7") == Indexed(added=2)
    seen = embedder.texts
    before = await store.describe("team_7_kb")
    assert await index_team(store, embedder, topics, team_id="7") == Indexed(kept=2)
    assert await store.describe("team_7_kb") == before
    assert embedder.texts == seen
    (topics / "fraud.txt").write_text(BLOCK)
    (topics / "refunds.txt").unlink()
    assert await index_team(store, embedder, topics, team_id="7") == Indexed(added=1, dropped=1)
    described = await store.describe("team_7_kb")
    assert described is not None
    assert before is not None
    assert [doc.filename for doc in described.documents] == ["fraud.txt"]
    assert described.version > before.version


async def test_topics_that_are_dropped_leave_nothing_whatever_the_team_was_called_and_come_back(
    store: DocumentStore, topics: Path, tmp_path: Path
) -> None:
    """Pitfalls 49 and 67."""
    await cases.post(store, "shop.log", cases.LOG)
    for team_id in ("7", "The Team of Before"):
        await index_team(store, HashingEmbedder(), topics, team_id=team_id)
    forgotten: list[str] = []
    assert await drop_topics(store, forgotten.append) == 2
    assert min(forgotten) == "team_7_kb"
    files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    assert not any(b"Weekends" in path.read_bytes() for path in files)
    assert await store.list_collections() == [cases.case().name]
    assert await drop_topics(store) == 0
    assert await index_team(store, None, topics, team_id="7") == Indexed(added=1)


async def test_topics_are_not_read_while_somebody_changes_them(store: DocumentStore, topics: Path) -> None:
    turn = asyncio.Lock()
    async with turn:
        work = asyncio.create_task(index_team(store, None, topics, team_id="7", turn=turn))
        await asyncio.sleep(1)
        (topics / "refunds.txt").write_text(BLOCK.replace("Weekends do not count.", "[removed]"))
    assert await work == Indexed(added=1)
    result = await cases.tools_over(store)[libraries.TEAM].ask(cases.context(), "How long do refunds take?", k=1)
    assert "[removed]" in result.answer


async def test_the_new_revision_is_ready_when_it_takes_the_place_of_the_old(store: DocumentStore, topics: Path) -> None:
    """Between the two nobody finds less than before."""
    states: list[list[tuple[str, State]]] = []

    class Watching(HashingEmbedder):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            described = await store.describe("team_7_kb")
            found = await store.search("team_7_kb", ChunkSearch("refunds"))
            states.append([(doc.filename, doc.state) for doc in described.documents] if described else [])
            assert found
            return await super().embed(texts)

    await index_team(store, Watching(), topics, team_id="7")
    states.clear()
    (topics / "refunds.txt").write_text(OTHER_BLOCK)
    await index_team(store, Watching(), topics, team_id="7")
    assert states == [[("refunds.txt", State.READY)]]


async def test_a_topic_can_be_kept_for_the_team(store: DocumentStore, topics: Path) -> None:
    await index_team(store, None, topics, team_id="7", guild_id=7, internal=["refunds"])
    tool = cases.tools_over(store)[libraries.TEAM]
    as_if_there_were_none = await tool.ask(cases.context(), "How long do refunds take?")
    assert as_if_there_were_none.status is Status.NOT_INDEXED
    assert not await tool.offered(cases.context())
    insider = cases.context(None, team=True)
    assert (await tool.ask(insider, "How long do refunds take?")).status is Status.OK
    # Flagging it is a change, too.
    assert await index_team(store, None, topics, team_id="7", guild_id=7) == Indexed(added=1)
    assert (await tool.ask(cases.context(), "How long do refunds take?")).status is Status.OK


async def test_a_folder_that_is_not_there_yet_makes_no_collection(store: DocumentStore, tmp_path: Path) -> None:
    assert await index_team(store, None, tmp_path / "nowhere", team_id="7") == Indexed()
    assert await store.list_collections() == []


async def test_a_folder_that_cannot_be_read_changes_nothing(store: DocumentStore, topics: Path, tmp_path: Path) -> None:
    await index_team(store, None, topics, team_id="7")
    no_folder = tmp_path / "file"
    no_folder.write_text("x")
    assert await index_team(store, None, no_folder, team_id="7") == Indexed()
    assert await store.search("team_7_kb", ChunkSearch("refunds"))


async def test_the_documentation_is_indexed_with_titles(store: DocumentStore) -> None:
    shelf = Shelf(guides_limits="# Rate limits\n\nSixty calls a minute.\n", plain="Just text, no heading.")
    await index_global(store, HashingEmbedder(), shelf)
    tools = cases.tools_over(store, embedder=HashingEmbedder())
    text = await tools[libraries.GLOBAL].run(cases.context(), "How many calls a minute?", k=1)
    assert 'guides/limits.md "Rate limits"' in text
    assert "Sixty calls" in text
    assert "📖 Knowledge Base: guides/limits.md" in text


async def test_a_page_from_the_web_goes_by_its_address(store: DocumentStore) -> None:
    shelf = Shelf()
    shelf.texts["kb:https://docs.example.org/faq?a=1"] = "Questions\n=========\n\nThe moon is far away.\n"
    await index_global(store, None, shelf)
    described = await store.describe("global_kb")
    assert described is not None
    assert described.documents[0].origin.extra == {
        "kb_article_id": "https://docs.example.org/faq?a=1",
        "title": "Questions",
        "category": "docs.example.org",
    }


async def test_a_source_that_cannot_be_loaded_now_keeps_what_is_indexed(store: DocumentStore) -> None:
    shelf = Shelf(a="# A\n\nAbout apples.\n", b="# B\n\nAbout bananas.\n")
    await index_global(store, None, shelf)
    shelf.broken.add("kb:a.md")
    del shelf.texts["kb:b.md"]
    assert await index_global(store, None, shelf) == Indexed(dropped=1)
    assert await store.search("global_kb", ChunkSearch("apples"))
    assert not await store.search("global_kb", ChunkSearch("bananas"))


async def test_what_cannot_be_taken_in_disturbs_nothing_else(store: DocumentStore) -> None:
    shelf = Shelf(a="# A\n\nAbout apples.\n", b="\0" * 100)
    assert await index_global(store, None, shelf) == Indexed(added=1, refused=1)


class Down(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbeddingFailed("down")


async def test_an_embedder_that_is_down_is_made_up_for_later(store: DocumentStore) -> None:
    shelf = Shelf(a="# A\n\nAbout apples.\n")
    await index_global(store, Down(), shelf)
    shelf.texts["kb:b.md"] = "# B\n\nAbout bananas.\n"
    await index_global(store, Down(), shelf)
    assert len(await store.unfinished()) == 2
    await index_global(store, HashingEmbedder(), shelf)
    assert await store.unfinished(HashingEmbedder().id) == []
    # Another model: everything is embedded again.
    await index_global(store, HashingEmbedder(64), shelf)
    assert await store.unfinished(HashingEmbedder(64).id) == []


async def test_a_team_of_one_server_has_its_own_topics_beside_the_shared_ones(
    store: DocumentStore, topics: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "refunds.txt").write_text(OTHER_BLOCK)
    await index_team(store, None, own, shared_dir=topics, team_id="7", guild_id=7)
    await index_team(store, None, topics, team_id="8", guild_id=8)
    described = [await store.describe(name) for name in ("team_7_kb", "team_8_kb")]
    held = [sorted(doc.filename for doc in each.documents) for each in described if each is not None]
    assert held == [["refunds.txt", "shared/refunds.txt"], ["refunds.txt"]]


async def test_the_documentation_tool_of_a_server_reads_that_server_s_collection_alone(store: DocumentStore) -> None:
    for guild_id, said in ((None, "at noon"), (7, "at dawn"), (8, "at dusk")):
        text = f"# Gates\n\nThe gates of the harbour open {said}.\n"
        await index_global(store, None, Shelf(gates=text), guild_id=guild_id)
    for server, said in ((None, "noon"), (7, "dawn"), (8, "dusk")):
        tool = build(store=store, server=server)[libraries.GLOBAL]
        result = await tool.ask(replace(cases.context(), guild_id=server), "When do the gates of the harbour open?")
        assert f"at {said}" in result.answer
    theirs = build(store=store, server=8)[libraries.GLOBAL]
    denied = await theirs.ask(replace(cases.context(), guild_id=7), "When do the gates of the harbour open?")
    assert denied.status is Status.DENIED
