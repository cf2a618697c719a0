"""The same store over a server of Chroma, which is spoken to in its own records."""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import json
import logging
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Collection as SizedIterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import clock
from services.documents.store import protocol, writing
from services.documents.store.collection_files import Folders, OpenFile, SqliteCollections, summary
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Collection, CollectionSummary, StoreUnavailable
from services.documents.store.writing import Packed, Record, head_of, piece_names, read_pieces, without_pieces
from services.storage import in_thread
from services.telemetry import connection_problem

log = logging.getLogger(__name__)

T = TypeVar("T")


# Records on the server

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
class KeptRecords:
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
        self._shelves: dict[str, Any] = {}

    def names(self) -> list[str]:
        found = (str(each.name) for each in self._open().list_collections(limit=100_000))
        return sorted(name.removesuffix(TAIL) for name in found if name.endswith(TAIL))

    def mark(self, name: str) -> WriteMark | None:
        """Return the version mark of a collection; None: there is no such collection."""
        return self._on_shelf(name, _mark)

    def fetch(self, name: str, now: float) -> tuple[KeptRecords, Packed] | None:
        """Return all of a collection as it was at one moment; None: there is none. `now`: seconds since the epoch.
        Raises StoreUnavailable: it changed at each try before it was read.
        """
        return self._on_shelf(name, lambda shelf: _fetch_all(shelf, name, now))

    def store(self, name: str, base: KeptRecords | None, after: Packed, now: float) -> KeptRecords | None:
        """Write `after` if the collection still is as in `base`. `now`: as above.

        Returns None if it was written together with another process's write, so that the collection must be read anew.
        Raises Overtaken: nothing was written.
        """
        try:
            return _store_changes(self._shelf(name, make=base is None), base, after, now)
        except Exception as error:
            if not _is_missing(error):
                raise
            self._shelves.pop(name, None)
            raise Overtaken from error

    def delete(self, name: str) -> bool:
        """Delete a collection. False: it was not there."""
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

    def _on_shelf(self, name: str, look: Callable[[Any], T | None]) -> T | None:
        known = name in self._shelves
        try:
            return look(self._shelf(name))
        except Exception as error:
            if not _is_missing(error):
                raise
            self._shelves.pop(name, None)
        # Deleted since it was asked for last; perhaps another of its name has been made.
        return self._on_shelf(name, look) if known else None


def _fetch_all(shelf: Any, name: str, now: float) -> tuple[KeptRecords, Packed] | None:
    for _ in range(TRIES):
        version, heads, gone = _read_heads(shelf)
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
            packed = _pack_records(name, version, heads, texts)
            # A document that has lost a part is rewritten with the next write, or else deleted.
            whole = {doc_id: head if doc_id in packed.rows else without_pieces(head) for doc_id, head in heads.items()}
            return KeptRecords(mark, whole), packed
    raise StoreUnavailable(f"{name} changes while it is read")


def _pack_records(
    name: str, version: Record, heads: Mapping[str, Record], texts: Mapping[str, Mapping[str, str]]
) -> Packed:
    rows: dict[str, Record] = {}
    vectors: dict[str, Mapping[int, bytes]] = {}
    for doc_id, head in heads.items():
        try:
            rows[doc_id], vectors[doc_id] = read_pieces(head, texts.get(doc_id, {}))
        except KeyError:
            log.warning("%s: a document in Chroma has lost a part and is left out; post it again", name)
    return Packed(json.loads(version["collection"]), version["version"], writing.merge_rows(rows), vectors)


def _store_changes(shelf: Any, base: KeptRecords | None, after: Packed, now: float) -> KeptRecords | None:
    known: Mapping[str, Record] = {} if base is None else base.heads
    heads: dict[str, Record] = {}
    for doc_id in after.rows:
        head, pieces = head_of(after, doc_id)
        old = known.get(doc_id)
        # Each reader decides which of two came first: the order alone is no reason to write a document.
        heads[doc_id] = old if old is not None and head | {"order": old["order"]} == old else head
        for some in _batches(pieces.keys() - set(_piece_names_of(old))):
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
    version, found, left = _read_heads(shelf)
    for doc_id in changed.keys() & found.keys():
        _drop_pieces(shelf, doc_id, found[doc_id], known.get(doc_id), now)
    _drop_documents(shelf, found, left, now)
    if mark is not None and version is not None and _mark_of(version) == mark and found == heads:
        return KeptRecords(mark, heads)
    # Two wrote at once. Each sees both now; a higher version makes all look again.
    _upsert(shelf, _version_record(WriteMark(after.version + 1, secrets.token_hex(8)), after.collection))
    return None


