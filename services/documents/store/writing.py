"""Writes documents into a collection's file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

import clock
from services.documents.prepared import DocumentKind, Prepared
from services.documents.store import schema
from services.documents.store.protocol import (
    Collection,
    CollectionSummary,
    Document,
    NewDocument,
    Origin,
    Rows,
    State,
    StoredChunk,
    newest_revisions,
)
from services.search import tokenizer
from services.search.embedding import Vectors


def ensure(connection: sqlite3.Connection, collection: Collection, now: float, last_version: int) -> None:
    """Create the tables and the collection's own row if they are missing.

    Versions begin with the time, so that a collection made anew, also by another process, never seems to be the old
    one.
    """
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        create_tables(connection)
        about = (collection.name, collection.kb_type, collection.scope_id, collection.guild_id)
        made = (clock.rfc3339(now), max(last_version, int(now * 1000)))
        connection.execute("INSERT INTO collections VALUES (?, ?, ?, ?, ?, ?, 'open')", (*about, *made))


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty file, inside the caller's transaction."""
    for statement in schema.statements():
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {schema.FORMAT}")


def version(connection: sqlite3.Connection) -> int:
    return cast("int", connection.execute("SELECT version FROM collections").fetchone()[0])


def expect(connection: sqlite3.Connection, name: str, origin: Origin) -> Document:
    known = _by_attachment(connection, origin)
    if known is None:
        doc_id = schema.document_id(name, origin, "")
        _insert(connection, name, doc_id, origin, _NOT_READ, 0)
        known = _document(connection, doc_id)
    return known


