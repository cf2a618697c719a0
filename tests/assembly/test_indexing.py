"""Search kept current beside the bot, and the store of documents opened."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assembly.answering import ModelOptions, open_embedder
from assembly.data_folder import read_state
from assembly.documents import documents_for, store_of
from assembly.graph_parts import DiscordAPI
from assembly.knowledge import keep_search_current, search_failed
from assembly.opening import LIVE, REHEARSAL, REPLAY, RunMode, open_bot
from dataflow import Overflow
from services.discord import DryRunPoster
from services.documents.store.chroma import ChromaCollections
from services.documents.store.collection_files import SqliteCollections
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import StoreUnavailable
from services.search.embedding import Embedder
from services.storage.data_folder import DataFolder
from settings import Settings
from tests.hashing import HashingEmbedder
from tests.searching import by_words
from tests.services.documents import cases
from tests.world import Shelf, Uploads


def configured(folder: Path, **sections: dict[str, Any]) -> Settings:
    return Settings.model_validate({"kb": {"runtime_refresh_tick_seconds": 60}, **sections}).resolve_paths(folder)


async def test_sources_are_taken_in_at_once_and_change_with_the_next_tick() -> None:
    shelf = Shelf(texts={"kb:guide.md": "# Guide\n\nThe zebra listens on port 5432.\n"})
    search = by_words(shelf)
    async with keep_search_current([search], 60):
        await asyncio.sleep(1)
        assert list(search.kb.sources()) == ["kb:guide.md"]
        shelf.texts["kb:more.md"] = "# More\n\nIt sleeps at night.\n"
        await asyncio.sleep(70)
    assert len(search.kb.sources()) == 2


async def test_collections_of_topics_and_documentation_go_at_the_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    names = ("team_9_kb", "team_x_0123_kb", "global_kb", "global_9_kb")
    for name in names:
        await cases.keep_as_before(data, name, "# Zebras\n\nA zebra asked.\n")
    assert len(list((data / "documents").glob("*.sqlite"))) == len(names)
    async with documents_for(configured(tmp_path), None, Uploads(), None) as documents:
        assert documents is not None
    assert not [path for path in data.rglob("*") if path.is_file() and b"zebra" in path.read_bytes().lower()]


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

    def made(_: object, **_options: int) -> Embedder:
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


async def test_what_is_stored_in_the_folder_never_goes_to_a_server(tmp_path: Path) -> None:
    settings = configured(tmp_path, documents={"store": "http://127.0.0.1:9"})
    async with documents_for(settings, None, Uploads(), None, store_in_folder=True) as documents:
        assert documents is not None
        assert isinstance(documents.store.collections, SqliteCollections)


@pytest.mark.parametrize(("mode", "in_folder"), [(REPLAY, True), (REHEARSAL, False), (LIVE, False)])
async def test_only_a_replay_leaves_the_server_of_documents_alone(
    tmp_path: Path, mode: RunMode, in_folder: bool
) -> None:
    settings = configured(tmp_path, documents={"store": "http://127.0.0.1:9"})
    discord = DiscordAPI(poster=DryRunPoster(), attachments=Uploads())
    state = read_state(settings, is_durable=False)
    async with open_bot(settings, mode, state, discord, ModelOptions()) as bot:
        # Nothing answers at that address, so that files are left alone.
        assert (bot.documents is not None) is in_folder


def test_an_update_that_comes_too_soon_is_no_trouble(caplog: pytest.LogCaptureFixture) -> None:
    search_failed(None, Overflow("one is waiting"))
    assert not caplog.records
    search_failed(None, ValueError("a bug"))
    assert "was not brought up to date" in caplog.text
