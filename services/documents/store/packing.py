"""A whole collection as plain values, to be carried from one store to another. Blocking."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.documents.store import schema

CHUNK_COLUMNS = (
    "chunk_index, text, line_start, line_end, ts_min, ts_max, severities, chunk_type, section_path, key_path, symbol, "
    "shown_by, components, pattern_lines, extra, n_tokens, embedded"
)
_TABLES = (
    # table, its columns without the document's number, how they are ordered
    ("chunks", CHUNK_COLUMNS, "chunk_no"),
    ("lines", "line_no, text, text_offset, ts, ts_utc, day, clock, severity, component", "line_row"),
)  # fmt: skip
VERSION_AT = 5  # of a collection's row

_WORDS = (("words", "chunks", "chunk_no"), ("line_words", "lines", "line_row"))


@dataclass(frozen=True, slots=True)
class Packed:
    collection: list[Any]  # the row of the collection: name, kind, scope, guild, when made, version, state
    version: int
    rows: Mapping[str, Any]  # for each document its rows in every table
    vectors: Mapping[str, Mapping[int, bytes]]  # for each document its vectors, by chunk index


def pack(connection: sqlite3.Connection) -> Packed:
    collection = list(connection.execute("SELECT * FROM collections").fetchone())
    version = int(collection[VERSION_AT])
    rows: dict[str, Any] = {}
    vectors: dict[str, dict[int, bytes]] = {}
    documents = connection.execute(
        f"SELECT doc_no, collection, {schema.DOCUMENT_COLUMNS} FROM documents ORDER BY doc_no"
    )
    for number, *document in documents.fetchall():
        doc_id = str(document[1])
        held: dict[str, Any] = {"order": number, "documents": [document]}
        for table, columns, order in _TABLES:
            query = f"SELECT {columns} FROM {table} WHERE doc_no = ? ORDER BY {order}"
            held[table] = [list(row) for row in connection.execute(query, (number,))]
        for words, table, key in _WORDS:
            source = f"{words} w JOIN {table} t ON t.{key} = w.rowid"
            query = f"SELECT w.tokens FROM {source} WHERE t.doc_no = ? ORDER BY t.{key}"
            held[words] = [row[0] for row in connection.execute(query, (number,))]
        query = "SELECT chunk_index, embedding FROM chunks WHERE doc_no = ? AND embedding IS NOT NULL"
        vectors[doc_id] = dict(connection.execute(query, (number,)).fetchall())
        rows[doc_id] = held
    return Packed(collection, version, rows, vectors)


def unpack(connection: sqlite3.Connection, packed: Packed) -> None:
    """Into a file without tables; inside the caller's transaction."""
    for statement in schema.statements():
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {schema.FORMAT}")
    connection.execute(f"INSERT INTO collections VALUES ({schema.marks(7)})", packed.collection)
    for doc_id, held in sorted(packed.rows.items(), key=lambda item: item[1]["order"]):
        number = held["order"]
        (document,) = held["documents"]
        columns = f"doc_no, collection, {schema.DOCUMENT_COLUMNS}"
        connection.execute(
            f"INSERT INTO documents ({columns}) VALUES ({schema.marks(len(document) + 1)})", [number, *document]
        )
        for (table, columns, key), (words, _, _) in zip(_TABLES, _WORDS, strict=True):
            start = connection.execute(f"SELECT coalesce(max({key}), 0) + 1 FROM {table}").fetchone()[0]
            width = columns.count(",") + 3
            connection.executemany(
                f"INSERT INTO {table} ({key}, doc_no, {columns}) VALUES ({schema.marks(width)})",
                [[start + at, number, *row] for at, row in enumerate(held[table])],
            )
            connection.executemany(
                f"INSERT INTO {words} (rowid, tokens) VALUES (?, ?)",
                [(start + at, text) for at, text in enumerate(held[words])],
            )
        connection.executemany(
            "UPDATE chunks SET embedding = ? WHERE doc_no = ? AND chunk_index = ?",
            [(blob, number, index) for index, blob in packed.vectors.get(doc_id, {}).items()],
        )


def side_by_side(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Documents that several stores took in at once as one store would have: numbered, and none of them twice."""
    kept: dict[str, Any] = {}
    seen: set[tuple[str, str | None]] = set()
    for doc_id, held in sorted(rows.items(), key=lambda item: (item[1]["order"], item[0])):
        ((_, _, filename, sha256, *_),) = held["documents"]
        if sha256 is None or (filename, sha256) not in seen:
            seen.add((filename, sha256))
            last = max((other["order"] for other in kept.values()), default=0)
            kept[doc_id] = {**held, "order": max(held["order"], last + 1)}
    return kept
