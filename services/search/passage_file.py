"""The SQLite file that the passages of one library are kept in: its tables, and its transactions. Blocking; safe for
threads.

All of it can be made again from the sources: a file that is damaged, or of another format, is begun anew.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

T = TypeVar("T")

log = logging.getLogger(__name__)

FORMAT = 2
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
    anchor TEXT NOT NULL, text TEXT NOT NULL, hash BLOB NOT NULL, length INTEGER NOT NULL
);
CREATE INDEX passages_by_source ON passages (source_no, section);
CREATE INDEX passages_by_hash ON passages (hash);
CREATE VIRTUAL TABLE words USING fts5(
    tokens, detail=full, tokenize="unicode61 remove_diacritics 0 tokenchars '_./:-+#'"
);
CREATE VIRTUAL TABLE words_found USING fts5vocab(words, instance);
"""
_DERIVED = ("words_found", "words", "passages", "sources")


class PassageFile:
    """`path` None: in memory, gone at the end. `read_only`: nothing is ever written to the file; changes are made in
    memory, on a copy.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._in_memory = path is None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` gives; one at a time."""
        with self._lock:
            return work(self._opened())

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` gives, in one transaction: when it fails, nothing has changed."""
        with self._lock:
            opened = self._opened()
            connection = self._copied(opened) if self._read_only and not self._in_memory else opened
            connection.execute("BEGIN IMMEDIATE")
            try:
                done = work(connection)
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            return done

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _copied(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """A copy in memory, used from now on."""
        copy = self._connection = _connect(None)
        connection.backup(copy)
        connection.close()
        self._in_memory = True
        return copy

    def _open(self) -> sqlite3.Connection:
        path = None if self._in_memory else self._path
        if path is not None and self._read_only and not path.exists():
            path, self._in_memory = None, True
        try:
            return _ready(_connect(path, read_only=self._read_only), fresh=not self._read_only or path is None)
        except sqlite3.DatabaseError as error:
            if path is None or isinstance(error, sqlite3.OperationalError):
                raise
            log.warning("%s is damaged (%s); it is made anew from the sources", path, error)
            if self._read_only:
                self._in_memory = True
                return _ready(_connect(None), fresh=True)
            path.unlink()
            return _ready(_connect(path), fresh=True)


def _connect(path: Path | None, *, read_only: bool = False) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if not read_only:
        path.parent.mkdir(parents=True, exist_ok=True)
    return sqlite3.connect(
        f"file:{quote(str(path))}?mode={'ro' if read_only else 'rwc'}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )


def _ready(connection: sqlite3.Connection, *, fresh: bool) -> sqlite3.Connection:
    """With tables of this format. Those of another one are made anew; not so where that cannot be (`fresh`)."""
    held = connection.execute("PRAGMA user_version").fetchone()[0]
    if held == FORMAT:
        connection.execute("SELECT count(*) FROM sources").fetchone()
        return connection
    if not fresh:
        copy = _connect(None)
        connection.backup(copy)
        connection.close()
        return _ready(copy, fresh=True)
    connection.execute("BEGIN IMMEDIATE")
    for table in _DERIVED:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    for statement in filter(None, map(str.strip, _TABLES.split(";"))):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")
    return connection
