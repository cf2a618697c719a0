"""A whole collection as plain values, to be carried from one store to another. Blocking.

In Chroma a packed document is records: one head, and pieces that are named after what is in them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from services.documents.store import schema, writing
from services.documents.store.rows import Rows

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

PIECE_BYTES = 160_000  # of packed text in one record

VECTORS_A_PIECE = 64  # chunks whose vectors lie together

_NAME_CHARS = 32

Record = dict[str, Any]
"""The metadata of a record: plain values. Chroma adds what is written to what is there, so each has all its keys."""


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
        rows = Rows(held["chunks"], held["words"], held["lines"], held["line_words"])
        writing.insert_rows(connection, number, rows)
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


def head_of(packed: Packed, doc_id: str) -> tuple[Record, Mapping[str, Callable[[], str]]]:
    """The head of a document, and what is in each of its pieces, by the piece's name; packed only where it is asked."""
    held = packed.rows[doc_id]
    body = _json({key: held[key] for key in sorted(held.keys() - {"order", "documents"})}).encode()
    vectors = dict(_vector_pieces(packed.vectors.get(doc_id, {})))
    name = _named(body)
    count = len(body) // PIECE_BYTES + 1
    pieces: dict[str, Callable[[], str]] = {
        f"{name}.{at}": lambda at=at: _text(zlib.compress(body[at * PIECE_BYTES : (at + 1) * PIECE_BYTES]))
        for at in range(count)
    }
    pieces.update({_named(blob): lambda blob=blob: _text(blob) for blob in vectors.values()})
    head = {
        "kind": "document",
        "doc_id": doc_id,
        "gone": False,
        "order": held["order"],
        "row": _json(held["documents"]),
        "body": name,
        "count": count,
        "vectors": " ".join(_named(vectors[group]) for group in sorted(vectors)),
    }
    return head, pieces


def emptied(head: Record) -> Record:
    """The same, of no pieces."""
    return {**head, "body": "", "count": 0, "vectors": ""}


def piece_names(head: Record) -> list[str]:
    """Of the text, in order, then of the vectors."""
    return [*(f"{head['body']}.{at}" for at in range(head["count"])), *str(head["vectors"]).split()]


def joined(head: Record, pieces: Mapping[str, str]) -> tuple[Record, dict[int, bytes]]:
    """The rows and the vectors of a document. Raises KeyError: a piece is missing."""
    texts = [pieces[name] for name in piece_names(head)]
    body = b"".join(zlib.decompress(base64.b85decode(text)) for text in texts[: head["count"]])
    rows = {**json.loads(body), "order": head["order"], "documents": json.loads(head["row"])}
    vectors: dict[int, bytes] = {}
    for text in texts[head["count"] :]:
        vectors.update(_vectors_in(base64.b85decode(text)))
    return rows, vectors


def _vector_pieces(vectors: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """How many there are, their chunks' numbers, then the vectors."""
    groups: dict[int, list[int]] = {}
    for index in sorted(vectors):
        groups.setdefault(index // VECTORS_A_PIECE, []).append(index)
    for group, indices in groups.items():
        numbers = np.array([len(indices), *indices], dtype="<i4").tobytes()
        yield group, numbers + b"".join(vectors[index] for index in indices)


def _vectors_in(blob: bytes) -> Iterator[tuple[int, bytes]]:
    count = int(np.frombuffer(blob, "<i4", 1)[0])
    indices = np.frombuffer(blob, "<i4", count, 4)
    vectors = blob[4 * (count + 1) :]
    width = len(vectors) // count
    for at, index in enumerate(indices.tolist()):
        yield index, vectors[at * width : (at + 1) * width]


def _named(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_NAME_CHARS]


def _text(content: bytes) -> str:
    return base64.b85encode(content).decode()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
