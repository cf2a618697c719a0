"""The SQLite files of collections: opened for their one writer, or read only; and the disk space that they may take."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar
from urllib.parse import quote
from weakref import WeakValueDictionary

import clock
from services.documents.limits import FileRefused, display_name, format_size
from services.documents.store import protocol, searching, writing
from services.documents.store.protocol import Collection, CollectionSummary, Origin, StoreUnavailable
from services.storage import confined, in_thread

P = ParamSpec("P")
T = TypeVar("T")

SUFFIX = ".sqlite"
_TAILS = "", "-wal", "-shm"
"""The endings of a collection's file, and of the files that SQLite puts beside it."""
KEPT_BYTES = 256 * 1024 * 1024
KEPT_OPEN = 32
KEPT_ENDED = 10_000
BUSY_SECONDS = 10.0
_PAGES = "freelist_count", "page_count"


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders that collections are in: those of threads, and all others."""

    cases: Path
    users: Path

    def of(self, name: str) -> Path:
        return self.cases if name.startswith(protocol.CASE_PREFIX) else self.users

    def names(self) -> list[str]:
        """Return the names of the collections, in order. Other files, and those in the wrong folder, are left out."""
        return sorted(
            name
            for folder in {self.cases, self.users}
            for path in folder.glob(f"*{SUFFIX}")
            if protocol.is_name(name := path.name.removesuffix(SUFFIX)) and self.of(name) == folder
        )


def personal_files(folders: Folders) -> list[Path]:
    """Return the paths of the collections of threads and people, and of the files that SQLite puts beside them."""
    personal = (folders.of(name) / f"{name}{SUFFIX}" for name in folders.names() if protocol.is_personal(name))
    return [path for collection in personal for path in _with_files_beside(collection)]


@dataclass(slots=True)
class OpenFile:
    """An open collection: one read connection, used by one thread at a time."""

    path: Path
    connection: sqlite3.Connection
    lock: threading.Lock = field(default_factory=threading.Lock)
    frame: searching.ChunkFrame | None = None
    embedder_id: str = ""

    def frame_for(self, embedder_id: str) -> searching.ChunkFrame:
        """Return the collection's chunks in memory, with the vectors of one embedder."""
        version = writing.version(self.connection)
        if self.frame is None or self.frame.version != version or self.embedder_id != embedder_id:
            self.frame = searching.load(self.connection, version, embedder_id)
            self.embedder_id = embedder_id
        return self.frame

    def close(self) -> None:
        with self.lock:
            self.connection.close()


