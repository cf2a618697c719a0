"""The records of a collection in Chroma, and how a write to them happens at one moment. Blocking.

Each of our collections is one of Chroma's, `<name>.documents`. Its records are

- `version`: the collection's row, its version, and which write this is;
- one head a document: its row, and the names of its pieces;
- pieces: the packed text and lines of a document, or some of its vectors.

Chroma has no transactions, but takes the records of one request all or not at all. So a write first adds new pieces,
not read yet, then in one request the changed heads and the new version, and last deletes old pieces. A read takes heads
and version in one request, then pieces, and starts again if the version has changed since.

Everything is metadata of records with a constant vector. Chroma's index of texts takes seconds and several times the
space, and what its index of vectors has written to the server's disk stays there when the collection is deleted.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from services.documents.store import packing
from services.documents.store.packing import Packed, Record, emptied, head_of, joined, piece_names
from services.documents.store.protocol import StoreUnavailable

log = logging.getLogger(__name__)

T = TypeVar("T")

TAIL = ".documents"  # of the names of our collections in Chroma: others may lie beside them

AT_ONCE = 20  # pieces in one request

HEADS_AT_ONCE = 5000
"""Of the 5,461 records that a server takes. Where more change at once, they do so in steps, each a write of its own."""

TRIES = 5
ABANDONED_SECONDS = 3600.0
"""When a piece that belongs to no document is what a crash left, and nothing that is only just being written."""

_CONSTANT = [1.0]  # Chroma wants a vector for each record

_VERSION = "version"
_PIECE: Record = {"kind": "piece"}


class Overtaken(Exception):
    """Another process has written the collection, or deleted it, since it was read."""


@dataclass(frozen=True, slots=True)
class WriteMark:
    version: int
    write: str  # tells two writes apart that made the same version


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """What a collection consists of."""

    mark: WriteMark
    heads: Mapping[str, Record]


class ChromaRecords:
    """Each method raises what the client raises, besides what it names."""

    def __init__(self, connect: Callable[[], Any], disconnect: Callable[[Any], None]) -> None:
        self._connect = connect
        self._disconnect = disconnect
        self._client: Any = None
        self._guard = threading.Lock()
        self._shelves: dict[str, Any] = {}

    def names(self) -> list[str]:
        found = (str(each.name) for each in self._open().list_collections(limit=100_000))
        return sorted(name.removesuffix(TAIL) for name in found if name.endswith(TAIL))

    def mark(self, name: str) -> WriteMark | None:
        """None: there is no such collection."""
        return self._looked(name, _mark)

    def fetch(self, name: str, now: float) -> tuple[KeptRecords, Packed] | None:
        """All of a collection as it was at one moment; None: there is none. `now`: seconds since the epoch.
        Raises StoreUnavailable: it changed each time before it was read.
        """
        return self._looked(name, lambda shelf: _fetched(shelf, name, now))

    def store(self, name: str, base: KeptRecords | None, after: Packed, now: float) -> KeptRecords | None:
        """Make `after` what the collection consists of, where that still is `base`. `now`: as above.

        None: it is kept, beside what another process has written at the same moment; so it must be read anew.
        Raises Overtaken: nothing was kept.
        """
        try:
            return _stored(self._shelf(name, make=base is None), base, after, now)
        except Exception as error:
            if not _is_missing(error):
                raise
            self._shelves.pop(name, None)
            raise Overtaken from error

    def delete(self, name: str) -> bool:
        """False: it was not there."""
        self._shelves.pop(name, None)
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
            self._shelves.clear()
        if client is not None:
            self._disconnect(client)

    def _open(self) -> Any:
        with self._guard:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _shelf(self, name: str, *, make: bool = False) -> Any:
        found = self._shelves.get(name)
        if found is None or make:
            client = self._open()
            ask = client.get_or_create_collection if make else client.get_collection
            found = self._shelves[name] = ask(f"{name}{TAIL}", embedding_function=None)
        return found

    def _looked(self, name: str, look: Callable[[Any], T | None]) -> T | None:
        known = name in self._shelves
        try:
            return look(self._shelf(name))
        except Exception as error:
            if not _is_missing(error):
                raise
            self._shelves.pop(name, None)
        # Deleted since it was asked for last; perhaps another of its name has been made.
        return self._looked(name, look) if known else None


def _fetched(shelf: Any, name: str, now: float) -> tuple[KeptRecords, Packed] | None:
    for _ in range(TRIES):
        version, heads, gone = _found(shelf)
        if version is None:
            return None
        mark = _mark_of(version)
        ids = (f"{doc_id}:{piece}" for doc_id, head in heads.items() for piece in piece_names(head))
        texts: dict[str, dict[str, str]] = {}
        for some in _batches(ids):
            for record in shelf.get(ids=some, include=["metadatas"])["metadatas"]:
                texts.setdefault(record["doc_id"], {})[record["name"]] = record["data"]
        if _mark(shelf) == mark:
            if gone:  # A crash, or a connection that broke, has left them.
                _drop_documents(shelf, heads, gone, now)
            packed = _packed(name, version, heads, texts)
            # A document that has lost a part is rewritten with the next write, or else deleted.
            whole = {doc_id: head if doc_id in packed.rows else emptied(head) for doc_id, head in heads.items()}
            return KeptRecords(mark, whole), packed
    raise StoreUnavailable(f"{name} changes while it is read")


def _packed(name: str, version: Record, heads: Mapping[str, Record], texts: Mapping[str, Mapping[str, str]]) -> Packed:
    rows: dict[str, Record] = {}
    vectors: dict[str, Mapping[int, bytes]] = {}
    for doc_id, head in heads.items():
        try:
            rows[doc_id], vectors[doc_id] = joined(head, texts.get(doc_id, {}))
        except KeyError:
            log.warning("%s: a document in Chroma has lost a part and is left out; post it again", name)
    return Packed(json.loads(version["collection"]), version["version"], packing.side_by_side(rows), vectors)


def _stored(shelf: Any, base: KeptRecords | None, after: Packed, now: float) -> KeptRecords | None:
    known: Mapping[str, Record] = {} if base is None else base.heads
    heads: dict[str, Record] = {}
    for doc_id in after.rows:
        head, pieces = head_of(after, doc_id)
        old = known.get(doc_id)
        # Each reader decides which of two came first: the order alone is no reason to write a document.
        heads[doc_id] = old if old is not None and head | {"order": old["order"]} == old else head
        for some in _batches(pieces.keys() - set(_names_in(old))):
            records = {
                f"{doc_id}:{name}": _PIECE | {"doc_id": doc_id, "name": name, "written": now, "data": pieces[name]()}
                for name in some
            }
            _upsert(shelf, records)
    if _mark(shelf) != (None if base is None else base.mark):
        raise Overtaken
    changed = {doc_id: head for doc_id, head in heads.items() if head != known.get(doc_id)}
    gone = {doc_id: known[doc_id] | {"gone": True, "row": ""} for doc_id in known.keys() - heads.keys()}
    mark = None
    for some in list(_batches(changed | gone, HEADS_AT_ONCE)) or [[]]:
        mark = WriteMark(after.version, secrets.token_hex(8))
        written = {f"{doc_id}:head": (changed | gone)[doc_id] for doc_id in some}
        _upsert(shelf, _version_record(mark, after.collection) | written)
    version, found, left = _found(shelf)
    for doc_id in changed.keys() & found.keys():
        _drop_pieces(shelf, doc_id, found[doc_id], known.get(doc_id), now)
    _drop_documents(shelf, found, left, now)
    if mark is not None and version is not None and _mark_of(version) == mark and found == heads:
        return KeptRecords(mark, heads)
    # Two wrote at once. Each sees both now; a higher version makes all look again.
    _upsert(shelf, _version_record(WriteMark(after.version + 1, secrets.token_hex(8)), after.collection))
    return None


def _drop_pieces(shelf: Any, doc_id: str, head: Record, old: Record | None, now: float) -> None:
    """Delete the pieces that a document no longer has, and what a write that was cut off has left of it.

    Newer ones that are not in `head` may be another process's, which is about to write its own.
    """
    live = _names_in(head)
    dropped = sorted(set(_names_in(old)).difference(live))
    if dropped:
        shelf.delete(where={"$and": [_PIECE, {"doc_id": doc_id}, {"name": {"$in": dropped}}]})
    shelf.delete(where={"$and": [_PIECE, {"doc_id": doc_id}, {"name": {"$nin": live}}, _abandoned(now)]})


def _drop_documents(shelf: Any, heads: Mapping[str, Record], gone: Collection[str], now: float) -> None:
    """Documents that are deleted, and those of which nothing but pieces was ever written."""
    if gone:
        shelf.delete(where={"$and": [_PIECE, {"doc_id": {"$in": sorted(gone)}}]})
        shelf.delete(where={"gone": True})
    unclaimed: list[Record] = [{"doc_id": {"$nin": sorted(heads)}}] if heads else []
    shelf.delete(where={"$and": [_PIECE, _abandoned(now), *unclaimed]})


def _abandoned(now: float) -> Record:
    return {"written": {"$lt": now - ABANDONED_SECONDS}}


def _names_in(head: Record | None) -> list[str]:
    return [] if head is None else piece_names(head)


def _found(shelf: Any) -> tuple[Record | None, dict[str, Record], set[str]]:
    """The record of the version, the heads of documents, and which documents have been deleted."""
    found: list[Record] = shelf.get(where={"kind": {"$in": ["version", "document"]}}, include=["metadatas"])[
        "metadatas"
    ]
    version = next((record for record in found if record["kind"] == "version"), None)
    documents = [record for record in found if record["kind"] == "document"]
    heads = {str(record["doc_id"]): record for record in documents if not record["gone"]}
    return version, heads, {str(record["doc_id"]) for record in documents if record["gone"]}


def _mark(shelf: Any) -> WriteMark | None:
    found: list[Record] = shelf.get(ids=[_VERSION], include=["metadatas"])["metadatas"]
    return _mark_of(found[0]) if found else None


def _mark_of(version: Record) -> WriteMark:
    return WriteMark(version["version"], version["write"])


def _version_record(mark: WriteMark, collection: list[Any]) -> dict[str, Record]:
    row = [*collection[: packing.VERSION_AT], mark.version, *collection[packing.VERSION_AT + 1 :]]
    text = json.dumps(row, ensure_ascii=False)
    return {_VERSION: {"kind": "version", "version": mark.version, "write": mark.write, "collection": text}}


def _upsert(shelf: Any, records: Mapping[str, Record]) -> None:
    shelf.upsert(ids=list(records), metadatas=list(records.values()), embeddings=[_CONSTANT] * len(records))


def _batches(items: Iterable[str], size: int = AT_ONCE) -> Iterator[list[str]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def _is_missing(error: Exception) -> bool:
    """The client's own errors are there only with the client."""
    return type(error).__name__ == "NotFoundError"
