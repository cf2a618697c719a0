"""Chroma as the store that several processes share (extra `chroma`: its HTTP client).

Chroma keeps everything; each process holds what it reads in files of its own, as `EmbeddedStore` has them, and looks at
Chroma's version of a collection before each read. So words, lines and ranking are the same code as without Chroma, and
the same question gives the same answer in both. A write goes to Chroma last: what is not there has not happened.

Each of our collections is two of Chroma's: `<name>.facts`, whose records are the parts of packed documents, and
`<name>.vectors`, with a record for each embedded chunk. Our own vectors are always given, so that none of its embedding
functions (which download models) ever runs.
"""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np

from services.documents.store import naming
from services.documents.store.embedded import EmbeddedStore, Folders
from services.documents.store.packing import Packed
from services.documents.store.protocol import (
    Collection,
    Described,
    Document,
    Hit,
    Lines,
    LineWhere,
    NewDocument,
    Origin,
    Search,
    StoredChunk,
    StoreUnavailable,
    Unembedded,
    Vectors,
)
from services.files import in_thread

T = TypeVar("T")

FACTS, VECTORS = ".facts", ".vectors"
PART_CHARS = 200_000
"""Of a packed document in one record."""

AT_ONCE = 100
CHECK = "`python app.py --check` looks what is missing"
_NO_VECTOR = [1.0]
"""Chroma wants a vector for each record."""