def _drop_pieces(shelf: Any, doc_id: str, head: Record, old: Record | None, now: float) -> None:
    """Delete the pieces that a document no longer has, and those that an aborted write has left of it.

    Newer pieces that are not in `head` may be another process's, which is about to write its head.
    """
    live = _piece_names_of(head)
    dropped = sorted(set(_piece_names_of(old)).difference(live))
    if dropped:
        shelf.delete(where={"$and": [_PIECE, {"doc_id": doc_id}, {"name": {"$in": dropped}}]})
    shelf.delete(where={"$and": [_PIECE, {"doc_id": doc_id}, {"name": {"$nin": live}}, _abandoned(now)]})


def _drop_documents(shelf: Any, heads: Mapping[str, Record], gone: SizedIterable[str], now: float) -> None:
    """Delete the records of deleted documents, and pieces of documents that never got a head."""
    if gone:
        shelf.delete(where={"$and": [_PIECE, {"doc_id": {"$in": sorted(gone)}}]})
        shelf.delete(where={"gone": True})
    unclaimed: list[Record] = [{"doc_id": {"$nin": sorted(heads)}}] if heads else []
    shelf.delete(where={"$and": [_PIECE, _abandoned(now), *unclaimed]})


def _abandoned(now: float) -> Record:
    return {"written": {"$lt": now - ABANDONED_SECONDS}}


def _piece_names_of(head: Record | None) -> list[str]:
    return [] if head is None else piece_names(head)


def _read_heads(shelf: Any) -> tuple[Record | None, dict[str, Record], set[str]]:
    """Return the version record, the heads of documents, and the ids of deleted documents."""
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
    row = [*collection[: writing.VERSION_AT], mark.version, *collection[writing.VERSION_AT + 1 :]]
    text = json.dumps(row, ensure_ascii=False)
    return {_VERSION: {"kind": "version", "version": mark.version, "write": mark.write, "collection": text}}


def _upsert(shelf: Any, records: Mapping[str, Record]) -> None:
    shelf.upsert(ids=list(records), metadatas=list(records.values()), embeddings=[_CONSTANT] * len(records))


