"""The store of documents: all reads and writes of collections, wherever they are kept."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from services.documents.store import schema, searching, writing
from services.documents.store.collection_files import DiskSpace, Folders, OpenFile, SqliteCollections
from services.documents.store.protocol import (
    ChunkHit,
    ChunkSearch,
    Collection,
    CollectionSummary,
    Document,
    LineWhere,
    MatchingLines,
    NewDocument,
    Origin,
    SharedNotes,
    StoredChunk,
)
from services.search.embedding import Embedder, EmbeddingFailed, Vectors
from services.storage import in_thread

log = logging.getLogger(__name__)

T = TypeVar("T")


class Collections(Protocol):
    """Keeps collections as SQLite files, and runs work on them in threads.

    Each method raises StoreUnavailable.
    """

    async def read(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        """Return the result of `work`; `nothing` if there is no such collection."""
        ...

    async def change(
        self,
        name: str,
        work: Callable[[sqlite3.Connection], T],
        create: Collection | None = None,
        *,
        erase: bool = False,
        soon: bool = False,
    ) -> T | None:
        """Run `work` in one transaction and return its result; None if there is no such collection, and `create` is
        None. `work` may be run again if another process has written first.

        `erase`: leave nothing of deleted content in a file. `soon`: other processes may see the change some seconds
        later.
        """
        ...

    async def describe(self, name: str) -> CollectionSummary | None:
        """Return the collection and its documents, in order of arrival; None: there is no such collection."""
        ...

    async def delete(self, name: str) -> bool:
        """Delete a collection from memory and disk. False: it did not exist."""
        ...

    async def names(self, prefix: str = "") -> list[str]:
        """Return the names of the collections that begin with `prefix`, in order."""
        ...

    async def close(self) -> None: ...


class DocumentStore:
    """Keeps collections of documents. Reading a collection that does not exist gives an empty result and creates
    nothing. Every method raises StoreUnavailable.

    Attributes:
        disk: limits the disk space of documents; None: no limit.
    """

    def __init__(self, collections: Collections) -> None:
        self.collections = collections
        self.disk: DiskSpace | None = None

    async def expect(self, collection: Collection, origin: Origin) -> Document:
        """Announce a document (`pending`); creates the collection if it is missing.

        A repeated call for the same attachment returns the same document.
        """
        document = await self.collections.change(
            collection.name, lambda at: writing.expect(at, collection.name, origin), collection, soon=True
        )
        assert document is not None, "a collection that may be made is there"  # noqa: S101 (tells the type checker)
        return document

    async def add(
        self, collection: Collection, docs: Sequence[NewDocument], *, drop: Sequence[str] = (), create: bool = True
    ) -> list[Document]:
        """Add documents, which are searchable by words then.

        If the same file is in the collection already, only its new origin is added. A document that was expected for
        the same attachment becomes this one. `drop`: ids of documents that are deleted in the same step; a search finds
        either the old state or the new. Without `create`, a collection that does not exist stays so.
        """
        for doc in docs if create else ():
            await self.check_room(doc.origin)
        # The slow part: done before the file is locked.
        rows = [doc.rows or await in_thread(schema.rows_of, doc.origin, doc.prepared) for doc in docs]

        def work(connection: sqlite3.Connection) -> list[Document]:
            for doc_id in drop:
                writing.drop(connection, doc_id)
            if drop:
                writing.overwrite(connection)
            added = zip(docs, rows, strict=True)
            return [writing.add(connection, collection.name, doc, row) for doc, row in added]

        made = collection if create else None
        return await self.collections.change(collection.name, work, made, erase=bool(drop)) or []

    async def check_room(self, origin: Origin) -> None:
        """Raises DiskFull: no more documents are accepted. Raises FileRefused: no more of this uploader's."""
        if self.disk is not None:
            await in_thread(self.disk.check_room, origin)

    async def fail(self, name: str, doc_id: str, reason: str, size: int = 0) -> bool:
        """Note why a document could not be read, and its size. False: the document does not exist."""
        return bool(await self.collections.change(name, lambda at: writing.fail(at, doc_id, reason, size)))

    async def unembedded(self, name: str, doc_id: str, embedder_id: str) -> dict[int, str]:
        """Return the texts to embed, by chunk index, of the chunks that have no vector of this embedder yet."""
        return await self.collections.read(
            name, lambda file: writing.unembedded(file.connection, doc_id, embedder_id), {}
        )

    async def embed(self, name: str, doc_id: str, embedder_id: str, vectors: Mapping[int, Vectors]) -> bool:
        """Store vectors by chunk index; with the last one the document is `ready`. False: there is no such document."""
        stored = await self.collections.change(
            name, lambda at: writing.embed(at, doc_id, embedder_id, vectors), soon=True
        )
        return bool(stored)

    async def search(self, name: str, search: ChunkSearch) -> list[ChunkHit]:
        """Return hits, best first: the best by words, the best by meaning, and chunks with an identifier, literally."""

        def work(file: OpenFile) -> list[ChunkHit]:
            return searching.search(file.connection, file.frame_for(search.embedder_id), search)

        return await self.collections.read(name, work, [])

    async def lines(
        self, name: str, where: LineWhere, *, limit: int = 20, newest_first: bool = False, by_time: bool = False
    ) -> MatchingLines:
        """Return at most `limit` lines that fit, and the number of all."""

        def work(file: OpenFile) -> MatchingLines:
            return searching.find(file.connection, where, limit, newest_first=newest_first, by_time=by_time)

        return await self.collections.read(name, work, MatchingLines(0, ()))

    async def distinct(self, name: str, where: LineWhere, column: str, *, limit: int = 20) -> list[tuple[str, int]]:
        """Return the values of `column` in the lines that fit, with counts: of `severity` and `component` the most
        frequent first; `day`, `hour` and `minute` in order.
        """
        return await self.collections.read(
            name, lambda file: searching.distinct(file.connection, where, column, limit), []
        )

    async def chunks(self, name: str, doc_id: str, indices: Sequence[int]) -> list[StoredChunk]:
        """Return the chunks of a document with these indices."""
        return await self.collections.read(name, lambda file: writing.chunks(file.connection, doc_id, indices), [])

    async def count_chunks_with(self, name: str, words: Sequence[str]) -> tuple[Mapping[str, int], int]:
        """Return the number of chunks with each word, and the number of all chunks."""
        return await self.collections.read(
            name, lambda file: writing.count_chunks_with(file.connection, words), ({}, 0)
        )

    async def describe(self, name: str) -> CollectionSummary | None:
        """Return the collection and its documents, in order of arrival; None: there is no such collection."""
        return await self.collections.describe(name)

    async def documents(self, name: str) -> tuple[Document, ...]:
        """Return the documents of a collection, in order of arrival; none if there is no such collection."""
        described = await self.describe(name)
        return () if described is None else described.documents

    async def unfinished(self, embedder_id: str = "") -> list[tuple[str, Document]]:
        """Return the documents that a crash left `pending` or `lexical`, with their collections' names; with
        `embedder_id` also those that have vectors of another embedder.
        """
        found: list[tuple[str, Document]] = []
        for name in await self.list_collections():
            found += [(name, doc) for doc in await self.documents(name) if doc.is_unfinished(embedder_id)]
        return found

    async def delete_document(self, name: str, doc_id: str) -> bool:
        """Delete a document, and keep nothing of it. False: it does not exist."""
        return bool(await self.collections.change(name, lambda at: writing.delete_document(at, doc_id), erase=True))

    async def withdraw(self, name: str, doc_id: str, gone: Callable[[Origin], bool]) -> bool:
        """Remove the origins for which `gone` is true, with the last one the document. False: none was removed."""
        return bool(await self.collections.change(name, lambda at: writing.withdraw(at, doc_id, gone), erase=True))

    async def delete_collection(self, name: str) -> bool:
        """Delete a collection from memory and disk. False: it did not exist."""
        return await self.collections.delete(name)

    async def list_collections(self, prefix: str = "") -> list[str]:
        """Return the names of the collections that begin with `prefix`, in order."""
        return await self.collections.names(prefix)

    async def close(self) -> None:
        """Close what is open. Nothing can be asked of the store afterwards."""
        await self.collections.close()


