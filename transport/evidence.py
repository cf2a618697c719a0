"""A document store for files of threads and people's runbooks whose collections are kept in the bucket `evidence`, so
that they survive the process that read them.

Each process has copies of what it uses, as SQLite files, and compares them with the bucket before each use. So it does
not matter which process owns a thread now. What people are told to be there, or to be deleted, is so in the bucket
before the call returns. Vectors, and documents that are only expected, follow within seconds: without them a document
is found by words, or was never begun.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from nats.js import JetStreamContext

from services.documents.store import (
    ChunkHit,
    ChunkSearch,
    Collection,
    CollectionSummary,
    Document,
    EmbeddedStore,
    LineWhere,
    MatchingLines,
    NewDocument,
    Origin,
    StoredChunk,
    Unembedded,
    naming,
)
from services.search.embedding import Vectors
from transport.kept_copies import CollectionReplicas
from transport.layout import EVIDENCE
from transport.objects import ObjectBucket
from transport.parcels import object_name

SOON_SECONDS = 2.0
"""How long vectors, and documents that are expected, may be in the copy only."""

T = TypeVar("T")


def open_bucket_store(
    streams: JetStreamContext, folder: Path, store: EmbeddedStore, *, soon_seconds: float = SOON_SECONDS
) -> BucketDocumentStore:
    """`store` over copies, kept in the bucket `evidence`; those of the team and of the documentation each process makes
    for itself.

    `streams`: of a connection on the loop on which the store is used. `folder`: of this process, for what is on its
    way; on the same disk as the store's own folders.
    """
    return BucketDocumentStore(CollectionReplicas(ObjectBucket(streams, EVIDENCE), folder, store, soon_seconds), store)


class BucketDocumentStore:
    """A `SharedStore` (services.documents.store.shared)."""

    def __init__(self, kept: CollectionReplicas, copies: EmbeddedStore) -> None:
        self._kept, self._copies = kept, copies
        self._ends: list[Callable[[], Awaitable[None]]] = []

    async def expect(self, collection: Collection, origin: Origin) -> Document:
        return await self._written(collection.name, lambda: self._copies.expect(collection, origin), soon=True)

    async def add(self, collection: Collection, docs: Sequence[NewDocument], *, create: bool = True) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.add(collection, docs, create=create))

    async def revise(self, collection: Collection, docs: Sequence[NewDocument], drop: Sequence[str]) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.revise(collection, docs, drop))

    async def fail(self, name: str, doc_id: str, reason: str) -> bool:
        return await self._written(name, lambda: self._copies.fail(name, doc_id, reason))

    async def unembedded(self, name: str, doc_id: str, embedder_id: str) -> list[Unembedded]:
        return await self._read(name, lambda: self._copies.unembedded(name, doc_id, embedder_id))

    async def embed(self, name: str, doc_id: str, embedder_id: str, vectors: Mapping[int, Vectors]) -> bool:
        return await self._written(name, lambda: self._copies.embed(name, doc_id, embedder_id, vectors), soon=True)

    async def search(self, name: str, search: ChunkSearch) -> list[ChunkHit]:
        return await self._read(name, lambda: self._copies.search(name, search))

    async def lines(
        self, name: str, where: LineWhere, *, limit: int = 20, newest_first: bool = False, by_time: bool = False
    ) -> MatchingLines:
        return await self._read(
            name, lambda: self._copies.lines(name, where, limit=limit, newest_first=newest_first, by_time=by_time)
        )

    async def distinct(self, name: str, where: LineWhere, column: str, *, limit: int = 20) -> list[tuple[str, int]]:
        return await self._read(name, lambda: self._copies.distinct(name, where, column, limit=limit))

    async def chunks(self, name: str, doc_id: str, indices: Sequence[int]) -> list[StoredChunk]:
        return await self._read(name, lambda: self._copies.chunks(name, doc_id, indices))

    async def holders(self, name: str, words: Sequence[str]) -> tuple[Mapping[str, int], int]:
        return await self._read(name, lambda: self._copies.holders(name, words))

    async def delete_document(self, name: str, doc_id: str) -> bool:
        return await self._written(name, lambda: self._copies.delete_document(name, doc_id))

    async def withdraw(self, name: str, doc_id: str, gone: Callable[[Origin], bool]) -> bool:
        return await self._written(name, lambda: self._copies.withdraw(name, doc_id, gone))

    async def describe(self, name: str) -> CollectionSummary | None:
        return await (self._kept if is_in_bucket(name) else self._copies).describe(name)

    async def delete_collection(self, name: str) -> bool:
        return await (self._kept.delete(name) if is_in_bucket(name) else self._copies.delete_collection(name))

    async def list_collections(self, prefix: str = "") -> list[str]:
        kept = await self._kept.names()
        own = [name for name in await self._copies.list_collections() if not is_in_bucket(name)]
        return sorted(name for name in (*kept, *own) if name.startswith(prefix))

    async def follow(self, heard: Callable[[str, bool], None]) -> None:
        self._ends.append(await self._kept.follow(heard))

    async def flush(self) -> None:
        await self._kept.flush()

    async def close(self) -> None:
        """Flush, and leave no copies."""
        for end in self._ends:
            await end()
        await self._kept.close()
        await self._copies.close()

    aclose = close

    async def _read(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        return await (self._kept.read(name, read) if is_in_bucket(name) else read())

    async def _written(self, name: str, write: Callable[[], Awaitable[T]], *, soon: bool = False) -> T:
        return await (self._kept.write(name, write, soon=soon) if is_in_bucket(name) else write())


def is_in_bucket(name: str) -> bool:
    return object_name(naming.checked(name)) is not None
