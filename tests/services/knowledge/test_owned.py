"""What one server sees: its own sources and the shared ones, whoever reads; never another's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import cast

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from clock import VirtualLoop
from model.source_ids import bare_name, owner_of, with_owner, without_owner
from services.documents.tools import libraries
from services.knowledge import (
    IndexEntry,
    JoinedLibrary,
    LibrarySearch,
    OwnLibrary,
    Source,
    SourceUnavailable,
    excerpts,
)
from services.search import PassageStore, SearchResult, StoredPassage
from tests.hashing import HashingEmbedder
from tests.services.documents import cases

A, B = 311, 1_458_745_245_675_032_710


TOPIC = "--- QA ---\nid: qa_1\ntimestamp: t\nUser: And?\nTeam: {}\n\n"


class Shelf:
    """A library in memory, by id."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.change(texts)

    def change(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self.entries = tuple(IndexEntry(each, f"About {text}") for each, text in sorted(texts.items(), reverse=True))

    async def index(self) -> tuple[IndexEntry, ...]:
        return self.entries

    async def load(self, source_id: str) -> Source:
        if source_id not in self.texts:
            raise SourceUnavailable(source_id)
        text = self.texts[source_id]
        return Source(source_id, TOPIC.format(text) if source_id.startswith("team:") else text)


class Servers:
    """Two servers beside what they share, each with a search over what it may see."""

    def __init__(self, shared: Mapping[str, str], *own: Mapping[str, str], vectors: bool = False) -> None:
        embedder = HashingEmbedder() if vectors else None
        self.shared = Shelf(shared)
        self.searches: dict[int | None, LibrarySearch] = {}
        self.searches[None] = LibrarySearch(self.shared, PassageStore(None), PassageStore(None), embedder)
        self.libraries: dict[int, JoinedLibrary] = {}
        for guild_id, texts in zip((A, B), own, strict=False):
            mine = OwnLibrary(Shelf(texts), guild_id)
            self.libraries[guild_id] = JoinedLibrary(mine, self.shared)
            stores = PassageStore(None), PassageStore(None)
            self.searches[guild_id] = LibrarySearch(mine, *stores, embedder, shared_search=self.searches[None])

    def close(self) -> None:
        for search in self.searches.values():
            search.close()


names = st.sampled_from(["kb:setup.md", "kb:guides/ports.md", "kb:https://example.org/faq", "team:tokens.txt"])


def texts_of(owner: str) -> st.SearchStrategy[dict[str, str]]:
    """Every text has a word that no other owner has, among words that all have."""
    common = st.lists(st.sampled_from(["wheel", "river", "sluice", "freeze", "grease"]), min_size=1, max_size=5)
    return st.dictionaries(names, common.map(lambda said: f"The {' '.join(said)} of {owner}word."), max_size=4)


queries = st.lists(st.sampled_from(["wheel", "sluice", "sharedword", "aword", "bword", "freeze"]), min_size=1).map(
    " ".join
)


@hypothesis_settings(suppress_health_check=[HealthCheck.too_slow])
@given(texts_of("shared"), texts_of("a"), texts_of("b"), queries, st.booleans())
def test_no_reader_in_one_server_is_given_a_word_of_another(
    shared: dict[str, str], a: dict[str, str], b: dict[str, str], query: str, vectors: bool
) -> None:
    """Every way to read: index, load, search, passages of a source, sections, excerpts."""
    everything = {*shared, *(with_owner(each, A) for each in a), *(with_owner(each, B) for each in b)}

    async def read() -> None:
        servers = Servers(shared, a, b, vectors=vectors)
        for guild_id, foreign in ((A, "bword"), (B, "aword")):
            other = B if guild_id == A else A
            library, search = servers.libraries[guild_id], servers.searches[guild_id]
            index = await library.index()
            assert not any(owner_of(entry.id) == other or foreign in entry.description for entry in index)
            assert {entry.id for entry in index} == {each for each in everything if owner_of(each) != other}
            found = await search.find(query)
            assert not any(owner_of(hit.source_id) == other or foreign in hit.passage.text for hit in found.hits)
            sources: list[Source] = []
            for source_id in everything:
                passages = await search.passages_of(source_id, query)
                assert not any(foreign in text for text in passages)
                section = await search.section(StoredPassage(source_id, "", "", 0, (), "", ""))
                assert not any(foreign in kept.text for kept in section)
                if owner_of(source_id) == other:
                    assert not passages
                    assert not section
                    with pytest.raises(SourceUnavailable):
                        await library.load(source_id)
                else:
                    sources.append(await library.load(source_id))
            assert not any(foreign in source.text for source in sources)
            assert not any(foreign in each.text for each in await excerpts.fit_sources(sources, query, search, 40))
        servers.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(read())


@pytest.mark.parametrize("vectors", [False, True])
async def test_own_and_shared_sources_are_ranked_as_one_library(vectors: bool) -> None:
    shared = {"kb:setup.md": "# Setup\n\nThe wheel is greased with tallow."}
    own = {
        "kb:setup.md": "# Setup\n\nThe sluice is lifted by a chain.",
        "team:ice.txt": "In frost the wheel stands still.",
    }
    servers = Servers(shared, own, {}, vectors=vectors)

    def ids(found: SearchResult) -> list[str]:
        return [hit.source_id for hit in found.pages]

    assert ids(await servers.searches[A].find("who greases the wheel with tallow?"))[0] == "kb:setup.md"
    assert ids(await servers.searches[A].find("what lifts the sluice?"))[0] == f"kb:@{A}/setup.md"
    assert set(ids(await servers.searches[A].find("the wheel in frost"))) >= {f"team:@{A}/ice.txt", "kb:setup.md"}
    assert set(ids(await servers.searches[B].find("what lifts the sluice?"))) <= {"kb:setup.md"}
    servers.close()


async def test_what_changes_in_the_shared_library_is_found_in_every_server() -> None:
    servers = Servers({"kb:a.md": "The wheel turns."}, {"kb:b.md": "The sluice is closed."}, {})
    assert len((await servers.searches[A].find("lever")).hits) == 0
    servers.shared.change({"kb:a.md": "The wheel turns.", "kb:c.md": "Pull the lever twice."})
    assert [hit.source_id for hit in (await servers.searches[A].find("lever")).hits] == ["kb:c.md"]
    assert [entry.id for entry in await servers.libraries[A].index()] == [f"kb:@{A}/b.md", "kb:c.md", "kb:a.md"]
    servers.close()


async def test_search_goes_on_where_the_shared_file_was_lost_as_it_was_read() -> None:
    servers = Servers({"kb:a.md": "The wheel turns."}, {"kb:b.md": "The sluice is closed."}, {})
    search = servers.searches[A]
    assert not search.needs_rebuilding or (await search.find("wheel")).hits
    cast("LibrarySearch", search.shared_search).kb.empty_file()
    assert search.needs_rebuilding
    assert [hit.source_id for hit in (await search.find("wheel")).hits] == ["kb:a.md"]
    assert not search.needs_rebuilding
    servers.close()


async def test_the_same_index_is_the_same_tuple() -> None:
    """Search sees by that whether it has to look after the sources again."""
    servers = Servers({"kb:a.md": "x"}, {"kb:a.md": "y"}, {})
    first = await servers.libraries[A].index()
    assert await servers.libraries[A].index() is first


async def test_a_shared_folder_that_is_called_like_a_server_belongs_to_nobody() -> None:
    servers = Servers({f"kb:@{B}/a.md": "bword"}, {}, {"kb:a.md": "y"})
    assert await servers.libraries[A].index() == ()
    with pytest.raises(SourceUnavailable):
        await servers.libraries[A].load(f"kb:@{B}/a.md")


async def test_team_entries_come_first_those_of_the_server_before_the_shared_ones() -> None:
    both = {"kb:a.md": "x", "team:t.txt": "y"}
    servers = Servers(both, both, {})
    ids = [entry.id for entry in await servers.libraries[A].index()]
    assert ids == [f"team:@{A}/t.txt", "team:t.txt", f"kb:@{A}/a.md", "kb:a.md"]


@pytest.mark.parametrize(
    "source_id", ["kb:a.md", "kb:https://example.org/x@1/y", "team:tokens.txt", "kb:git:h/x//a.md"]
)
def test_the_mark_of_a_server_comes_off_as_it_went_on(source_id: str) -> None:
    marked = with_owner(source_id, B)
    assert (owner_of(marked), without_owner(marked), owner_of(source_id)) == (B, source_id, None)
    assert bare_name(marked) == bare_name(source_id)
    assert Source(marked, "").url == Source(source_id, "").url


async def test_the_document_tools_search_what_a_server_sees(tmp_path_factory: pytest.TempPathFactory) -> None:
    store = cases.new_store(tmp_path_factory.mktemp("documents"))
    said = ("all", "aword", "bword")
    texts = ({"kb:s.md": f"# Gates\n\nThe gates of the harbour open by {word}.\n"} for word in said)
    servers = Servers(*texts)
    for guild_id, seen in ((None, {"all"}), (A, {"all", "aword"}), (B, {"all", "bword"})):
        tool = cases.tools_over(store, servers.searches[guild_id])[libraries.GLOBAL]
        given = await tool.run(cases.context(), "When do the gates of the harbour open?", k=20)
        assert {word for word in said if f"open by {word}." in given} == seen
    await store.close()
    servers.close()
