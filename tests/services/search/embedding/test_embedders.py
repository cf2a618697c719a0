"""Whatever turns text into vectors."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from aiohttp import web

from assembly import answering
from services.documents.store.document_store import embed_document
from services.documents.store.protocol import State
from services.search import embedding
from services.search.embedding import EmbeddingEndpoint, EmbeddingFailed, EndpointEmbedder, PackagedEmbedder, Vectors
from tests.hashing import HashingEmbedder
from tests.services.documents import cases

ROOT = Path(__file__).parents[4]


@pytest.mark.real_time
async def test_the_packaged_model_knows_what_is_meant() -> None:
    embedder = PackagedEmbedder()
    question, near, far = await embedder.embed(
        ["How do I copy a file?", "Documents are duplicated with the cp command.", "The weather is fine today."]
    )
    assert question @ near > 0.3 > question @ far
    assert np.linalg.norm(question) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.real_time
async def test_a_text_has_the_same_vector_whatever_is_embedded_with_it() -> None:
    embedder = PackagedEmbedder()
    alone = (await embedder.embed(["one short text"]))[0]
    together = await embedder.embed(["something far longer " * 40, "one short text", ""])
    assert np.array_equal(alone, together[1])
    assert np.array_equal(alone, (await PackagedEmbedder().embed(["one short text"]))[0])


@pytest.mark.real_time
async def test_several_workers_give_the_same_vectors_in_the_same_order() -> None:
    texts = [f"line {number} " * (number % 7 + 1) for number in range(3 * embedding.PACKAGED_BATCH + 1)]
    assert np.array_equal(await PackagedEmbedder(workers=3).embed(texts), await PackagedEmbedder().embed(texts))


async def test_as_many_batches_are_embedded_at_a_time_as_there_are_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[int] = []
    together = threading.Barrier(2, timeout=60)

    def embed(_self: PackagedEmbedder, texts: Sequence[str]) -> Vectors:
        together.wait()  # breaks, unless two are here at the same time
        running.append(len(texts))
        return np.zeros((len(texts), 1), dtype=np.float32)

    monkeypatch.setattr(PackagedEmbedder, "_embed", embed)
    assert (
        len(await PackagedEmbedder(workers=2).embed(["x"] * (4 * embedding.PACKAGED_BATCH)))
        == len(running) * embedding.PACKAGED_BATCH
    )
    assert running == [embedding.PACKAGED_BATCH] * 4


@pytest.mark.parametrize(("cores", "leave", "workers"), [(1, 1, 1), (2, 1, 1), (2, 0, 2), (4, 1, 3), (64, 1, 4)])
def test_the_packaged_model_leaves_cores_to_others(
    monkeypatch: pytest.MonkeyPatch, cores: int, leave: int, workers: int
) -> None:
    made = Mock()
    monkeypatch.setattr(answering, "count_cores", lambda: cores)
    monkeypatch.setattr(answering, "PackagedEmbedder", made)
    answering.embedder_of("packaged", leave_cores=leave)
    made.assert_called_once_with(workers=workers)


@pytest.mark.real_time
async def test_the_event_loop_goes_on_while_a_file_is_embedded() -> None:
    embedder = PackagedEmbedder()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await embedder.embed(["a line of a log, not very long"] * 40)
    ticking.cancel()
    assert ticks > 5


async def test_texts_are_compared_after_one_batch_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def embed(_self: PackagedEmbedder, texts: Sequence[str]) -> Vectors:
        order.append("batch")
        return np.zeros((len(texts), 1), dtype=np.float32)

    def words_of(_self: PackagedEmbedder, text: str) -> str:
        order.append(text)
        return text

    monkeypatch.setattr(PackagedEmbedder, "_embed", embed)
    monkeypatch.setattr(PackagedEmbedder, "_words_of", words_of)
    monkeypatch.setattr(embedding, "compare_words", Mock())
    embedder = PackagedEmbedder()
    await asyncio.gather(embedder.embed(["x"] * (3 * embedding.PACKAGED_BATCH)), embedder.match("q", ["a", "b", "c"]))
    assert order == ["batch", "q", "a", "b", "c", "batch", "batch"]


async def test_a_model_that_is_not_installed_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(_name: str) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", nowhere)
    assert not embedding.is_model_installed()
    with pytest.raises(EmbeddingFailed, match="make demo installs it"):
        await PackagedEmbedder().embed(["text"])


def test_the_packaged_model_tells_its_makers_nothing(tmp_path: Path) -> None:
    """Onnxruntime gathers in the home folder what it sends."""
    program = "import asyncio; from services.search.embedding import *; asyncio.run(PackagedEmbedder().embed(['x']))"
    names = {"HOME": str(tmp_path)}  # and no CI, which keeps it silent
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=names, check=True)
    assert not list(tmp_path.iterdir())


async def test_nothing_gives_no_vectors() -> None:
    assert len(await PackagedEmbedder().embed([])) == 0
    assert len(await HashingEmbedder().embed([])) == 0
    assert len(await EndpointEmbedder(EmbeddingEndpoint("http://127.0.0.1:1/v1", "m")).embed([])) == 0


class Server:
    """An OpenAI-compatible endpoint for embeddings."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: Any = None
        self.status = 200
        self.address = ""

    async def handle(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.text())
        self.asked.append(asked)
        texts: list[str] = asked["input"]
        rows = [{"object": "embedding", "index": at, "embedding": [3.0, 4.0 * at]} for at, _ in enumerate(texts)]
        usual = {"object": "list", "model": "m", "data": rows[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        return web.json_response(self.answer if self.answer is not None else usual, status=self.status)


@pytest.fixture
async def server() -> AsyncGenerator[Server]:
    server = Server()
    app = web.Application()
    app.router.add_post("/v1/embeddings", server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    server.address = f"http://127.0.0.1:{port}/v1"
    yield server
    await runner.cleanup()


@pytest.mark.real_time
async def test_an_endpoint_is_asked_in_batches_and_its_vectors_are_made_unit_length(server: Server) -> None:
    embedder = EndpointEmbedder(EmbeddingEndpoint(server.address, "embed-1", "invented-key"))
    vectors = await embedder.embed([f"text {number}" for number in range(65)] + [""])
    assert [len(asked["input"]) for asked in server.asked] == [64, 2]
    assert server.asked[0]["model"] == "embed-1"
    assert server.asked[1]["input"][1] != ""
    assert vectors[1] == pytest.approx([0.6, 0.8])
    assert "invented-key" not in embedder.id
    await embedder.close()


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, {"error": {"message": "no such model"}}),
        (200, {"object": "list", "data": []}),
        (200, {"object": "list", "data": [{"index": 0, "embedding": [1.0]}]}),
        (200, {"data": [{"index": 0, "embedding": "x"}, {"index": 1, "embedding": "y"}]}),
    ],
)
async def test_an_endpoint_that_gives_no_vectors_is_an_error_of_one_line(
    server: Server, status: int, answer: dict[str, Any]
) -> None:
    server.status, server.answer = status, answer
    embedder = EndpointEmbedder(EmbeddingEndpoint(server.address, "embed-1", "invented-key"))
    with pytest.raises(EmbeddingFailed) as failed:
        await embedder.embed(["one", "two"])
    assert "invented-key" not in str(failed.value)
    assert "\n" not in str(failed.value)
    await embedder.close()


class Failing(HashingEmbedder):
    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise EmbeddingFailed("down")


async def test_a_document_stays_searchable_by_words_when_it_cannot_be_embedded(tmp_path: Path) -> None:
    store = cases.new_store(tmp_path)
    (document,) = await store.add(cases.case(), [cases.new("shop.log", cases.LOG)])
    for embedder in (None, Failing()):
        assert not await embed_document(store, embedder, cases.case().name, document.doc_id)
    assert await embed_document(store, HashingEmbedder(), cases.case().name, document.doc_id)
    described = await store.describe(cases.case().name)
    assert described is not None
    assert described.documents[0].state is State.READY
    assert await embed_document(store, HashingEmbedder(), cases.case().name, document.doc_id)
    await store.delete_collection(cases.case().name)
    assert not await embed_document(store, HashingEmbedder(), cases.case().name, document.doc_id)
