"""The store without a server: one SQLite file a collection, so that closing a case is deleting a file."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar
from urllib.parse import quote

import clock
from services.documents.store import line_search, naming, packing, schema, searching, writing
from services.documents.store.packing import Packed
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
from services.search.embedding import Vectors
from services.storage import in_thread

P = ParamSpec("P")
T = TypeVar("T")

SUFFIX = ".sqlite"
KEPT_BYTES = 256 * 1024 * 1024
KEPT_OPEN = 32
BUSY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of collections: of threads, of people, and of the team's and the global ones (`shared`)."""

    cases: Path
    users: Path
    shared: Path

    def of(self, name: str) -> Path:
        if name.startswith(naming.CASE_PREFIX):
            return self.cases
        return self.users if name.startswith("user_") else self.shared


@dataclass(slots=True)
class _OpenFile:
    """An open collection: one connection for reading, used by one thread at a time."""

    path: Path
    connection: sqlite3.Connection
    lock: threading.Lock = field(default_factory=threading.Lock)
    frame: searching.ChunkFrame | None = None
    embedder_id: str = ""

    def close(self) -> None:
        with self.lock:
            self.connection.close()


class EmbeddedStore:
    """A `DocumentStore` (services.documents.store.protocol) for one process.

    Reads of a collection go on while it is written (SQLite's write-ahead log). What is in memory belongs to one
    version of a collection and is read anew after each write.
    """

    def __init__(self, folders: Folders, *, kept_bytes: int = KEPT_BYTES, kept_open: int = KEPT_OPEN) -> None:
        self._folders = folders
        self._kept_bytes = kept_bytes
        self._kept_open = kept_open
        self._opened: OrderedDict[str, _OpenFile] = OrderedDict()
        self._guard = threading.Lock()
        self._writing: dict[str, threading.Lock] = {}
        self._ending: set[str] = set()  # being deleted: must not be opened
        # The last version of each deleted collection: one made anew must never seem to be the old one.
        self._ended: dict[str, int] = {}

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
        def work(file: _OpenFile) -> list[ChunkHit]:
            return searching.search(file.connection, _frame_of(file, search.embedder_id), search)

        return await self._read(name, work, [])

    async def lines(
        self, name: str, where: LineWhere, *, limit: int = 20, newest_first: bool = False, by_time: bool = False
    ) -> MatchingLines:
        def work(file: _OpenFile) -> MatchingLines:
            return line_search.find(file.connection, where, limit, newest_first=newest_first, by_time=by_time)

        return await self._read(name, work, MatchingLines(0, ()))

    async def distinct(self, name: str, where: LineWhere, column: str, *, limit: int = 20) -> list[tuple[str, int]]:
        return await self._read(name, lambda file: line_search.distinct(file.connection, where, column, limit), [])

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
        return await _guarded(self._delete, self._path(name), name)

    async def list_collections(self, prefix: str = "") -> list[str]:
        return await _guarded(self._list, prefix)

    async def packed(self, name: str) -> Packed | None:
        """All of a collection; None where there is none."""
        return await self._read(name, lambda file: packing.pack(file.connection), None)

    async def unpack(self, packed: Packed) -> None:
        """Make a collection from all of it; there must be none of its name."""
        name = str(packed.collection[0])
        await _guarded(self._transact, name, lambda connection: packing.unpack(connection, packed), None, new=True)

    async def close(self) -> None:
        await in_thread(self._close_all)

    async def _take_in(
        self, collection: Collection, docs: Sequence[NewDocument], drop: Sequence[str], *, create: bool
    ) -> list[Document]:
        # The slow part: done before the file is locked.
        rows = [await _guarded(schema.rows_of, doc.origin, doc.prepared) for doc in docs]

        def work(connection: sqlite3.Connection) -> list[Document]:
            for doc_id in drop:
                writing.drop(connection, doc_id)
            if private:
                writing.overwrite(connection)
            added = zip(docs, rows, strict=True)
            return [writing.add(connection, collection.name, doc, row) for doc, row in added]

        private = bool(drop) and collection.name != naming.GLOBAL  # documentation is published, and large
        taken = await (self._write(collection, work) if create else self._change(collection.name, work))
        if private:
            await _guarded(self._empty_log, collection.name)
        return taken or []

    async def _take_out(self, name: str, work: Callable[[sqlite3.Connection], bool]) -> bool:
        def whole() -> bool:
            done = bool(self._transact(name, work, None))
            self._empty_log(name)
            return done

        return await _guarded(whole)

    async def _write(self, collection: Collection, work: Callable[[sqlite3.Connection], T]) -> T:
        result = await _guarded(self._transact, collection.name, work, (collection, clock.now()))
        assert result is not None, "a collection that may be made is there"  # noqa: S101 (tells the type checker)
        return result

    async def _change(self, name: str, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """As `_write`, on a collection that must be there; None where it is not."""
        return await _guarded(self._transact, name, work, None)

    async def _read(self, name: str, work: Callable[[_OpenFile], T], nothing: T) -> T:
        return await _guarded(self._look, name, work, nothing)

    def _transact(
        self,
        name: str,
        work: Callable[[sqlite3.Connection], T],
        made: tuple[Collection, float] | None,
        *,
        new: bool = False,
    ) -> T | None:
        """One transaction; any change in it raises the version. A `new` collection brings its own."""
        path = self._path(name)
        with self._writer_of(name):
            if not path.exists():
                if made is None and not new:
                    return None
                path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(_connect(path, create=new or made is not None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    if made is not None:
                        writing.ensure(connection, *made, self._ended.get(name, 0))
                    before = connection.total_changes
                    result = work(connection)
                    if connection.total_changes > before and not new:
                        connection.execute("UPDATE collections SET version = version + 1")
                    connection.execute("COMMIT")
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
                return result

    def _empty_log(self, name: str) -> None:
        """Until then the write-ahead log, and the pages that it replaces, hold what was deleted."""
        path = self._path(name)
        with self._writer_of(name):
            if path.exists():
                with contextlib.closing(_connect(path, create=False)) as connection:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _look(self, name: str, work: Callable[[_OpenFile], T], nothing: T) -> T:
        for last_try in (False, True):
            file = self._file(name)
            if file is None:
                return nothing
            with file.lock:
                try:
                    made = file.connection.execute("PRAGMA user_version").fetchone()[0] != 0
                    return work(file) if made else nothing  # a file that is just being made has no tables yet
                except sqlite3.ProgrammingError:
                    # Closed meanwhile: deleted, or pushed out by others and still on disk.
                    if last_try:
                        raise
                finally:
                    self._trim(name)
        raise AssertionError("unreachable")

    def _file(self, name: str) -> _OpenFile | None:
        path = self._path(name)
        with self._guard:
            file = self._opened.get(name)
            if file is not None:
                self._opened.move_to_end(name)
                return file
            if name in self._ending or not path.exists():
                return None
            file = self._opened[name] = _OpenFile(path, _connect(path, create=False))
            return file

    def _trim(self, used: str) -> None:
        """Close the least recently used files while too many are open, or too much of them is in memory."""
        with self._guard:
            held = sum(file.frame.n_bytes for file in self._opened.values() if file.frame is not None)
            for name in list(self._opened):
                if name == used or (len(self._opened) <= self._kept_open and held <= self._kept_bytes):
                    continue
                file = self._opened[name]
                if file.lock.acquire(blocking=False):
                    held -= file.frame.n_bytes if file.frame is not None else 0
                    del self._opened[name]
                    file.connection.close()
                    file.lock.release()

    def _delete(self, path: Path, name: str) -> bool:
        with self._writer_of(name):
            there = path.exists()
            if there:
                described = self._look(name, lambda file: writing.describe(file.connection, 0), None)
                if described is not None:
                    self._ended[name] = described.version
            with self._guard:
                self._ending.add(name)
                file = self._opened.pop(name, None)
            try:
                if file is not None:
                    file.close()
                for tail in ("", "-wal", "-shm"):
                    path.with_name(path.name + tail).unlink(missing_ok=True)
            finally:
                with self._guard:
                    self._ending.discard(name)
            return there

    def _list(self, prefix: str) -> list[str]:
        return sorted(
            path.name.removesuffix(SUFFIX)
            for folder in {self._folders.cases, self._folders.users, self._folders.shared}
            for path in folder.glob(f"*{SUFFIX}")
            if path.name.startswith(prefix)
        )

    def _close_all(self) -> None:
        with self._guard:
            opened = list(self._opened.values())
            self._opened.clear()
        for file in opened:
            file.close()

    def _path(self, name: str) -> Path:
        return self._folders.of(name) / f"{naming.checked(name)}{SUFFIX}"

    def _writer_of(self, name: str) -> threading.Lock:
        with self._guard:
            return self._writing.setdefault(name, threading.Lock())


def _frame_of(file: _OpenFile, embedder_id: str) -> searching.ChunkFrame:
    version = writing.version(file.connection)
    if file.frame is None or file.frame.version != version or file.embedder_id != embedder_id:
        file.frame = searching.load(file.connection, version, embedder_id)
        file.embedder_id = embedder_id
    return file.frame


def _connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Without `create`, nothing is made on disk."""
    mode = "rwc" if create else "rw"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
        line_search.prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


async def _guarded(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await in_thread(work, *args, **kwargs)
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"the store of documents cannot be used: {type(error).__name__}") from error