def sqlite_store(folders: Folders, *, read_only: bool = False) -> DocumentStore:
    """Return a store without a server, for one process: closing a thread is deleting a file. Another process may open
    the same files with `read_only`; then every change raises StoreUnavailable.
    """
    return DocumentStore(SqliteCollections(folders, read_only=read_only))


class SharedCollections(Collections, Protocol):
    """`Collections` that other processes write to as well. `close` flushes, and is called only by the owner that opened
    them. Each method raises StoreUnavailable.
    """

    async def follow(self, heard: Callable[[str, bool], None]) -> None:
        """Call `heard` with the name of each collection of a thread or a person, and whether it exists: first for all
        that exist, then at each change, by any process. Returns after the first round.
        """
        ...

    async def flush(self) -> None:
        """Wait until everything written is stored where other processes find it."""
        ...


class SharedStore(DocumentStore):
    """A `DocumentStore` over collections that other processes write to as well."""

    def __init__(self, collections: SharedCollections) -> None:
        super().__init__(collections)
        self.follow = collections.follow
        self.flush = collections.flush


@dataclass(frozen=True, slots=True)
class SharedDocuments:
    """The store of documents and the flags that processes share, in place of files in the data folder of each."""

    store: SharedStore
    notes: SharedNotes


AT_ONCE = 64  # chunks that are embedded between two writes: a crash loses no more


async def embed_document(store: DocumentStore, embedder: Embedder | None, name: str, doc_id: str) -> bool:
    """Embed the chunks of a document that have no vector yet. Returns True if the document is `ready` then.

    False: the document was deleted meanwhile, or the embedder is missing or fails (then it stays searchable by words).
    Raises StoreUnavailable: the store cannot be used.
    """
    if embedder is None:
        return False
    left = await store.unembedded(name, doc_id, embedder.id)
    if not left:
        return await store.embed(name, doc_id, embedder.id, {})
    indices = list(left)
    for start in range(0, len(indices), AT_ONCE):
        some = indices[start : start + AT_ONCE]
        try:
            vectors = await embedder.embed([left[index] for index in some])
        except EmbeddingFailed as error:
            log.warning("%s: keyword search only for a document: %s", name, error)
            return False
        if not await store.embed(name, doc_id, embedder.id, dict(zip(some, vectors, strict=True))):
            return False
    return True
