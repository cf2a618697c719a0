"""Vectors of documents are computed in the background, one document after another."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from assembly.documents import Background
from services.documents.store import DocumentStore
from services.search.embedding import Embedder


async def test_a_question_waits_for_one_document_however_many_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, done = 0, 0, list[str]()

    async def embed(_store: object, _embedder: object, _name: str, doc_id: str) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(1)
        at_once -= 1
        done.append(doc_id)

    monkeypatch.setattr("assembly.documents.embed_document", embed)
    background = Background(store=cast("DocumentStore", object()), embedder=cast("Embedder", object()))
    for number in range(5):
        background.embed_soon("user_1_kb", str(number))
    await asyncio.sleep(10)
    assert (most, done) == (1, ["0", "1", "2", "3", "4"])
    await background.tasks.close()
