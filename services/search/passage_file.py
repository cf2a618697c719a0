"""Opens the SQLite file that holds the passages of one library: its tables, its transactions and its repair. Blocking;
safe for threads.

All of it can be made again from the sources. So a file that is damaged, or of another format, is begun anew; where one
cannot be opened or read, memory takes its place until the next start.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from services.storage import files

T = TypeVar("T")

log = logging.getLogger(__name__)

FORMAT = 5
"""Raise it when the tables change, or when a document would be prepared or cut differently. Vectors stay: they are kept
by the text that they are of.
"""
_BUSY_SECONDS = 10.0

_TABLES = """
CREATE TABLE IF NOT EXISTS vectors (
    hash BLOB NOT NULL, embedder TEXT NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (hash, embedder)
) WITHOUT ROWID;
CREATE TABLE sources (
    source_no INTEGER PRIMARY KEY, source_id TEXT NOT NULL UNIQUE, stamp TEXT NOT NULL, hash TEXT NOT NULL,
    title TEXT NOT NULL, permalink TEXT NOT NULL, language TEXT NOT NULL
);
CREATE TABLE passages (
    passage_no INTEGER PRIMARY KEY, source_no INTEGER NOT NULL, section INTEGER NOT NULL, headings TEXT NOT NULL,
    anchor TEXT NOT NULL, text TEXT NOT NULL, hash BLOB NOT NULL, length INTEGER NOT NULL,
    day TEXT NOT NULL, quotable INTEGER NOT NULL, helped INTEGER NOT NULL
);
CREATE INDEX passages_by_source ON passages (source_no, section);
CREATE INDEX passages_by_hash ON passages (hash);
CREATE VIRTUAL TABLE words USING fts5(
    tokens, detail=full, tokenize="unicode61 remove_diacritics 0 tokenchars '_./:-+#'"
);
CREATE VIRTUAL TABLE words_found USING fts5vocab(words, instance);
"""
_DERIVED = ("words_found", "words", "passages", "sources")


_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ERRNOS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY), errno.EACCES),
    sqlite3.SQLITE_IOERR: errno.EIO,
}
_OUT_OF_REACH = frozenset({*_ERRNOS, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


class PassageFile:
    """The SQLite file of a `PassageStore`. `path` None: in memory, gone at the end. `read_only`: the file is never
    written; changes are made on a copy in memory. `on_begun`: called when everything stored was lost or deleted.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False, on_begun: Callable[[], object]) -> None:
        self._path = path
        self._read_only = read_only
        self._on_begun = on_begun
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._in_memory = path is None
        self._was_damaged = False

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the connection, one caller at a time, and return its result. A file that cannot be read counts
        as empty; that is logged.
        """
        with self._lock:
            return self._done(lambda: work(self._opened()), _DAMAGED | _OUT_OF_REACH)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one transaction, one caller at a time, and return its result.

        Raises sqlite3.Error: the file cannot be written (`trouble` says it for people), and nothing has changed.
        """
        with self._lock:
            return self._done(lambda: self._transacted(work), _DAMAGED)

    def empty_file(self) -> None:
        """Delete everything that is stored. Raises OSError: the file cannot be deleted."""
        with self._lock:
            self.close()
            self._on_begun()
            if self._path is not None and not self._read_only:
                delete_passages(self._path)

    def trouble(self, error: sqlite3.Error | OSError) -> str:
        """Return one line for the operator: which file cannot be written, why, and what can be done."""
        return f"{self._path or 'search in memory'} cannot be written ({_cause(error)}); {_remedy(error)}"

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _done(self, work: Callable[[], T], lost: Collection[int]) -> T:
        """What `work` gives, with the file or, after an error of a code in `lost`, without it."""
        while True:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                if self._path is None or self._in_memory or _code(error) not in lost:
                    raise
                self._lose(self._path, error)

    def _transacted(self, work: Callable[[sqlite3.Connection], T]) -> T:
        opened = self._opened()
        connection = self._copied(opened) if self._read_only and not self._in_memory else opened
        connection.execute("BEGIN IMMEDIATE")
        try:
            done = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite ends it by itself when the disk is full
                connection.execute("ROLLBACK")
            raise
        return done

    def _opened(self) -> sqlite3.Connection:
        while self._connection is None:
            if self._path is None or self._in_memory:
                self._connection = _ready(_connect(":memory:"))
            else:
                try:
                    self._connection = self._open(self._path)
                except (sqlite3.Error, OSError) as error:
                    self._lose(self._path, error)
        return self._connection

    def _open(self, path: Path) -> sqlite3.Connection:
        if not self._read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            return _ready(_connect(_uri(path, "rwc")))
        if not path.exists():
            self._in_memory = True
            return _ready(_connect(":memory:"))
        connection = _connect(_uri(path, "ro"))
        try:
            return connection if _is_ready(connection) else _ready(self._copied(connection))
        except BaseException:
            connection.close()
            raise

    def _copied(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """A copy in memory, used from now on."""
        copy = _connect(":memory:")
        try:
            connection.backup(copy)
        except BaseException:
            copy.close()
            raise
        connection.close()
        self._in_memory, self._connection = True, copy
        return copy

    def _lose(self, path: Path, error: sqlite3.Error | OSError) -> None:
        """Go on without what the file holds: with a new one if it was damaged, else in memory."""
        self.close()
        self._on_begun()
        # Where one is damaged again and again, it is the disk.
        if _code(error) in _DAMAGED and not self._read_only and not self._was_damaged:
            self._was_damaged = True
            try:
                delete_passages(path)
            except OSError as refused:
                error = refused
            else:
                log.warning("%s is damaged (%s); it is made anew from the sources", path, _cause(error))
                return
        self._in_memory = True
        log.warning(
            "%s cannot be used (%s), so search keeps in memory what it needs until the next start; %s",
            path,
            _cause(error),
            _remedy(error),
        )


def delete_passages(path: Path) -> bool:
    """Delete a passage file that is not open, with SQLite's files beside it; return whether there was one. Raises
    OSError.
    """
    there = path.exists()
    for ending in ("-journal", "-wal", "-shm", ""):
        files.remove(path.with_name(path.name + ending))
    return there


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _cause(error: sqlite3.Error | OSError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _remedy(error: sqlite3.Error | OSError) -> str:
    if isinstance(error, OSError):
        return files.remedy(error)
    code = _code(error)
    if code in _DAMAGED:
        return "delete it: it is made anew"
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return "close what else has it open"
    return files.remedy(OSError(_ERRNOS.get(code, errno.EIO), ""))


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path))}?mode={mode}"


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA secure_delete = ON")  # people's words do not stay in free pages
    except BaseException:
        connection.close()
        raise
    return connection


def _is_ready(connection: sqlite3.Connection) -> bool:
    """Whether it has the tables of this format."""
    held = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    return held.issuperset({"vectors", *_DERIVED}) and connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)


def _ready(connection: sqlite3.Connection) -> sqlite3.Connection:
    """With the tables of this format; those of another one are made anew."""
    try:
        if not _is_ready(connection):
            connection.execute("BEGIN IMMEDIATE")
            for table in _DERIVED:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in filter(None, map(str.strip, _TABLES.split(";"))):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection
