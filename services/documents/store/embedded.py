"""A store without a server: one SQLite file a collection, so that closing a thread is deleting a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import clock
from services.documents.store import protocol, schema, searching, writing
from services.documents.store.collection_files import CollectionFiles, Folders, OpenFile, ReadOnlyFiles
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
    StoredChunk,
    StoreUnavailable,
    Unembedded,
)
from services.documents.store.writing import Packed
from services.search.embedding import Vectors
from services.storage import in_thread

P = ParamSpec("P")
T = TypeVar("T")


class EmbeddedStore:
    """A `DocumentStore` for one process. Another process may open the same files with `read_only`; then every change
    raises StoreUnavailable.
    """

    def __init__(self, folders: Folders, *, read_only: bool = False) -> None:
        self._files: CollectionFiles = ReadOnlyFiles(folders) if read_only else CollectionFiles(folders)

    async def expect(self, collection: Collection, origin: Origin) -> Document:
        return await self._write(collection, lambda connection: writing.expect(connection, collection.name, origin))

    async def add(self, collection: Collection, docs: Sequence[NewDocument], *, create: bool = True) -> list[Document]:
        return await self._take_in(collection, docs, (), create=create)

    async def revise(self, collection: Collection, docs: Sequence[NewDocument], drop: Sequence[str]) -> list[Document]:
        return await self._take_in(collection, docs, drop, create=True)

    async def fail(self, name: str, doc_id: str, reason: str) -> bool:
        return bool(await self._change(name, lambda connection: writing.fail(connection, doc_id, reason)))

    async def unembedded(self, name: str, doc_id: str, embedder_id: str) -> list[Unembedded]:
        return await self._read(name, lambda file: writing.unembedded(file.connection, doc_id, embedder_id), [])

    async def embed(self, name: str, doc_id: str, embedder_id: str, vectors: Mapping[int, Vectors]) -> bool:
        return bool(await self._change(name, lambda at: writing.embed(at, doc_id, embedder_id, vectors)))

    async def search(self, name: str, search: ChunkSearch) -> list[ChunkHit]:
        def work(file: OpenFile) -> list[ChunkHit]:
            return searching.search(file.connection, file.frame_for(search.embedder_id), search)

        return await self._read(name, work, [])

    async def lines(
        self, name: str, where: LineWhere, *, limit: int = 20, newest_first: bool = False, by_time: bool = False
    ) -> MatchingLines:
        def work(file: OpenFile) -> MatchingLines:
            return searching.find(file.connection, where, limit, newest_first=newest_first, by_time=by_time)

        return await self._read(name, work, MatchingLines(0, ()))

    async def distinct(self, name: str, where: LineWhere, column: str, *, limit: int = 20) -> list[tuple[str, int]]:
        return await self._read(name, lambda file: searching.distinct(file.connection, where, column, limit), [])

    async def chunks(self, name: str, doc_id: str, indices: Sequence[int]) -> list[StoredChunk]:
        return await self._read(name, lambda file: writing.chunks(file.connection, doc_id, indices), [])

    async def holders(self, name: str, words: Sequence[str]) -> tuple[Mapping[str, int], int]:
        return await self._read(name, lambda file: writing.holders(file.connection, words), ({}, 0))

    async def describe(self, name: str) -> CollectionSummary | None:
        return await self._read(name, lambda file: writing.describe(file.connection, file.path.stat().st_size), None)

    async def delete_document(self, name: str, doc_id: str) -> bool:
        return await self._take_out(name, lambda connection: writing.delete_document(connection, doc_id))

    async def withdraw(self, name: str, doc_id: str, gone: Callable[[Origin], bool]) -> bool:
        return await self._take_out(name, lambda connection: writing.withdraw(connection, doc_id, gone))

    async def delete_collection(self, name: str) -> bool:
        return await _guarded(self._files.delete, name)

    async def list_collections(self, prefix: str = "") -> list[str]:
        return await _guarded(self._files.names, prefix)

    async def packed(self, name: str) -> Packed | None:
        """Return all rows of a collection as plain values; None: there is no such collection."""
        return await self._read(name, lambda file: writing.pack(file.connection), None)

    async def unpack(self, packed: Packed) -> None:
        """Create a collection from its rows; there must be none of its name."""
        name = str(packed.collection[0])
        await _guarded(
            self._files.transact, name, lambda connection: writing.unpack(connection, packed), None, new=True
        )

    async def version(self, name: str) -> int | None:
        """Return the version of a collection; None: there is no such collection."""
        return await self._read(name, lambda file: writing.version(file.connection), None)

    async def copy(self, name: str, target: Path) -> bool:
        """Copy a collection, as it is at one moment, to the file `target`, which must not exist. False: there is no
        such collection.
        """
        return await _guarded(self._files.copy, name, target)

    async def move_in(self, name: str, source: Path) -> None:
        """Replace a collection by the file `source`, made by `copy`; the file is moved."""
        await _guarded(self._files.move_in, name, source)

    async def close(self) -> None:
        await in_thread(self._files.close)

    async def _take_in(
        self, collection: Collection, docs: Sequence[NewDocument], drop: Sequence[str], *, create: bool
    ) -> list[Document]:
        # The slow part: done before the file is locked.
        rows = [doc.rows or await _guarded(schema.rows_of, doc.origin, doc.prepared) for doc in docs]

        def work(connection: sqlite3.Connection) -> list[Document]:
            for doc_id in drop:
                writing.drop(connection, doc_id)
            if private:
                writing.overwrite(connection)
            added = zip(docs, rows, strict=True)
            return [writing.add(connection, collection.name, doc, row) for doc, row in added]

        private = bool(drop) and collection.name != protocol.GLOBAL  # documentation is published, and large
        taken = await (self._write(collection, work) if create else self._change(collection.name, work))
        if private:
            await _guarded(self._files.empty_log, collection.name)
        return taken or []

    async def _take_out(self, name: str, work: Callable[[sqlite3.Connection], bool]) -> bool:
        def whole() -> bool:
            done = bool(self._files.transact(name, work, None))
            self._files.empty_log(name)
            return done

        return await _guarded(whole)

    async def _write(self, collection: Collection, work: Callable[[sqlite3.Connection], T]) -> T:
        result = await _guarded(self._files.transact, collection.name, work, (collection, clock.now()))
        assert result is not None, "a collection that may be made is there"  # noqa: S101 (tells the type checker)
        return result

    async def _change(self, name: str, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Like `_write`, for a collection that must exist; None if it does not."""
        return await _guarded(self._files.transact, name, work, None)

    async def _read(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        return await _guarded(self._files.look, name, work, nothing)


async def _guarded(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await in_thread(work, *args, **kwargs)
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"the store of documents cannot be used: {type(error).__name__}") from error
