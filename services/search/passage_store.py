"""Stores the passages of one library in SQLite: their words (FTS5), their vectors and their sources. Blocking; safe for
threads.

Everything in it can be made again from the sources: a file that is damaged or of another format is made anew. Where a
file cannot be opened or read, a database in memory takes its place until the next start.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import numpy as np

from services.search.embedding import Vectors
from services.search.scoring import Floats, Positions, Postings, stored_postings, stored_vectors
from services.search.text.article import Passage, Section
from services.search.tokenizer import ascii_form, fts5_text, terms
from services.storage import files

# The file

T = TypeVar("T")

log = logging.getLogger(__name__)

FORMAT = 14
"""Raise it when the tables, or what is made of a document, change. Vectors stay: their key is the text's hash."""
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
    day TEXT NOT NULL, quotable INTEGER NOT NULL, helped INTEGER NOT NULL, doubted INTEGER NOT NULL
);
CREATE INDEX passages_by_source ON passages (source_no, section);
CREATE INDEX passages_by_hash ON passages (hash);
CREATE VIRTUAL TABLE words USING fts5(
    tokens, detail=full, tokenize="unicode61 remove_diacritics 0 tokenchars '_./:-+#'"
);
CREATE VIRTUAL TABLE words_found USING fts5vocab(words, instance);
"""
_DERIVED_TABLES = ("words_found", "words", "passages", "sources")

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ERRNOS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    **dict.fromkeys((sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY), errno.EACCES),
    sqlite3.SQLITE_IOERR: errno.EIO,
}
_UNREADABLE = frozenset({*_ERRNOS, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})


class PassageFile:
    """The SQLite file of a `PassageStore`. `path` None: in memory, gone at the end. `read_only`: the file is never
    written; changes are made on a copy in memory. `on_emptied`: called when everything stored was lost or deleted.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False, on_emptied: Callable[[], object]) -> None:
        self._path = path
        self._read_only = read_only
        self._on_emptied = on_emptied
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._in_memory = path is None
        self._was_damaged = False

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work`, one caller at a time; return its result. An unreadable file counts as empty, with a warning."""
        with self._lock:
            return self._run(lambda: work(self._connected()), _DAMAGED | _UNREADABLE)

    def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one transaction, one caller at a time, and return its result.

        Raises sqlite3.Error: the file cannot be written (`trouble` says it for people), and nothing has changed.
        """
        with self._lock:
            return self._run(lambda: self._in_transaction(work), _DAMAGED)

    def empty_file(self) -> None:
        """Delete everything that is stored. Raises OSError: the file cannot be deleted."""
        with self._lock:
            self.close()
            self._on_emptied()
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

    def _run(self, work: Callable[[], T], fatal: Collection[int]) -> T:
        """Run `work`; after an SQLite error with a code in `fatal`, abandon the file and run it again."""
        while True:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                if self._path is None or self._in_memory or _error_code(error) not in fatal:
                    raise
                self._abandon_file(self._path, error)

    def _in_transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        opened = self._connected()
        connection = self._copy_to_memory(opened) if self._read_only and not self._in_memory else opened
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:  # SQLite ends it by itself when the disk is full
                connection.execute("ROLLBACK")
            raise
        return result

    def _connected(self) -> sqlite3.Connection:
        while self._connection is None:
            if self._path is None or self._in_memory:
                self._connection = _with_tables(_connect(":memory:"))
            else:
                try:
                    self._connection = self._open(self._path)
                except (sqlite3.Error, OSError) as error:
                    self._abandon_file(self._path, error)
        return self._connection

    def _open(self, path: Path) -> sqlite3.Connection:
        if not self._read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            return _with_tables(_connect(_uri(path, "rwc")))
        if not path.exists():
            self._in_memory = True
            return _with_tables(_connect(":memory:"))
        connection = _connect(_uri(path, "ro"))
        try:
            return connection if _has_tables(connection) else _with_tables(self._copy_to_memory(connection))
        except BaseException:
            connection.close()
            raise

    def _copy_to_memory(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        """Copy the file into memory and use the copy from now on."""
        copy = _connect(":memory:")
        try:
            connection.backup(copy)
        except BaseException:
            copy.close()
            raise
        connection.close()
        self._in_memory, self._connection = True, copy
        return copy

    def _abandon_file(self, path: Path, error: sqlite3.Error | OSError) -> None:
        """Go on without what the file holds: with a new one if it was damaged, else in memory."""
        self.close()
        self._on_emptied()
        # If the new file is damaged too, the disk is at fault.
        if _error_code(error) in _DAMAGED and not self._read_only and not self._was_damaged:
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


def passage_files(path: Path) -> list[Path]:
    """Return the paths of a passage file and of those that SQLite puts beside it, which go before it."""
    return [path.with_name(path.name + ending) for ending in ("-journal", "-wal", "-shm", "")]


def delete_passages(path: Path) -> bool:
    """Delete a closed passage file with SQLite's files beside it; return whether there was one. Raises OSError."""
    there = path.exists()
    for each in passage_files(path):
        files.remove(each)
    return there


def _error_code(error: Exception) -> int:
    """Return SQLite's primary result code; 0 for other errors."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _cause(error: sqlite3.Error | OSError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _remedy(error: sqlite3.Error | OSError) -> str:
    if isinstance(error, OSError):
        return files.remedy(error)
    code = _error_code(error)
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


def _has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether the file has the tables of this format."""
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    return names.issuperset({"vectors", *_DERIVED_TABLES}) and connection.execute("PRAGMA user_version").fetchone() == (
        FORMAT,
    )


def _with_tables(connection: sqlite3.Connection) -> sqlite3.Connection:
    """Create the tables, unless the file has those of this format; return the connection."""
    try:
        if not _has_tables(connection):
            connection.execute("BEGIN IMMEDIATE")
            for table in _DERIVED_TABLES:
                connection.execute(f"DROP TABLE IF EXISTS {table}")
            for statement in filter(None, map(str.strip, _TABLES.split(";"))):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


# The store

_COLUMNS = "source_id, title, permalink, section, headings, anchor, text, day, quotable, helped, doubted"
_MAX_POSTINGS_KEPT = 4_000
_MAX_PASSAGES_KEPT = 2_000
"""In memory: some megabytes. A question reads 60, many of them the same as for the question before."""

_TEXTS_READ = 500
"""At once, when all are read."""


class PreparedSource(NamedTuple):
    """A source prepared for search: parsed, cut into passages, its language known.

    Attributes:
        stamp: if it is unchanged, the text is not read again; empty: it is always read.
        hash: of its text.
        sections: those that `Passage.section` is an index of; their texts are not stored.
    """

    source_id: str
    stamp: str
    hash: str
    title: str
    permalink: str
    language: str
    passages: Sequence[Passage]
    sections: Sequence[Section]


class StoredPassage(NamedTuple):
    """A stored passage, with the facts about its source. From `day` on they are those of its section."""

    source_id: str
    title: str
    permalink: str
    section: int
    headings: tuple[str, ...]
    anchor: str
    text: str
    day: str = ""
    quotable: bool = True
    helped: bool = False
    doubted: bool = False

    @property
    def with_heading(self) -> str:
        return Passage(self.section, self.headings, self.text).with_heading


class Frame(NamedTuple):
    """All passages of one version of a store as arrays, in order of their numbers.

    Attributes:
        source_ids: of each passage's source.
        languages: those of all sources.
        lengths: in words.
        vectors: one row for each position in `embedded`.
        embedded: the positions of the passages that have a vector.
    """

    numbers: Positions
    source_ids: Sequence[str]
    languages: frozenset[str]
    lengths: Floats
    vectors: Vectors
    embedded: Positions


class PassageStore:
    """Passages of one library in a `PassageFile` (`path` and `read_only` as there). A file that cannot be read counts
    as empty; where it cannot be written, changes raise sqlite3.Error.

    Attributes:
        times_emptied: how often everything stored was lost or deleted.
    """

    def __init__(self, path: Path | None, *, read_only: bool = False) -> None:
        self.path = path
        self._file = PassageFile(path, read_only=read_only, on_emptied=self._note_emptied)
        self.times_emptied = 0
        self._frame: tuple[str, int, Frame] | None = None
        self._version = 0
        self._postings: OrderedDict[str, Postings] = OrderedDict()
        self._passages: OrderedDict[int, StoredPassage] = OrderedDict()

    @property
    def version(self) -> int:
        """Increases with each change: a result of an earlier version may be out of date."""
        return self._version

    def sources(self) -> dict[str, tuple[str, str]]:
        """Return the stamp and the hash of each source, by id."""
        rows = self._select("SELECT source_id, stamp, hash FROM sources")
        return {source_id: (stamp, text_hash) for source_id, stamp, text_hash in rows}

    def change(
        self, put: Sequence[PreparedSource], *, drop: Collection[str] = (), stamps: Mapping[str, str] | None = None
    ) -> None:
        """Store new and changed sources, delete those in `drop`, and update `stamps` of others, in one transaction."""

        def work(connection: sqlite3.Connection) -> None:
            for source_id in [*drop, *(source.source_id for source in put)]:
                _delete_source(connection, source_id)
            for source in put:
                _insert_source(connection, source)
            for source_id, stamp in (stamps or {}).items():
                connection.execute("UPDATE sources SET stamp = ? WHERE source_id = ?", (stamp, source_id))
            if drop or put:
                self._forget_read()

        self._file.write(work)

    def unembedded(self, embedder_id: str, most: int) -> list[tuple[bytes, str]]:
        """Return the hashes and texts of passages that have no vector yet, each text once."""
        rows = self._select(
            "SELECT hash, headings, text FROM passages p WHERE NOT EXISTS "
            "(SELECT 1 FROM vectors v WHERE v.hash = p.hash AND v.embedder = ?) GROUP BY hash "
            "ORDER BY min(passage_no) LIMIT ?",
            embedder_id,
            most,
        )
        return [(key, Passage(0, tuple(json.loads(headings)), text).with_heading) for key, headings, text in rows]

    def count_unembedded(self, embedder_id: str) -> int:
        [(count,)] = self._select(
            "SELECT count(DISTINCT hash) FROM passages p WHERE NOT EXISTS "
            "(SELECT 1 FROM vectors v WHERE v.hash = p.hash AND v.embedder = ?)",
            embedder_id,
        )
        return int(count)

    def store_vectors(self, embedder_id: str, vectors: Mapping[bytes, Vectors]) -> None:
        rows = [(key, embedder_id, np.asarray(row, dtype=np.float32).tobytes(), key) for key, row in vectors.items()]

        def work(connection: sqlite3.Connection) -> None:
            # A text may have been deleted meanwhile: its vector is left out.
            connection.executemany(
                "INSERT OR REPLACE INTO vectors SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM passages WHERE hash = ?)",
                rows,
            )
            self._version += 1

        self._file.write(work)

    def forget_unused_vectors(self) -> None:
        """Delete the vectors whose text is in no passage any more."""
        unused = "DELETE FROM vectors WHERE hash NOT IN (SELECT hash FROM passages)"
        self._file.write(lambda connection: connection.execute(unused))

    def empty_file(self) -> None:
        """Delete all passages and every text of them in the file. Vectors stay, for passages that are stored again,
        until `forget_unused_vectors`. Raises OSError: the file cannot be deleted.
        """
        vectors = self._select("SELECT hash, embedder, vector FROM vectors")
        self._file.empty_file()
        with suppress(sqlite3.Error):  # vectors can be made again
            self._file.write(lambda connection: connection.executemany("INSERT INTO vectors VALUES (?, ?, ?)", vectors))

    def frame(self, embedder_id: str) -> Frame:
        """Return the current frame."""
        return self._file.read(lambda connection: self._current_frame(connection, embedder_id))

    def frame_and_postings(self, embedder_id: str, words: Sequence[str]) -> tuple[Frame, list[Postings]]:
        """Return the current frame, and the postings of some words in it."""

        def work(connection: sqlite3.Connection) -> tuple[Frame, list[Postings]]:
            frame = self._current_frame(connection, embedder_id)
            return frame, [self._postings_of(connection, frame, word) for word in words]

        return self._file.read(work)

    def _current_frame(self, connection: sqlite3.Connection, embedder_id: str) -> Frame:
        if self._frame is None or self._frame[:2] != (embedder_id, self._version):
            self._frame = embedder_id, self._version, _load_frame(connection, embedder_id)
        return self._frame[2]

    def _postings_of(self, connection: sqlite3.Connection, frame: Frame, word: str) -> Postings:
        known = self._postings.get(word)
        if known is None:
            known = self._postings[word] = stored_postings(connection, ascii_form(word), frame.numbers)
            if len(self._postings) > _MAX_POSTINGS_KEPT:
                self._postings.popitem(last=False)
        return known

    def passages(self, numbers: Sequence[int]) -> dict[int, StoredPassage]:
        """Return the passages with these numbers of a frame; those deleted meanwhile are missing."""

        def work(connection: sqlite3.Connection) -> dict[int, StoredPassage]:
            self._read_passages(connection, [number for number in numbers if number not in self._passages])
            found = {number: self._passages[number] for number in numbers if number in self._passages}
            while len(self._passages) > _MAX_PASSAGES_KEPT:
                self._passages.popitem(last=False)
            return found

        return self._file.read(work)

    def _read_passages(self, connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
        if numbers:
            marks = ",".join("?" * len(numbers))
            rows = connection.execute(
                f"SELECT passage_no, {_COLUMNS} FROM passages "  # noqa: S608 (placeholders)
                f"JOIN sources USING (source_no) WHERE passage_no IN ({marks})",
                numbers,
            )
            self._passages.update((number, _stored_passage(rest)) for number, *rest in rows)

    def section(self, source_id: str, section: int) -> list[StoredPassage]:
        """Return the passages of one section, in order."""
        rows = self._select(
            f"SELECT {_COLUMNS} FROM passages "  # noqa: S608 (our own words)
            "JOIN sources USING (source_no) WHERE source_id = ? AND section = ? ORDER BY passage_no",
            source_id,
            section,
        )
        return [_stored_passage(row) for row in rows]

    def texts(self) -> Iterator[str]:
        """Yield the text of each passage, with its headings."""
        last = 0
        while rows := self._select(
            "SELECT passage_no, headings, text FROM passages WHERE passage_no > ? ORDER BY passage_no LIMIT ?",
            last,
            _TEXTS_READ,
        ):
            yield from (Passage(0, tuple(json.loads(headings)), text).with_heading for _, headings, text in rows)
            last = rows[-1][0]

    def trouble(self, error: sqlite3.Error | OSError) -> str:
        """Return one line for the operator about a write error: which file, why, and what can be done."""
        return self._file.trouble(error)

    def close(self) -> None:
        self._file.close()

    def _note_emptied(self) -> None:
        self.times_emptied += 1
        self._forget_read()
        self._frame = None

    def _forget_read(self) -> None:
        """Forget what was read of the version before."""
        self._version += 1
        self._postings.clear()
        self._passages.clear()

    def _select(self, query: str, *values: object) -> list[Any]:
        return self._file.read(lambda connection: connection.execute(query, values).fetchall())


def _delete_source(connection: sqlite3.Connection, source_id: str) -> None:
    row = connection.execute("SELECT source_no FROM sources WHERE source_id = ?", (source_id,)).fetchone()
    if row is not None:
        numbers = "SELECT passage_no FROM passages WHERE source_no = ?"
        connection.execute(f"DELETE FROM words WHERE rowid IN ({numbers})", row)  # noqa: S608 (our own words)
        connection.execute("DELETE FROM passages WHERE source_no = ?", row)
        connection.execute("DELETE FROM sources WHERE source_no = ?", row)


def _insert_source(connection: sqlite3.Connection, source: PreparedSource) -> None:
    number = connection.execute(
        "INSERT INTO sources (source_id, stamp, hash, title, permalink, language) VALUES (?, ?, ?, ?, ?, ?)",
        (source.source_id, source.stamp, source.hash, source.title, source.permalink, source.language),
    ).lastrowid
    for passage in source.passages:
        # Words of the heading count twice: it says more about its passage than any sentence in it.
        words = terms(passage.heading, source.language) * 2 + terms(passage.text, source.language)
        key = hashlib.sha256(passage.with_heading.encode("utf-8", "replace")).digest()[:16]
        section = source.sections[passage.section]
        quotable = section.quotable and passage.quotable
        row = (number, passage.section, json.dumps(passage.headings), section.anchor, passage.text)
        passage_no = connection.execute(
            "INSERT INTO passages (source_no, section, headings, anchor, text, hash, length, day, quotable, helped, "
            "doubted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, key, len(words), section.day, quotable, section.helped, section.doubted),
        ).lastrowid
        connection.execute(
            "INSERT INTO words (rowid, tokens) VALUES (?, ?)", (passage_no, fts5_text(map(ascii_form, words)))
        )


def _load_frame(connection: sqlite3.Connection, embedder_id: str) -> Frame:
    table = connection.execute(
        "SELECT passage_no, source_id, length, vector, language FROM passages JOIN sources USING (source_no) "
        "LEFT JOIN vectors ON vectors.hash = passages.hash AND vectors.embedder = ? ORDER BY passage_no",
        (embedder_id,),
    ).fetchall()
    blobs = [row[3] for row in table if row[3] is not None]
    return Frame(
        np.array([row[0] for row in table], dtype=np.int64),
        [row[1] for row in table],
        frozenset(row[4] for row in table),
        np.array([row[2] for row in table], dtype=np.float32),
        stored_vectors(blobs),
        np.array([position for position, row in enumerate(table) if row[3] is not None], dtype=np.int64),
    )


def _stored_passage(row: Sequence[Any]) -> StoredPassage:
    source_id, title, permalink, section, headings, anchor, text, day, *flags = row
    path = tuple(json.loads(headings))
    return StoredPassage(source_id, title, permalink, int(section), path, anchor, text, day, *map(bool, flags))
