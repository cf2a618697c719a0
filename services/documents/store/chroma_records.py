"""Collections as records of a Chroma server: what the records hold, and how they are read and written."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import secrets
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Collection as SizedIterable
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any, TypeVar

import numpy as np

from services.documents.store import schema, writing
from services.documents.store.protocol import Rows, StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

# What the records hold

_CHUNK_COLUMNS = (
    "chunk_index, text, line_start, line_end, ts_min, ts_max, severities, chunk_type, section_path, key_path, symbol, "
    "shown_by, components, pattern_lines, extra, n_tokens, embedded"
)
_LINE_COLUMNS = "line_no, text, text_offset, ts, ts_utc, day, clock, severity, component"
_TABLES = (("chunks", _CHUNK_COLUMNS, "chunk_no"), ("lines", _LINE_COLUMNS, "line_row"))
"""A table, its columns without the document's number, and the column by which its rows are in order."""
_WORDS = (("words", "chunks", "chunk_no"), ("line_words", "lines", "line_row"))
"""An index of words, the table that it is of, and the key of both."""

_VERSION_AT = 5  # the column of the version in `collections`

PIECE_BYTES = 160_000  # of a document's JSON in one record, before compression
VECTORS_A_PIECE = 64  # chunks whose vectors lie together
_NAME_CHARS = 32

Record = dict[str, Any]
"""The metadata of a record: plain values. Chroma merges old and new metadata, so each record has all its keys."""


@dataclass(frozen=True, slots=True)
class PackedDocument:
    """A document as plain values.

    Attributes:
        order: its number, by which the documents of a collection are in order.
        row: its row in `documents`, without the number.
        tables: its rows in the other tables, and its words in the indexes, by their names.
        vectors: by chunk index.
    """

    order: int
    row: list[Any]
    tables: Mapping[str, list[Any]]
    vectors: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class PackedCollection:
    """A collection as plain values.

    Attributes:
        row: its row in `collections`: name, kind, scope, guild, when made, version, state.
        documents: by their ids.
    """

    row: list[Any]
    documents: Mapping[str, PackedDocument]

    @property
    def version(self) -> int:
        return int(self.row[_VERSION_AT])


def read_collection(connection: sqlite3.Connection) -> PackedCollection:
    """Read a collection from its file."""
    documents: dict[str, PackedDocument] = {}
    rows = connection.execute(f"SELECT doc_no, collection, {schema.DOCUMENT_COLUMNS} FROM documents ORDER BY doc_no")
    for number, *row in rows.fetchall():
        tables: dict[str, list[Any]] = {}
        for table, columns, order in _TABLES:
            query = f"SELECT {columns} FROM {table} WHERE doc_no = ? ORDER BY {order}"
            tables[table] = [list(each) for each in connection.execute(query, (number,))]
        for words, table, key in _WORDS:
            source = f"{words} w JOIN {table} t ON t.{key} = w.rowid"
            query = f"SELECT w.tokens FROM {source} WHERE t.doc_no = ? ORDER BY t.{key}"
            tables[words] = [tokens for (tokens,) in connection.execute(query, (number,))]
        query = "SELECT chunk_index, embedding FROM chunks WHERE doc_no = ? AND embedding IS NOT NULL"
        vectors = dict(connection.execute(query, (number,)).fetchall())
        documents[str(row[1])] = PackedDocument(number, row, tables, vectors)
    return PackedCollection(list(connection.execute("SELECT * FROM collections").fetchone()), documents)