def add(connection: sqlite3.Connection, name: str, new: NewDocument, rows: Rows) -> Document:
    """Add a document. If the same file is there already, only an origin is added to its document."""
    origin, prepared = new.origin, new.prepared
    expected = _by_attachment(connection, origin)
    same = connection.execute(
        "SELECT doc_id FROM documents WHERE sha256 = ? AND filename = ? AND state IN ('lexical', 'ready')",
        (prepared.sha256, origin.filename),
    ).fetchone()
    if same is not None:
        if expected is not None and expected.doc_id != same[0]:
            delete_document(connection, expected.doc_id)
        _note_origin(connection, same[0], origin)
        return _document(connection, same[0])
    # Documents that were expected, failed or half written are written anew.
    stale = connection.execute(
        "SELECT doc_id FROM documents WHERE sha256 = ? AND filename = ?", (prepared.sha256, origin.filename)
    ).fetchone()
    doc_id = expected.doc_id if expected is not None else schema.document_id(name, origin, prepared.sha256)
    for old in {doc_id, *(stale or ())}:
        delete_document(connection, old)
    _insert(connection, name, doc_id, origin, prepared, len(rows.chunks))
    number = connection.execute("SELECT doc_no FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()[0]
    insert_rows(connection, number, rows)
    return _document(connection, doc_id)


MAX_FAILED_OF_ONE, MAX_FAILED = 20, 200
"""At most so many documents that failed unread are kept, of one person and in all: whoever posts what is refused by its
name needs no room for it. The oldest go first."""


def fail(connection: sqlite3.Connection, doc_id: str, reason: str, size: int) -> bool:
    changed = connection.execute(
        "UPDATE documents SET state = 'failed', error = ?, size = ? WHERE doc_id = ?", (reason, size, doc_id)
    )
    unread = "SELECT doc_no FROM documents WHERE state = 'failed' AND size = 0"
    of_one = f"{unread} AND uploader_id IS (SELECT uploader_id FROM documents WHERE doc_id = ?)"
    for rows, most, values in ((of_one, MAX_FAILED_OF_ONE, (doc_id,)), (unread, MAX_FAILED, ())):
        surplus = f"{rows} ORDER BY doc_no DESC LIMIT -1 OFFSET {most}"
        connection.execute(f"DELETE FROM documents WHERE doc_no IN ({surplus})", values)
    return changed.rowcount > 0


def unembedded(connection: sqlite3.Connection, doc_id: str, embedder_id: str) -> dict[int, str]:
    rows = connection.execute(
        f"SELECT {schema.CHUNK_COLUMNS} FROM chunks c JOIN documents d USING (doc_no) "
        "WHERE d.doc_id = ? AND c.embedded AND (c.embedding IS NULL OR d.embedder != ?) ORDER BY c.chunk_index",
        (doc_id, embedder_id),
    ).fetchall()
    if not rows:
        return {}
    origin = _document(connection, doc_id).origin
    return {chunk.index: schema.embedded_text(origin, chunk) for chunk in map(schema.chunk_of, rows)}


def embed(connection: sqlite3.Connection, doc_id: str, embedder_id: str, vectors: Mapping[int, Vectors]) -> bool:
    row = connection.execute("SELECT doc_no, embedder FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    if row is None:
        return False
    number, embedder = row
    if embedder not in {"", embedder_id}:
        connection.execute("UPDATE chunks SET embedding = NULL WHERE doc_no = ?", (number,))
    connection.executemany(
        "UPDATE chunks SET embedding = ? WHERE doc_no = ? AND chunk_index = ?",
        [
            (np.ascontiguousarray(vector, dtype=np.float32).tobytes(), number, index)
            for index, vector in vectors.items()
        ],
    )
    left = connection.execute(
        "SELECT count(*) FROM chunks WHERE doc_no = ? AND embedded AND embedding IS NULL", (number,)
    ).fetchone()[0]
    state = State.LEXICAL if left else State.READY
    connection.execute(
        "UPDATE documents SET embedder = ?, state = ? WHERE doc_no = ?", (embedder_id, state.value, number)
    )
    return True


def chunks(connection: sqlite3.Connection, doc_id: str, indices: Sequence[int]) -> list[StoredChunk]:
    rows = connection.execute(
        f"SELECT {schema.CHUNK_COLUMNS} FROM chunks c JOIN documents d USING (doc_no) "
        f"WHERE d.doc_id = ? AND c.chunk_index IN ({schema.placeholders(len(indices))}) ORDER BY c.chunk_index",
        (doc_id, *indices),
    ).fetchall()
    return [schema.chunk_of(row) for row in rows]


def count_chunks_with(connection: sqlite3.Connection, words: Sequence[str]) -> tuple[dict[str, int], int]:
    count = connection.execute("SELECT count(*) FROM chunks").fetchone()[0]
    counts: dict[str, int] = {}
    for word in words:
        held = [
            connection.execute("SELECT doc FROM words_held WHERE term = ?", (part,)).fetchone()
            for part in tokenizer.smallest_tokens(word)
        ]
        # A chunk with a name of several parts also has its rarest part.
        counts[word] = min((row[0] if row else 0 for row in held), default=0)
    return counts, count


def describe(connection: sqlite3.Connection, n_bytes: int) -> CollectionSummary:
    name, kb_type, scope_id, guild_id, number = connection.execute(
        "SELECT name, kb_type, scope_id, guild_id, version FROM collections"
    ).fetchone()
    documents = _documents(connection, "true")
    current = set(newest_revisions(documents).values())
    marked = tuple(replace(doc, current=doc.doc_id in current) for doc in documents)
    return CollectionSummary(Collection(name, kb_type, scope_id, guild_id), number, marked, n_bytes)


def delete_document(connection: sqlite3.Connection, doc_id: str) -> bool:
    """Delete a document, and overwrite everything of it in the tables."""
    dropped = drop(connection, doc_id)
    if dropped:
        overwrite(connection)
    return dropped


def drop(connection: sqlite3.Connection, doc_id: str) -> bool:
    """Delete the rows of a document; `overwrite` has to follow."""
    row = connection.execute("SELECT doc_no FROM documents WHERE doc_id = ?", (doc_id,)).fetchone()
    if row is None:
        return False
    connection.execute("DELETE FROM words WHERE rowid IN (SELECT chunk_no FROM chunks WHERE doc_no = ?)", row)
    connection.execute("DELETE FROM line_words WHERE rowid IN (SELECT line_row FROM lines WHERE doc_no = ?)", row)
    for table in ("chunks", "lines", "documents"):
        connection.execute(f"DELETE FROM {table} WHERE doc_no = ?", row)
    return True


def overwrite(connection: sqlite3.Connection) -> None:
    """Remove the words of deleted rows from the indexes, which only mark them as deleted."""
    for table in ("words", "line_words"):
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")


def withdraw(connection: sqlite3.Connection, doc_id: str, gone: Callable[[Origin], bool]) -> bool:
    origins = [origin for doc in _documents(connection, "doc_id = ?", doc_id) for origin in doc.origins]
    left = [origin for origin in origins if not gone(origin)]
    if not left:
        return delete_document(connection, doc_id)
    if len(left) < len(origins):
        _set_origins(connection, doc_id, left)
    return len(left) < len(origins)


def _note_origin(connection: sqlite3.Connection, doc_id: str, origin: Origin) -> None:
    """Add an origin to a document. A document that comes from no message, such as documentation, keeps one origin."""
    known = _document(connection, doc_id).origins
    if origin.message_id is not None and all(_place(each) != _place(origin) for each in known):
        _set_origins(connection, doc_id, [*known, origin])


def _place(origin: Origin) -> tuple[int | None, int | None]:
    return origin.message_id, origin.attachment_id


def _set_origins(connection: sqlite3.Connection, doc_id: str, origins: Sequence[Origin]) -> None:
    first, *others = origins
    posted = (first.uploader_id, first.message_id, first.attachment_id, first.uploaded_at)
    connection.execute(
        "UPDATE documents SET uploader_id = ?, message_id = ?, attachment_id = ?, uploaded_at = ?, extra = ? "
        "WHERE doc_id = ?",
        (*posted, schema.origins_text(first, others), doc_id),
    )


_NOT_READ = Prepared(DocumentKind.TEXT, "", 0, "", 0, ())


def _insert(
    connection: sqlite3.Connection, name: str, doc_id: str, origin: Origin, prepared: Prepared, n_chunks: int
) -> None:
    revision = connection.execute(
        "SELECT coalesce(max(revision), 0) + 1 FROM documents WHERE filename = ? AND uploader_id IS ?",
        (origin.filename, origin.uploader_id),
    ).fetchone()[0]
    posted = (origin.uploader_id, origin.message_id, origin.attachment_id, origin.uploaded_at)
    redactions, flags = schema.mapping_text(prepared.redactions), schema.list_text(prepared.flags)
    state = (State.PENDING if prepared is _NOT_READ else State.LEXICAL).value
    row = (doc_id, origin.filename, prepared.sha256 or None, prepared.size, prepared.kind.value, *posted, state, "")
    row += (prepared.n_lines, n_chunks, redactions, flags, schema.mapping_text(origin.extra), revision, "")
    connection.execute(
        f"INSERT INTO documents (collection, {schema.DOCUMENT_COLUMNS}) VALUES ({schema.placeholders(19)})",
        (name, *row),
    )


def insert_rows(connection: sqlite3.Connection, number: int, rows: Rows) -> None:
    """Insert rows, with numbers after those of existing rows."""
    next_chunk = _next(connection, "chunks", "chunk_no")
    connection.executemany(
        f"INSERT INTO chunks VALUES ({schema.placeholders(20)})",
        ((next_chunk + at, number, *row, None) for at, row in enumerate(rows.chunks)),
    )
    connection.executemany(
        "INSERT INTO words (rowid, tokens) VALUES (?, ?)",
        ((next_chunk + at, text) for at, text in enumerate(rows.chunk_tokens)),
    )
    next_line = _next(connection, "lines", "line_row")
    connection.executemany(
        f"INSERT INTO lines VALUES ({schema.placeholders(11)})",
        ((next_line + at, number, *row) for at, row in enumerate(rows.lines)),
    )
    connection.executemany(
        "INSERT INTO line_words (rowid, tokens) VALUES (?, ?)",
        ((next_line + at, text) for at, text in enumerate(rows.line_tokens)),
    )


def _next(connection: sqlite3.Connection, table: str, column: str) -> int:
    return cast("int", connection.execute(f"SELECT coalesce(max({column}), 0) + 1 FROM {table}").fetchone()[0])


def _by_attachment(connection: sqlite3.Connection, origin: Origin) -> Document | None:
    if origin.attachment_id is None:
        return None
    named = _documents(connection, "filename = ?", origin.filename)
    return next((doc for doc in named if doc.has_attachment(origin.attachment_id)), None)


def _document(connection: sqlite3.Connection, doc_id: str) -> Document:
    (document,) = _documents(connection, "doc_id = ?", doc_id)
    return document


def _documents(connection: sqlite3.Connection, condition: str, *values: str) -> list[Document]:
    rows = connection.execute(
        f"SELECT {schema.DOCUMENT_COLUMNS} FROM documents WHERE {condition} ORDER BY doc_no", values
    )
    return [schema.document_of(row) for row in rows]
