"""Documentation and team topics, kept searchable beside the bot."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assembly.answering import open_embedder
from assembly.documents import Documents, documents_for, store_of
from assembly.search_updates import IndexOnDemand, failed, search_kept_current
from clock import now
from dataflow import Overflow
from services.documents.store import protocol
from services.documents.store.chroma import ChromaCollections
from services.documents.store.collection_files import SqliteCollections
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import StoreUnavailable
from services.search.embedding import Embedder
from services.storage.data_folder import DataFolder
from settings import Settings
from tests.hashing import HashingEmbedder
from tests.searching import by_words
from tests.world import Shelf, Uploads


def guilds() -> list[int]:
    return [9]


def configured(folder: Path, **sections: dict[str, Any]) -> Settings:
    return Settings.model_validate({"kb": {"runtime_refresh_tick_seconds": 60}, **sections}).placed(folder)


async def names(documents: Documents | None) -> list[str]:
    assert documents is not None
    return await documents.store.list_collections()


async def until_indexed(documents: Documents | None) -> None:
    for _ in range(50):
        await asyncio.sleep(0.1)
        if protocol.GLOBAL in await names(documents):
            return


async def test_documentation_is_taken_in_at_once_and_changes_with_the_next_tick(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    shelf = Shelf(texts={"kb:guide.md": "# Guide\n\nThe zebra listens on port 5432.\n"})
    async with documents_for(settings, None, Uploads(), None) as documents:
        async with search_kept_current(settings, documents, shelf, by_words(shelf), guilds):
            await until_indexed(documents)
            shelf.texts["kb:more.md"] = "# More\n\nIt sleeps at night.\n"
            await asyncio.sleep(70)
        assert documents is not None
        described = await documents.store.describe(protocol.GLOBAL)
        assert described is not None
        assert len(described.documents) == 2


async def test_a_team_with_a_name_is_one_wherever_it_is(tmp_path: Path) -> None:
    settings = configured(tmp_path, documents={"team_name": "lamps"})
    async with documents_for(settings, None, Uploads(), None) as documents:
        shelf = Shelf(texts={"kb:a.md": "# A\n\nb\n"})
        async with search_kept_current(settings, documents, shelf, by_words(shelf), guilds):
            await until_indexed(documents)
            await asyncio.sleep(1)
        assert not [name for name in await names(documents) if name == "team_9_kb"]


async def test_where_documents_are_off_nothing_is_kept(tmp_path: Path) -> None:
    settings = configured(tmp_path, documents={"enabled": False})
    async with documents_for(settings, None, Uploads(), None) as documents:
        assert documents is None
        async with search_kept_current(settings, documents, Shelf(), by_words(Shelf()), guilds):
            await asyncio.sleep(100)
    assert not (tmp_path / "data" / "documents").exists()


async def test_a_store_that_cannot_be_written_is_a_line_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr("assembly.search_updates.index_global", broken)
    settings = configured(tmp_path)
    async with (
        documents_for(settings, None, Uploads(), None) as documents,
        search_kept_current(settings, documents, Shelf(), by_words(Shelf()), guilds),
    ):
        await asyncio.sleep(1)
    assert "the disk is full" in caplog.text


async def test_a_store_that_cannot_be_read_at_the_start_leaves_files_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> list[str]:
        raise StoreUnavailable("the store of documents cannot be used")

    closed: list[DocumentStore] = []

    async def close(store: DocumentStore) -> None:
        closed.append(store)

    monkeypatch.setattr(DocumentStore, "list_collections", broken)
    monkeypatch.setattr(DocumentStore, "close", close)
    async with documents_for(configured(tmp_path), None, Uploads(), None) as documents:
        assert documents is None
    assert "left alone until the next start" in caplog.text
    assert len(closed) == 1


async def test_each_embedder_is_closed_by_whoever_opened_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Embedder] = []

    class Closing(HashingEmbedder):
        async def close(self) -> None:
            closed.append(self)

    def made(_: object) -> Embedder:
        return Closing()

    monkeypatch.setattr("assembly.answering.embedder_of", made)
    endpoint = {"base_url": "http://127.0.0.1:9", "model": "m", "api_key": "k"}
    settings = configured(tmp_path, documents={"embeddings": endpoint})
    async with open_embedder("packaged") as searching:
        async with documents_for(settings, None, Uploads(), searching) as documents:
            assert documents is not None
            own = documents.embedder
            assert own is not searching
        assert closed == [own]
    assert closed == [own, searching]


def test_documents_lie_in_files_or_on_a_server_as_it_is_set(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    assert isinstance(store_of(folder).collections, SqliteCollections)
    assert isinstance(store_of(folder, "http://127.0.0.1:8000").collections, ChromaCollections)
    assert not list(tmp_path.iterdir())


async def test_a_rehearsal_never_writes_to_a_server(tmp_path: Path) -> None:
    settings = configured(tmp_path, documents={"store": "http://127.0.0.1:9"})
    async with documents_for(settings, None, Uploads(), None, rehearsed=True) as documents:
        assert documents is not None
        assert isinstance(documents.store.collections, SqliteCollections)


def test_an_update_that_comes_too_soon_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    failed(None, Overflow("one is waiting"))
    assert not caplog.records
    failed(None, ValueError("a bug"))
    assert "was not brought up to date" in caplog.text


async def test_what_changes_is_found_a_tick_later_as_it_would_be_beside_the_bot(tmp_path: Path) -> None:
    settings = configured(tmp_path)
    shelf = Shelf(texts={"kb:guide.md": "# Guide\n\nThe zebra listens on port 5432.\n"})

    async def known() -> int:
        assert documents is not None
        described = await documents.store.describe(protocol.GLOBAL)
        return 0 if described is None else len(described.documents)

    async with documents_for(settings, None, Uploads(), None) as documents:
        assert documents is not None
        asked = IndexOnDemand(settings, shelf, documents.store, documents.embedder)
        begun = now()
        await asyncio.gather(asked(9), asked(9), asked(None))
        assert (await known(), now()) == (1, begun), "the clock stood still"
        shelf.texts["kb:more.md"] = "# More\n\nIt sleeps at night.\n"
        await asyncio.sleep(59)
        await asked(9)
        assert await known() == 1
        await asyncio.sleep(1)
        await asked(9)
        assert await known() == 2