def write_collection(connection: sqlite3.Connection, packed: PackedCollection) -> None:
    """Write a packed collection into a file without tables, inside the caller's transaction."""
    writing.create_tables(connection)
    connection.execute(f"INSERT INTO collections VALUES ({schema.placeholders(len(packed.row))})", packed.row)
    for document in sorted(packed.documents.values(), key=lambda each: each.order):
        row = [document.order, *document.row]
        values = schema.placeholders(len(row))
        connection.execute(
            f"INSERT INTO documents (doc_no, collection, {schema.DOCUMENT_COLUMNS}) VALUES ({values})", row
        )
        tables = document.tables
        rows = Rows(tables["chunks"], tables["words"], tables["lines"], tables["line_words"])
        writing.insert_rows(connection, document.order, rows)
        connection.executemany(
            "UPDATE chunks SET embedding = ? WHERE doc_no = ? AND chunk_index = ?",
            [(vector, document.order, index) for index, vector in document.vectors.items()],
        )


def merge_documents(documents: Mapping[str, PackedDocument]) -> dict[str, PackedDocument]:
    """Number documents that several processes added at the same time, and drop those that are there twice."""
    merged: dict[str, PackedDocument] = {}
    seen: set[tuple[str, str | None]] = set()
    last = 0
    for doc_id, document in sorted(documents.items(), key=lambda item: (item[1].order, item[0])):
        _, _, filename, sha256, *_ = document.row
        if sha256 is None or (filename, sha256) not in seen:
            seen.add((filename, sha256))
            last = max(document.order, last + 1)
            merged[doc_id] = replace(document, order=last)
    return merged


def _head_of(doc_id: str, document: PackedDocument) -> tuple[Record, Mapping[str, Callable[[], str]]]:
    """Return the head record of a document, and for each of its pieces a function that packs it when it is needed."""
    body = _json(dict(sorted(document.tables.items()))).encode()
    vectors = {_hash_name(blob): blob for blob in _vector_pieces(document.vectors)}
    name = _hash_name(body)
    count = len(body) // PIECE_BYTES + 1
    pieces: dict[str, Callable[[], str]] = {
        f"{name}.{at}": lambda at=at: _base85(zlib.compress(body[at * PIECE_BYTES : (at + 1) * PIECE_BYTES]))
        for at in range(count)
    }
    pieces.update({name: lambda blob=blob: _base85(blob) for name, blob in vectors.items()})
    head = {
        "kind": "document",
        "doc_id": doc_id,
        "gone": False,
        "order": document.order,
        "row": _json([document.row]),
        "body": name,
        "count": count,
        "vectors": " ".join(vectors),
    }
    return head, pieces


def _without_pieces(head: Record) -> Record:
    """Return the same head, without pieces."""
    return {**head, "body": "", "count": 0, "vectors": ""}


def _piece_names(head: Record | None) -> list[str]:
    """Return the names of a document's pieces: those of the text in order, then those of vectors."""
    if head is None:
        return []
    return [*(f"{head['body']}.{at}" for at in range(head["count"])), *str(head["vectors"]).split()]


def _read_pieces(head: Record, pieces: Mapping[str, str]) -> PackedDocument:
    """Return a document from its head and its pieces. Raises KeyError: a piece is missing."""
    texts = [pieces[name] for name in _piece_names(head)]
    body = b"".join(zlib.decompress(base64.b85decode(text)) for text in texts[: head["count"]])
    (row,) = json.loads(head["row"])
    vectors: dict[int, bytes] = {}
    for text in texts[head["count"] :]:
        vectors.update(_vectors_in(base64.b85decode(text)))
    return PackedDocument(head["order"], row, json.loads(body), vectors)