class CollectionFiles:
    """One SQLite file a collection. Each method raises sqlite3.Error or OSError if a file cannot be used.

    A collection can be read while it is written (SQLite's write-ahead log). What is held in memory belongs to one
    version of a collection and is read anew after each write.
    """

    def __init__(self, folders: Folders, *, kept_bytes: int = KEPT_BYTES, kept_open: int = KEPT_OPEN) -> None:
        """`kept_open`: how many files stay open. `kept_bytes`: how many bytes of them stay in memory, all together."""
        self._folders = folders
        self._kept_bytes = kept_bytes
        self._kept_open = kept_open
        self._opened: OrderedDict[str, OpenFile] = OrderedDict()
        self._guard = threading.Lock()
        self._writing: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()  # for as long as one is in use
        self._ending: set[str] = set()  # being deleted: must not be opened
        # The last version of each deleted collection: one made anew must never seem to be the old one.
        self._ended: dict[str, int] = {}

    def transact(
        self,
        name: str,
        work: Callable[[sqlite3.Connection], T],
        made: tuple[Collection, float] | None,
        *,
        new: bool = False,
    ) -> T | None:
        """Run `work` in one transaction; if it changes anything, the version goes up. None: there is no such
        collection.

        A missing collection is made if `made` says what it is and when (seconds since 1970), or by `work` itself
        (`new`), with its version.
        """
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

    def empty_log(self, name: str) -> None:
        """Empty the write-ahead log. Until then, it and the pages that it replaces still hold deleted content.

        A file that is for the larger part empty gives that part back to the disk.
        """
        path = self._path(name)
        with self._writer_of(name):
            if path.exists():
                with contextlib.closing(_connect(path, create=False)) as connection:
                    empty, pages = (connection.execute(f"PRAGMA {each}").fetchone()[0] for each in _PAGES)
                    if 2 * empty > pages:
                        connection.execute("VACUUM")
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def look(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        """Return the result of the read `work`; `nothing` if there is no such collection."""
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

    def _file(self, name: str) -> OpenFile | None:
        path = self._path(name)
        with self._guard:
            file = self._opened.get(name)
            if file is not None:
                self._opened.move_to_end(name)
                return file
            if name in self._ending or not path.exists():
                return None
            file = self._opened[name] = OpenFile(path, _connect(path, create=False))
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

    def delete(self, name: str) -> bool:
        """Delete a collection. Returns True if it was there."""
        path = self._path(name)
        with self._writer_of(name):
            there = path.exists()
            if there:
                described = self.look(name, lambda file: writing.describe(file.connection, 0), None)
                if described is not None:
                    self._ended[name] = described.version
                    if len(self._ended) > KEPT_ENDED:
                        del self._ended[next(iter(self._ended))]
            with self._shut(name):
                _unlink(path)
            return there

    def copy(self, name: str, target: Path) -> bool:
        """Copy a collection as it is at one moment to the new file `target`. False: there is no such collection."""
        path = self._path(name)
        with self._writer_of(name):
            if not path.exists():
                return False
            with contextlib.closing(_connect(path, create=False)) as held:
                if held.execute("PRAGMA user_version").fetchone()[0] == 0:
                    return False
                with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as made:
                    made.execute("PRAGMA journal_mode = OFF")
                    made.execute("PRAGMA synchronous = OFF")
                    held.backup(made)
            return True

    def move_in(self, name: str, source: Path) -> None:
        """Replace a collection by the file `source`, made by `copy`; the file is moved."""
        path = self._path(name)
        with self._writer_of(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._shut(name):
                _unlink(path)
                source.replace(path)

    @contextlib.contextmanager
    def _shut(self, name: str) -> Generator[None]:
        """Close a collection's file until the end of the block: nobody has it open, or can open it."""
        with self._guard:
            self._ending.add(name)
            file = self._opened.pop(name, None)
        try:
            if file is not None:
                file.close()
            yield
        finally:
            with self._guard:
                self._ending.discard(name)

    def names(self, prefix: str) -> list[str]:
        return [name for name in self._folders.names() if name.startswith(prefix)]

    def close(self) -> None:
        with self._guard:
            opened = list(self._opened.values())
            self._opened.clear()
        for file in opened:
            file.close()

    def _path(self, name: str) -> Path:
        return self._folders.of(name) / f"{protocol.check_name(name)}{SUFFIX}"

    def _writer_of(self, name: str) -> threading.Lock:
        with self._guard:
            return self._writing.setdefault(name, threading.Lock())


def _with_files_beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + tail) for tail in _TAILS]


def _unlink(path: Path) -> None:
    for each in _with_files_beside(path):
        each.unlink(missing_ok=True)


def _connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """Open a file. Without `create`, a missing file is not made."""
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
        connection.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten
        searching.prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


TRIES = 5
"""For a file that is written while it is read."""