class ChromaStore:
    """A `DocumentStore` (services.documents.store.protocol)."""

    def __init__(self, address: str, folder: Path, *, connect: Callable[[str], Any] | None = None) -> None:
        """`address`: `http://host:port`. `folder`: for copies, of this process alone; may be deleted between runs.

        `connect` gives another client than Chroma's own.
        """
        self._address = address
        self._connect = connect if connect is not None else _http_client
        self._copies = EmbeddedStore(Folders(folder, folder, folder))
        self._held: dict[str, int] = {}
        """The version of each copy."""
        self._locks: dict[str, asyncio.Lock] = {}
        self._client: Any = None

    async def expect(self, collection: Collection, origin: Origin) -> Document:
        return await self._written(collection.name, lambda: self._copies.expect(collection, origin))

    async def add(self, collection: Collection, docs: Sequence[NewDocument], *, create: bool = True) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.add(collection, docs, create=create))

    async def revise(self, collection: Collection, docs: Sequence[NewDocument], drop: Sequence[str]) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.revise(collection, docs, drop))

    async def fail(self, name: str, doc_id: str, reason: str) -> bool:
        return await self._written(name, lambda: self._copies.fail(name, doc_id, reason))

    async def unembedded(self, name: str, doc_id: str, embedder_id: str) -> list[Unembedded]:
        return await self._read(name, lambda: self._copies.unembedded(name, doc_id, embedder_id))

    async def embed(self, name: str, doc_id: str, embedder_id: str, vectors: Mapping[int, Vectors]) -> bool:
        return await self._written(name, lambda: self._copies.embed(name, doc_id, embedder_id, vectors))

    async def search(self, name: str, search: Search) -> list[Hit]:
        return await self._read(name, lambda: self._copies.search(name, search))

    async def lines(
        self, name: str, where: LineWhere, *, limit: int = 20, newest_first: bool = False, by_time: bool = False
    ) -> Lines:
        return await self._read(
            name, lambda: self._copies.lines(name, where, limit=limit, newest_first=newest_first, by_time=by_time)
        )

    async def distinct(self, name: str, where: LineWhere, column: str, *, limit: int = 20) -> list[tuple[str, int]]:
        return await self._read(name, lambda: self._copies.distinct(name, where, column, limit=limit))

    async def chunks(self, name: str, doc_id: str, indices: Sequence[int]) -> list[StoredChunk]:
        return await self._read(name, lambda: self._copies.chunks(name, doc_id, indices))

    async def holders(self, name: str, words: Sequence[str]) -> tuple[Mapping[str, int], int]:
        return await self._read(name, lambda: self._copies.holders(name, words))

    async def describe(self, name: str) -> Described | None:
        return await self._read(name, lambda: self._copies.describe(name))

    async def delete_document(self, name: str, doc_id: str) -> bool:
        return await self._written(name, lambda: self._copies.delete_document(name, doc_id))

    async def delete_collection(self, name: str) -> bool:
        async with self._lock(name):
            there = await self._ask(self._version, name) is not None
            for tail in (VECTORS, FACTS):  # the facts last: without them, a collection is gone
                await self._ask(self._delete, f"{name}{tail}")
            await self._copies.delete_collection(name)
            self._held.pop(name, None)
            return there

    async def list_collections(self, prefix: str = "") -> list[str]:
        names = await self._ask(self._names)
        ours = sorted(name.removesuffix(FACTS) for name in names if name.endswith(FACTS))
        return [name for name in ours if name.startswith(prefix)]

    async def unfinished(self, embedder_id: str = "") -> list[tuple[str, Document]]:
        found: list[tuple[str, Document]] = []
        for name in await self.list_collections():
            described = await self.describe(name)
            documents = described.documents if described else ()
            found += [(name, doc) for doc in documents if doc.is_unfinished(embedder_id)]
        return found

    async def close(self) -> None:
        await self._copies.close()
        self._client = None

    async def _read(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        async with self._lock(name):
            await self._bring_up_to_date(name)
            return await read()

    async def _written(self, name: str, write: Callable[[], Awaitable[T]]) -> T:
        """Write to the copy, and what that changed to Chroma; a copy that is ahead of Chroma is thrown away."""
        async with self._lock(name):
            await self._bring_up_to_date(name)
            before = await self._copies.packed(name)
            result = await write()
            after = await self._copies.packed(name)
            if after is not None and after != before:
                try:
                    await self._ask(self._store, name, before, after)
                except StoreUnavailable:
                    await self._copies.delete_collection(name)
                    self._held.pop(name, None)
                    raise
                self._held[name] = after.version
            return result

    async def _bring_up_to_date(self, name: str) -> None:
        """Whatever another process has written comes into the copy."""
        version = await self._ask(self._version, name)
        held = self._held.get(name)
        if held is not None and version == held:
            return
        if version is None:
            await self._copies.delete_collection(name)
            self._held.pop(name, None)
            return
        packed = await self._ask(self._fetch, name)
        await self._copies.delete_collection(name)
        await self._copies.unpack(packed)
        self._held[name] = packed.version

    async def _ask(self, call: Callable[..., T], *args: object) -> T:
        try:
            return await in_thread(call, *args)
        except StoreUnavailable:
            raise
        except Exception as error:
            # Its client has many kinds of errors, none of which says more to whoever asks.
            raise StoreUnavailable(
                f"Chroma at {self._address} cannot be used ({type(error).__name__}); {CHECK}"
            ) from error

    def _lock(self, name: str) -> asyncio.Lock:
        naming.checked(name)
        return self._locks.setdefault(name, asyncio.Lock())

    # Blocking, below here.

    def _open(self) -> Any:
        if self._client is None:
            self._client = self._connect(self._address)
        return self._client

    def _names(self) -> list[str]:
        return [str(getattr(each, "name", each)) for each in self._open().list_collections(limit=100_000)]

    def _collection(self, name: str) -> Any | None:
        return self._open().get_collection(name, embedding_function=None) if name in self._names() else None

    def _version(self, name: str) -> int | None:
        facts = self._collection(f"{name}{FACTS}")
        metadata = cast("dict[str, Any]", facts.metadata if facts is not None else None) or {}
        return None if facts is None else int(metadata.get("version", 0))

    def _delete(self, name: str) -> None:
        if name in self._names():
            self._open().delete_collection(name)

    def _store(self, name: str, before: Packed | None, after: Packed) -> None:
        client = self._open()
        cosine = {"hnsw:space": "cosine"}
        facts = client.get_or_create_collection(f"{name}{FACTS}", embedding_function=None, metadata={"version": 0})
        vectors = client.get_or_create_collection(f"{name}{VECTORS}", embedding_function=None, metadata=cosine)
        old: Mapping[str, str] = {} if before is None else before.stamps
        for doc_id in old.keys() - after.stamps.keys():
            _forget(facts, vectors, doc_id)
        for doc_id, stamp in after.stamps.items():
            if old.get(doc_id) != stamp:
                _forget(facts, vectors, doc_id)
                _keep(facts, vectors, doc_id, after)
        # Last: whoever reads meanwhile sees the old version, and looks again at the next question.
        facts.modify(metadata={"version": after.version, "collection": json.dumps(after.collection)})

    def _fetch(self, name: str) -> Packed:
        facts = self._collection(f"{name}{FACTS}")
        vectors = self._collection(f"{name}{VECTORS}")
        if facts is None:
            raise StoreUnavailable(f"{name} was deleted while it was read")
        metadata = cast("dict[str, Any]", facts.metadata)
        parts: dict[str, dict[int, str]] = {}
        for record, document in _records(facts, "documents"):
            parts.setdefault(str(record["doc_id"]), {})[int(record["part"])] = str(document)
        rows = {doc_id: _unpacked("".join(held[at] for at in sorted(held))) for doc_id, held in parts.items()}
        found: dict[str, dict[int, bytes]] = {}
        for record, vector in _records(vectors, "embeddings") if vectors is not None else ():
            blob = np.asarray(vector, dtype=np.float32).tobytes()
            found.setdefault(str(record["doc_id"]), {})[int(record["index"])] = blob
        return Packed(cast("list[Any]", json.loads(metadata["collection"])), int(metadata["version"]), rows, found)


def _http_client(address: str) -> Any:
    chromadb = cast("Any", importlib.import_module("chromadb"))
    config = cast("Any", importlib.import_module("chromadb.config"))
    parts = urlsplit(address)
    return chromadb.HttpClient(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 8000,
        ssl=parts.scheme == "https",
        settings=config.Settings(anonymized_telemetry=False),
    )


def _records(collection: Any, what: str) -> list[tuple[dict[str, Any], Any]]:
    found: list[tuple[dict[str, Any], Any]] = []
    for offset in range(0, int(collection.count()), AT_ONCE):
        some = collection.get(limit=AT_ONCE, offset=offset, include=["metadatas", what])
        found += list(zip(some["metadatas"], some[what], strict=True))
    return found


def _forget(facts: Any, vectors: Any, doc_id: str) -> None:
    for collection in (facts, vectors):
        if collection.get(where={"doc_id": doc_id}, limit=1)["ids"]:
            collection.delete(where={"doc_id": doc_id})


def _keep(facts: Any, vectors: Any, doc_id: str, packed: Packed) -> None:
    text = _packed(packed.rows[doc_id])
    parts = [text[start : start + PART_CHARS] for start in range(0, len(text), PART_CHARS)]
    for number, part in enumerate(parts):
        record = {"doc_id": doc_id, "part": number}
        facts.add(ids=[f"{doc_id}:{number}"], documents=[part], metadatas=[record], embeddings=[_NO_VECTOR])
    blobs = sorted(packed.vectors.get(doc_id, {}).items())
    for start in range(0, len(blobs), AT_ONCE):
        some = blobs[start : start + AT_ONCE]
        vectors.add(
            ids=[f"{doc_id}:{index}" for index, _ in some],
            metadatas=[{"doc_id": doc_id, "index": index} for index, _ in some],
            embeddings=[np.frombuffer(blob, dtype=np.float32).tolist() for _, blob in some],
        )


def _packed(rows: Any) -> str:
    return base64.b85encode(zlib.compress(json.dumps(rows, ensure_ascii=False).encode())).decode()


def _unpacked(text: str) -> Any:
    return json.loads(zlib.decompress(base64.b85decode(text)))