def _vector_pieces(vectors: Mapping[int, bytes]) -> Iterator[bytes]:
    """Yield groups of vectors as bytes: their number, the indices of their chunks, then the vectors."""
    for _, group in groupby(sorted(vectors), lambda index: index // VECTORS_A_PIECE):
        indices = list(group)
        numbers = np.array([len(indices), *indices], dtype="<i4").tobytes()
        yield numbers + b"".join(vectors[index] for index in indices)


def _vectors_in(blob: bytes) -> Iterator[tuple[int, bytes]]:
    count = int(np.frombuffer(blob, "<i4", 1)[0])
    indices = np.frombuffer(blob, "<i4", count, 4)
    vectors = blob[4 * (count + 1) :]
    width = len(vectors) // count
    for at, index in enumerate(indices.tolist()):
        yield index, vectors[at * width : (at + 1) * width]


def _hash_name(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_NAME_CHARS]


def _base85(content: bytes) -> str:
    return base64.b85encode(content).decode()


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


# Reading and writing

TAIL = ".documents"  # of the names of our collections in Chroma: others may lie beside them

AT_ONCE = 20  # pieces in one request

HEADS_AT_ONCE = 5000
"""A server takes 5,461 records in one write. More changes are written in steps."""

TRIES = 5
ABANDONED_SECONDS = 3600.0
"""An older piece without a document was left by a crash; a newer one may be of a write in progress."""

_CONSTANT = [1.0]  # Chroma wants a vector for each record

_VERSION = "version"
_PIECE: Record = {"kind": "piece"}


class Overtaken(Exception):
    """Another process has written or deleted the collection since it was read."""


@dataclass(frozen=True, slots=True)
class WriteMark:
    version: int
    write: str  # tells two writes apart that made the same version


@dataclass(frozen=True, slots=True)
class RemoteState:
    """The state of a collection in Chroma: its version, and the head record of each document."""

    mark: WriteMark
    heads: Mapping[str, Record]


class ChromaRecords:
    """The records of our collections on the server. Blocking; each method raises what the client raises, besides what
    it names.

    Each of our collections is one of Chroma's, `<name>.documents`. Its records are

    - `version`: the collection's row, its version, and which write this is;
    - one head a document: its row, and the names of its pieces;
    - pieces: the packed text and lines of a document, or some of its vectors.

    Chroma has no transactions, but takes the records of one request all or not at all. So a write first adds new
    pieces, not read yet, then in one request the changed heads and the new version, and last deletes old pieces. A read
    takes heads and version in one request, then pieces, and starts again if the version has changed since.

    Everything is metadata of records with a constant vector. Chroma's index of texts takes seconds and several times
    the space, and what its index of vectors has written to the server's disk stays there when the collection is
    deleted.
    """

    def __init__(self, connect: Callable[[], Any], disconnect: Callable[[Any], None]) -> None:
        self._connect = connect
        self._disconnect = disconnect
        self._client: Any = None
        self._guard = threading.Lock()
        self._remotes: dict[str, Any] = {}  # Chroma's collections, by the names of ours

    def names(self) -> list[str]:
        found = (str(each.name) for each in self._open().list_collections(limit=100_000))
        return sorted(name.removesuffix(TAIL) for name in found if name.endswith(TAIL))

    def mark(self, name: str) -> WriteMark | None:
        """Return the version mark of a collection; None: there is no such collection."""
        return self._read(name, _mark)

    def fetch(self, name: str, now: float) -> tuple[RemoteState, PackedCollection] | None:
        """Return all of a collection as it was at one moment; None: there is none. `now`: seconds since 1970.
        Raises StoreUnavailable: it changed at each try before it was read.
        """
        return self._read(name, lambda remote: _fetch_all(remote, name, now))

    def store(self, name: str, base: RemoteState | None, after: PackedCollection, now: float) -> RemoteState | None:
        """Write `after` if the collection still is as in `base`. `now`: as above.

        Returns None if it was written together with another process's write, so that the collection must be read anew.
        Raises Overtaken: nothing was written.
        """
        try:
            return _store_changes(self._remote(name, make=base is None), base, after, now)
        except Exception as error:
            if not _is_missing(error):
                raise
            self._remotes.pop(name, None)
            raise Overtaken from error

    def delete(self, name: str) -> bool:
        """Delete a collection. False: it was not there."""
        self._remotes.pop(name, None)
        try:
            self._open().delete_collection(f"{name}{TAIL}")
        except Exception as error:
            if not _is_missing(error):
                raise
            return False
        return True

    def close(self) -> None:
        with self._guard:
            client, self._client = self._client, None
            self._remotes.clear()
        if client is not None:
            self._disconnect(client)

    def _open(self) -> Any:
        with self._guard:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _remote(self, name: str, *, make: bool = False) -> Any:
        found = self._remotes.get(name)
        if found is None or make:
            client = self._open()
            ask = client.get_or_create_collection if make else client.get_collection
            found = self._remotes[name] = ask(f"{name}{TAIL}", embedding_function=None)
        return found

    def _read(self, name: str, work: Callable[[Any], T | None]) -> T | None:
        """Return the result of `work` with Chroma's collection; None: there is none."""
        known = name in self._remotes
        try:
            return work(self._remote(name))
        except Exception as error:
            if not _is_missing(error):
                raise
            self._remotes.pop(name, None)
        # Deleted since it was asked for last; perhaps another of its name has been made.
        return self._read(name, work) if known else None


def _fetch_all(remote: Any, name: str, now: float) -> tuple[RemoteState, PackedCollection] | None:
    for _ in range(TRIES):
        version, heads, gone = _read_heads(remote)
        if version is None:
            return None
        mark = _mark_of(version)
        ids = (f"{doc_id}:{piece}" for doc_id, head in heads.items() for piece in _piece_names(head))
        texts: dict[str, dict[str, str]] = {}
        for some in _batches(ids):
            for record in remote.get(ids=some, include=["metadatas"])["metadatas"]:
                texts.setdefault(record["doc_id"], {})[record["name"]] = record["data"]
        if _mark(remote) == mark:
            if gone:  # A crash, or a connection that broke, has left them.
                _drop_documents(remote, heads, gone, now)
            found = _read_documents(name, heads, texts)
            # Not in `found`: it has lost a part, or is there twice. The next write deletes it, or writes all its pieces
            # if it was posted again meanwhile.
            whole = {doc_id: head if doc_id in found else _without_pieces(head) for doc_id, head in heads.items()}
            return RemoteState(mark, whole), PackedCollection(json.loads(version["collection"]), found)
    raise StoreUnavailable(f"{name} changes while it is read")


def _read_documents(
    name: str, heads: Mapping[str, Record], texts: Mapping[str, Mapping[str, str]]
) -> dict[str, PackedDocument]:
    documents: dict[str, PackedDocument] = {}
    for doc_id, head in heads.items():
        try:
            documents[doc_id] = _read_pieces(head, texts.get(doc_id, {}))
        except KeyError:
            log.warning("%s: a document in Chroma has lost a part and is left out; post it again", name)
    return merge_documents(documents)


def _store_changes(remote: Any, base: RemoteState | None, after: PackedCollection, now: float) -> RemoteState | None:
    known: Mapping[str, Record] = {} if base is None else base.heads
    heads = {
        doc_id: _add_pieces(remote, doc_id, document, known.get(doc_id), now)
        for doc_id, document in after.documents.items()
    }
    if _mark(remote) != (None if base is None else base.mark):
        raise Overtaken
    changed = {doc_id: head for doc_id, head in heads.items() if head != known.get(doc_id)}
    gone = {doc_id: known[doc_id] | {"gone": True, "row": ""} for doc_id in known.keys() - heads.keys()}
    written = changed | gone
    marks = [
        _write_version(remote, after, after.version, {doc_id: written[doc_id] for doc_id in some})
        for some in [*_batches(written, HEADS_AT_ONCE)] or [[]]
    ]
    version, found, left = _read_heads(remote)
    for doc_id in changed.keys() & found.keys():
        _drop_pieces(remote, doc_id, found[doc_id], known.get(doc_id), now)
    _drop_documents(remote, found, left, now)
    if version is not None and _mark_of(version) == marks[-1] and found == heads:
        return RemoteState(marks[-1], heads)
    # Two wrote at once. Each sees both now; a higher version makes all look again.
    _write_version(remote, after, after.version + 1, {})
    return None


def _add_pieces(remote: Any, doc_id: str, document: PackedDocument, old: Record | None, now: float) -> Record:
    """Write those pieces of a document that are not in its `old` head. Returns the new head, which is not written."""
    head, pieces = _head_of(doc_id, document)
    for some in _batches(pieces.keys() - set(_piece_names(old))):
        records = {
            f"{doc_id}:{name}": _PIECE | {"doc_id": doc_id, "name": name, "written": now, "data": pieces[name]()}
            for name in some
        }
        _upsert(remote, records)
    # Each reader decides which of two came first: the order alone is no reason to write a document.
    return old if old is not None and head | {"order": old["order"]} == old else head


def _drop_pieces(remote: Any, doc_id: str, head: Record, old: Record | None, now: float) -> None:
    """Delete the pieces that a document no longer has, and those that an aborted write has left of it.

    Newer pieces that are not in `head` may be another process's, which is about to write its head.
    """
    live = _piece_names(head)
    dropped = sorted(set(_piece_names(old)).difference(live))
    if dropped:
        remote.delete(where={"$and": [_PIECE, {"doc_id": doc_id}, {"name": {"$in": dropped}}]})
    remote.delete(where={"$and": [_PIECE, {"doc_id": doc_id}, {"name": {"$nin": live}}, _abandoned(now)]})


def _drop_documents(remote: Any, heads: Mapping[str, Record], gone: SizedIterable[str], now: float) -> None:
    """Delete the records of deleted documents, and pieces of documents that never got a head."""
    if gone:
        remote.delete(where={"$and": [_PIECE, {"doc_id": {"$in": sorted(gone)}}]})
        remote.delete(where={"gone": True})
    unclaimed: list[Record] = [{"doc_id": {"$nin": sorted(heads)}}] if heads else []
    remote.delete(where={"$and": [_PIECE, _abandoned(now), *unclaimed]})


def _abandoned(now: float) -> Record:
    return {"written": {"$lt": now - ABANDONED_SECONDS}}


def _read_heads(remote: Any) -> tuple[Record | None, dict[str, Record], set[str]]:
    """Return the version record, the heads of documents, and the ids of deleted documents."""
    found: list[Record] = remote.get(where={"kind": {"$in": ["version", "document"]}}, include=["metadatas"])[
        "metadatas"
    ]
    version = next((record for record in found if record["kind"] == "version"), None)
    documents = [record for record in found if record["kind"] == "document"]
    heads = {str(record["doc_id"]): record for record in documents if not record["gone"]}
    return version, heads, {str(record["doc_id"]) for record in documents if record["gone"]}


def _mark(remote: Any) -> WriteMark | None:
    found: list[Record] = remote.get(ids=[_VERSION], include=["metadatas"])["metadatas"]
    return _mark_of(found[0]) if found else None


def _mark_of(version: Record) -> WriteMark:
    return WriteMark(version["version"], version["write"])


def _write_version(remote: Any, collection: PackedCollection, version: int, heads: Mapping[str, Record]) -> WriteMark:
    """Write heads together with a version in one request. Returns the mark of this write."""
    mark = WriteMark(version, secrets.token_hex(8))
    text = _json([*collection.row[:_VERSION_AT], version, *collection.row[_VERSION_AT + 1 :]])
    record = {"kind": "version", "version": version, "write": mark.write, "collection": text}
    _upsert(remote, {_VERSION: record} | {f"{doc_id}:head": head for doc_id, head in heads.items()})
    return mark


def _upsert(remote: Any, records: Mapping[str, Record]) -> None:
    remote.upsert(ids=list(records), metadatas=list(records.values()), embeddings=[_CONSTANT] * len(records))


def _batches(items: Iterable[str], size: int = AT_ONCE) -> Iterator[list[str]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def _is_missing(error: Exception) -> bool:
    """Return True if the collection does not exist. The client's error classes cannot be imported without it."""
    return type(error).__name__ == "NotFoundError"