class ReadOnlyFiles(CollectionFiles):
    """`CollectionFiles` for a process that must change nothing. No file stays open between two reads, so deleted
    collections are gone at once here as well.
    """

    def look(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        path = self._path(name)
        for left in range(TRIES, 0, -1):
            before = confined.read_signature(path)
            if before is None:
                return nothing
            immutable = not path.with_name(f"{path.name}-wal").exists()
            try:
                with contextlib.closing(open_to_read(path, immutable=immutable)) as connection:
                    made = connection.execute("PRAGMA user_version").fetchone()[0] != 0
                    result = work(OpenFile(path, connection)) if made else nothing
            except sqlite3.Error:
                if left == 1 or (immutable and confined.read_signature(path) == before):
                    raise
                continue
            if not immutable or confined.read_signature(path) == before:
                return result
        raise sqlite3.OperationalError("the file changes all the time")

    def _writer_of(self, name: str) -> threading.Lock:
        raise sqlite3.OperationalError(f"{name} is only read here")


def open_to_read(path: Path, *, immutable: bool) -> sqlite3.Connection:
    """Open a file to be read only. `immutable`: nobody else has it open, so SQLite is told that it does not change and
    makes no files beside it; the caller has to check that this was true.
    """
    how = "immutable=1" if immutable else "mode=ro"
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{how}", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    searching.prepare(connection)
    return connection


class SqliteCollections:
    """`Collections` (services.documents.store.document_store) in this process's own files. With `read_only`, every
    change raises StoreUnavailable.
    """

    def __init__(self, folders: Folders, *, read_only: bool = False) -> None:
        self._files: CollectionFiles = ReadOnlyFiles(folders) if read_only else CollectionFiles(folders)

    async def read(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        return await _guarded(self._files.look, name, work, nothing)

    async def change(
        self,
        name: str,
        work: Callable[[sqlite3.Connection], T],
        create: Collection | None = None,
        *,
        erase: bool = False,
        soon: bool = False,  # noqa: ARG002 (nobody else reads these files)
    ) -> T | None:
        made = None if create is None else (create, clock.now())

        def changed() -> T | None:
            result = self._files.transact(name, work, made)
            if erase:
                self._files.empty_log(name)
            return result

        return await _guarded(changed)

    async def describe(self, name: str) -> CollectionSummary | None:
        return await self.read(name, summary, None)

    async def delete(self, name: str) -> bool:
        return await _guarded(self._files.delete, name)

    async def names(self, prefix: str = "") -> list[str]:
        return await _guarded(self._files.names, prefix)

    async def close(self) -> None:
        await in_thread(self._files.close)

    async def make(self, name: str, work: Callable[[sqlite3.Connection], None]) -> None:
        """Create a collection by `work`, which makes its tables and rows; there must be none of its name."""
        await _guarded(self._files.transact, name, work, None, new=True)

    async def version(self, name: str) -> int | None:
        """Return the version of a collection; None: there is no such collection."""
        return await self.read(name, lambda file: writing.version(file.connection), None)

    async def copy(self, name: str, target: Path) -> bool:
        """See `CollectionFiles.copy`."""
        return await _guarded(self._files.copy, name, target)

    async def move_in(self, name: str, source: Path) -> None:
        """See `CollectionFiles.move_in`."""
        await _guarded(self._files.move_in, name, source)


def summary(file: OpenFile) -> CollectionSummary | None:
    """Return the collection in a file, and its documents."""
    return writing.describe(file.connection, file.path.stat().st_size)


async def _guarded(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    try:
        return await in_thread(work, *args, **kwargs)
    except (sqlite3.Error, OSError) as error:
        raise StoreUnavailable(f"the store of documents cannot be used: {type(error).__name__}") from error


# The disk space that they take

PERSONAL_SHARE = 1 / 20
"""The most that the documents of one person may take of all disk space: 256 MiB of 5 GiB, as much as a thread full of
logs.
"""

_SIZES = "SELECT uploader_id, sum(size) FROM documents WHERE state IN ('lexical', 'ready') GROUP BY uploader_id"


class DiskFull(StoreUnavailable):
    """The files and runbooks of all people take what they may take."""


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Bounds the disk space of collections, in all and for each person.

    A collection may hold documents of several people. The size of its file is divided among them in proportion to the
    sizes of their documents.

    Attributes:
        folders: those of the collections.
        most_bytes: the most that all files in them may take.
    """

    folders: Sequence[Path]
    most_bytes: int
    _shares: dict[Path, tuple[tuple[float, ...], dict[int | None, float]]] = field(
        default_factory=dict[Path, tuple[tuple[float, ...], dict[int | None, float]]], init=False
    )
    """By the path of a collection: its sizes and times when it was read, and the bytes that count for each uploader."""

    def check_room(self, origin: Origin) -> None:
        """Check that there is room for another document. `origin`: who brings it. Blocking.

        Raises:
            DiskFull: all files together take as much as they may.
            FileRefused: those of its uploader take as much as one person's may.
        """
        found: dict[Path, tuple[int, float]] = {}
        for path in (each for folder in self.folders for each in folder.rglob("*")):
            with contextlib.suppress(OSError):  # deleted this very moment
                stat = path.lstat()
                found[path] = stat.st_size, stat.st_mtime
        if sum(size for size, _ in found.values()) >= self.most_bytes:
            raise DiskFull("no more files and runbooks are taken in (documents.max_disk_bytes)")
        if origin.uploader_id is None:
            return
        taken, most = 0.0, int(self.most_bytes * PERSONAL_SHARE)
        for gone in [path for path in self._shares if path not in found]:
            self._shares.pop(gone, None)
        for path, state in found.items():
            if path.suffix == SUFFIX:
                log = found.get(path.with_name(f"{path.name}-wal"))
                shares = self._shares_of(path, (*state, *(log or (0, 0.0))), has_log=log is not None)
                taken += shares.get(origin.uploader_id, 0.0)
        if taken >= most:
            name = display_name(origin.filename)
            raise FileRefused(
                "your_part_is_full", "delete_one", name=name, size=format_size(int(taken)), most=format_size(most)
            )

    def _shares_of(self, path: Path, state: tuple[float, ...], *, has_log: bool) -> dict[int | None, float]:
        known = self._shares.get(path)
        if known is not None and known[0] == state:
            return known[1]
        try:
            with contextlib.closing(open_to_read(path, immutable=not has_log)) as connection:
                sizes: dict[int | None, int] = dict(connection.execute(_SIZES).fetchall())
        except sqlite3.Error:  # it is being made, or deleted
            return {}
        per_byte = (state[0] + state[2]) / max(1, sum(sizes.values()))
        shares = {uploader: size * per_byte for uploader, size in sizes.items()}
        self._shares[path] = state, shares
        return shares