def _batches(items: Iterable[str], size: int = AT_ONCE) -> Iterator[list[str]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some


def _is_missing(error: Exception) -> bool:
    """Return True if the collection does not exist. The client's error classes cannot be imported without it."""
    return type(error).__name__ == "NotFoundError"


# The store, and its connection

CHECK = "`python app.py --check` says what is missing"


PROBE_SECONDS = 5.0
MISSING = "needs the extra `chroma`: make extra-chroma"

REQUEST_SECONDS = 10.0  # without a limit, each request to a server that hangs would block a thread for ever


def chroma_store(address: str, folder: Path) -> DocumentStore:
    """Return a store over the Chroma server at `address` (`http://host:port`), with copies in `folder`, which is this
    process's alone and may be deleted between runs.
    """
    return DocumentStore(ChromaCollections(address, folder))


class ChromaCollections:
    """`Collections` that are kept in Chroma and are searched in local copies.

    Each process has a copy of what it reads in files, and compares its version with Chroma's before each read. So the
    same code searches, and the same question gives the same answer, with Chroma and without. A write goes to Chroma
    last: what is not there has not happened.
    """

    def __init__(
        self,
        address: str,
        folder: Path,
        *,
        request_seconds: float = REQUEST_SECONDS,
        connect: Callable[[str], Any] | None = None,
    ) -> None:
        """`address`: `http://host:port`. `folder`: for copies, of this process alone; may be deleted between runs.

        `connect`: makes another client than Chroma's own, for tests.
        """
        self._address = address
        self._copies = SqliteCollections(Folders(folder, folder))
        self._held: dict[str, KeptRecords] = {}  # the records that each up-to-date copy was made from
        self._locks: dict[str, asyncio.Lock] = {}
        self._records = (
            ChromaRecords(lambda: open_client(address, request_seconds), close_client)
            if connect is None
            else ChromaRecords(lambda: connect(address), lambda _: None)
        )

    async def read(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        async with self._lock(name):
            await self._update_copy(name)
            return await self._copies.read(name, work, nothing)

    async def change(
        self,
        name: str,
        work: Callable[[sqlite3.Connection], T],
        create: Collection | None = None,
        *,
        erase: bool = False,
        soon: bool = False,  # noqa: ARG002 (Chroma has everything at once)
    ) -> T | None:
        """Write to the copy, then send what changed to Chroma. Tried again if another process wrote first."""
        async with self._lock(name):
            for _ in range(TRIES):
                base = await self._update_copy(name)
                # A failure or cancellation from here on leaves a copy ahead of Chroma: it must not be used.
                self._held.pop(name, None)
                result = await self._copies.change(name, work, create, erase=erase)
                after = await self._copies.read(name, lambda file: writing.pack(file.connection), None)
                kept = base
                if after is not None and (base is None or after.version != base.mark.version):
                    try:
                        kept = await self._ask(self._records.store, name, base, after, clock.now())
                    except Overtaken:
                        continue
                if kept is not None:
                    self._held[name] = kept
                return result
            raise StoreUnavailable(f"{name} is written by other processes all the time")

    async def describe(self, name: str) -> CollectionSummary | None:
        return await self.read(name, summary, None)

    async def delete(self, name: str) -> bool:
        async with self._lock(name):
            there = await self._ask(self._records.delete, name)
            self._held.pop(name, None)
            await self._copies.delete(name)
            return there

    async def names(self, prefix: str = "") -> list[str]:
        names = await self._ask(self._records.names)
        # Those deleted by other processes, or while this one was not running, go here as well.
        for name in set(await self._copies.names()).difference(names):
            async with self._lock(name):
                await self._update_copy(name)
        return [name for name in names if name.startswith(prefix)]

    async def close(self) -> None:
        """Close, and delete all copies."""
        for name in await self._copies.names():
            await self._copies.delete(name)
        self._held.clear()
        await self._copies.close()
        await in_thread(self._records.close)

    async def _update_copy(self, name: str) -> KeptRecords | None:
        """Update the copy with what other processes have written. None: there is no such collection."""
        mark = await self._ask(self._records.mark, name)
        held = self._held.get(name)
        if held is not None and held.mark == mark:
            return held
        self._held.pop(name, None)
        fetched = None if mark is None else await self._ask(self._records.fetch, name, clock.now())
        await self._copies.delete(name)
        if fetched is None:
            return None
        kept, packed = fetched
        await self._copies.make(name, lambda connection: writing.unpack(connection, packed))
        self._held[name] = kept
        return kept

    async def _ask(self, call: Callable[..., T], *args: object) -> T:
        try:
            return await in_thread(call, *args)
        except (StoreUnavailable, Overtaken):
            raise
        except Exception as error:
            # Its client raises many kinds of errors.
            raise StoreUnavailable(
                f"Chroma at {self._address} cannot be used ({type(error).__name__}); {CHECK}"
            ) from error

    def _lock(self, name: str) -> asyncio.Lock:
        protocol.check_name(name)
        return self._locks.setdefault(name, asyncio.Lock())


def open_client(address: str, seconds: float) -> Any:
    """Return a client of the server at `address` (`http://host:port`). Blocking.

    Raises what the client, sockets and `http.client` raise if there is no server, or it does not answer.
    """
    chromadb = cast("Any", importlib.import_module("chromadb"))
    config = cast("Any", importlib.import_module("chromadb.config"))
    parts = urlsplit(address)
    host, port, safe = parts.hostname or "127.0.0.1", parts.port or 8000, parts.scheme == "https"
    _wait_for_heartbeat(host, port, seconds, safe=safe)
    client = chromadb.HttpClient(host=host, port=port, ssl=safe, settings=config.Settings(anonymized_telemetry=False))
    for session in _sessions(client):
        session.timeout = seconds
    return client


def close_client(client: Any) -> None:
    """Close a client. Its own `close` leaves the sockets open."""
    client.close()
    for session in _sessions(client):
        session.close()


def _wait_for_heartbeat(host: str, port: int, seconds: float, *, safe: bool) -> None:
    """Wait until the server answers: the client asks it for several things before its time limit can be set."""
    kind = http.client.HTTPSConnection if safe else http.client.HTTPConnection
    connection = kind(host, port, timeout=seconds)
    try:
        connection.request("GET", "/api/v2/heartbeat")
        connection.getresponse().read()
    finally:
        connection.close()


def _sessions(client: Any) -> list[Any]:
    """Return a client's HTTP sessions, the only way to time limits and sockets. A second client asks for databases."""
    return [each._server._session for each in (client, client._admin_client)]  # noqa: SLF001 (as above)


async def chroma_unreachable_because(address: str, *, timeout_seconds: float = PROBE_SECONDS) -> str | None:
    """Ask Chroma for its heartbeat, for `--check`. Returns what is wrong and what to do; None: it answers."""
    import aiohttp  # noqa: PLC0415 (a tenth of a second, which only this needs here)

    if importlib.util.find_spec("chromadb") is None:
        return MISSING
    try:
        status = await clock.run_in_real_time(
            lambda: _status(f"{address.rstrip('/')}/api/v2/heartbeat", timeout_seconds)
        )
    except TimeoutError:
        return f"did not answer within {timeout_seconds:g} s"
    except (aiohttp.ClientError, ValueError, OSError) as error:
        return f"cannot be reached: {connection_problem(error)}; check documents.store"
    return None if status == 200 else f"is no Chroma server (HTTP {status}); check documents.store"  # noqa: PLR2004 (OK)


async def _status(address: str, timeout_seconds: float) -> int:
    import aiohttp  # noqa: PLC0415 (as above)

    async with asyncio.timeout(timeout_seconds), aiohttp.ClientSession() as session, session.get(address) as response:
        return response.status
