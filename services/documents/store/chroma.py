"""Chroma as the store that several processes share (extra `chroma`: its HTTP client).

Chroma keeps everything. Each process has a copy of what it reads in an `EmbeddedStore`, and compares its version with
Chroma's before each read: so the same code searches, and the same question gives the same answer, with Chroma and
without. A write goes to Chroma last: what is not there has not happened. `chroma_records` says how it is kept there.
"""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import clock
from services.documents.store import naming
from services.documents.store.chroma_records import TRIES, ChromaRecords, KeptRecords, Overtaken
from services.documents.store.collection_files import Folders
from services.documents.store.embedded import EmbeddedStore
from services.documents.store.protocol import (
    ChunkHit,
    ChunkSearch,
    Collection,
    CollectionSummary,
    Document,
    LineWhere,
    MatchingLines,
    NewDocument,
    Origin,
    StoredChunk,
    StoreUnavailable,
    Unembedded,
)
from services.search.embedding import Vectors
from services.storage import in_thread
from services.telemetry import connection_problem

T = TypeVar("T")

CHECK = "`python app.py --check` says what is missing"


PROBE_SECONDS = 5.0
MISSING = "needs the extra `chroma`: make extra-chroma"

REQUEST_SECONDS = 10.0  # without a limit, each request to a server that hangs would block a thread for ever


class ChromaStore:
    """A `DocumentStore` (services.documents.store.protocol)."""

    def __init__(
        self,
        address: str,
        folder: Path,
        *,
        request_seconds: float = REQUEST_SECONDS,
        connect: Callable[[str], Any] | None = None,
    ) -> None:
        """`address`: `http://host:port`. `folder`: for copies, of this process alone; may be deleted between runs.

        `connect` gives another client than Chroma's own.
        """
        self._address = address
        self._copies = EmbeddedStore(Folders(folder, folder, folder))
        self._held: dict[str, KeptRecords] = {}  # what each copy that is up to date was made from
        self._locks: dict[str, asyncio.Lock] = {}
        self._records = (
            ChromaRecords(lambda: connected(address, request_seconds), disconnect)
            if connect is None
            else ChromaRecords(lambda: connect(address), lambda _: None)
        )

    async def expect(self, collection: Collection, origin: Origin) -> Document:
        return await self._written(collection.name, lambda: self._copies.expect(collection, origin))

    async def add(self, collection: Collection, docs: Sequence[NewDocument], *, create: bool = True) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.add(collection, docs, create=create))

    async def revise(self, collection: Collection, docs: Sequence[NewDocument], drop: Sequence[str]) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.revise(collection, docs, drop))

    async def fail(self, name: str, doc_id: str, reason: str) -> bool:
        return await self._written(name, lambda: self._copies.fail(name, doc_id, reason))

    async def unembedded(self, name: str, doc_id: str, embedder_id: str) -> list[Unembedded]:
        return await self._read(name, lambda: self._copies.unembedded(name, doc_id, embedder_id))

    async def embed(self, name: str, doc_id: str, embedder_id: str, vectors: Mapping[int, Vectors]) -> bool:
        return await self._written(name, lambda: self._copies.embed(name, doc_id, embedder_id, vectors))

    async def search(self, name: str, search: ChunkSearch) -> list[ChunkHit]:
        return await self._read(name, lambda: self._copies.search(name, search))

    async def lines(
        self, name: str, where: LineWhere, *, limit: int = 20, newest_first: bool = False, by_time: bool = False
    ) -> MatchingLines:
        return await self._read(
            name, lambda: self._copies.lines(name, where, limit=limit, newest_first=newest_first, by_time=by_time)
        )

    async def distinct(self, name: str, where: LineWhere, column: str, *, limit: int = 20) -> list[tuple[str, int]]:
        return await self._read(name, lambda: self._copies.distinct(name, where, column, limit=limit))

    async def chunks(self, name: str, doc_id: str, indices: Sequence[int]) -> list[StoredChunk]:
        return await self._read(name, lambda: self._copies.chunks(name, doc_id, indices))

    async def holders(self, name: str, words: Sequence[str]) -> tuple[Mapping[str, int], int]:
        return await self._read(name, lambda: self._copies.holders(name, words))

    async def describe(self, name: str) -> CollectionSummary | None:
        return await self._read(name, lambda: self._copies.describe(name))

    async def delete_document(self, name: str, doc_id: str) -> bool:
        return await self._written(name, lambda: self._copies.delete_document(name, doc_id))

    async def withdraw(self, name: str, doc_id: str, gone: Callable[[Origin], bool]) -> bool:
        return await self._written(name, lambda: self._copies.withdraw(name, doc_id, gone))

    async def delete_collection(self, name: str) -> bool:
        async with self._lock(name):
            there = await self._ask(self._records.delete, name)
            self._held.pop(name, None)
            await self._copies.delete_collection(name)
            return there

    async def list_collections(self, prefix: str = "") -> list[str]:
        names = await self._ask(self._records.names)
        # Those deleted by other processes, or while this one was not running, go here as well.
        for name in set(await self._copies.list_collections()).difference(names):
            async with self._lock(name):
                await self._brought_up_to_date(name)
        return [name for name in names if name.startswith(prefix)]

    async def close(self) -> None:
        """Leaves no copies."""
        for name in await self._copies.list_collections():
            await self._copies.delete_collection(name)
        self._held.clear()
        await self._copies.close()
        await in_thread(self._records.close)

    async def _read(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        async with self._lock(name):
            await self._brought_up_to_date(name)
            return await read()

    async def _written(self, name: str, write: Callable[[], Awaitable[T]]) -> T:
        """Write to the copy, then what that changed to Chroma; tried again where another process was faster."""
        async with self._lock(name):
            for _ in range(TRIES):
                base = await self._brought_up_to_date(name)
                # A failure or cancellation from here on leaves a copy ahead of Chroma: it must not be used.
                self._held.pop(name, None)
                result = await write()
                after = await self._copies.packed(name)
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

    async def _brought_up_to_date(self, name: str) -> KeptRecords | None:
        """Bring what other processes have written into the copy; None: there is no such collection."""
        mark = await self._ask(self._records.mark, name)
        held = self._held.get(name)
        if held is not None and held.mark == mark:
            return held
        self._held.pop(name, None)
        fetched = None if mark is None else await self._ask(self._records.fetch, name, clock.now())
        await self._copies.delete_collection(name)
        if fetched is None:
            return None
        kept, packed = fetched
        await self._copies.unpack(packed)
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
        naming.checked(name)
        return self._locks.setdefault(name, asyncio.Lock())


def connected(address: str, seconds: float) -> Any:
    """A client of the server at `address` (`http://host:port`). Blocking.

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


def disconnect(client: Any) -> None:
    """Its own `close` leaves the sockets open."""
    client.close()
    for session in _sessions(client):
        session.close()


def _wait_for_heartbeat(host: str, port: int, seconds: float, *, safe: bool) -> None:
    """The client asks for several things as soon as it is made, before its time limit can be set."""
    kind = http.client.HTTPSConnection if safe else http.client.HTTPConnection
    connection = kind(host, port, timeout=seconds)
    try:
        connection.request("GET", "/api/v2/heartbeat")
        connection.getresponse().read()
    finally:
        connection.close()


def _sessions(client: Any) -> list[Any]:
    """The only way to its time limits and its sockets; a second client in it only looks after its database."""
    return [each._server._session for each in (client, client._admin_client)]  # noqa: SLF001 (as above)


async def chroma_unreachable_because(address: str, *, timeout_seconds: float = PROBE_SECONDS) -> str | None:
    """Ask for its heartbeat, for `--check`. None: it is there; else what is wrong, and what to do."""
    import aiohttp  # noqa: PLC0415 (a tenth of a second, which only this needs here)

    if importlib.util.find_spec("chromadb") is None:
        return MISSING
    try:
        status = await clock.real_time(lambda: _status(f"{address.rstrip('/')}/api/v2/heartbeat", timeout_seconds))
    except TimeoutError:
        return f"did not answer within {timeout_seconds:g} s"
    except (aiohttp.ClientError, ValueError, OSError) as error:
        return f"cannot be reached: {connection_problem(error)}; check documents.store"
    return None if status == 200 else f"is no Chroma server (HTTP {status}); check documents.store"  # noqa: PLR2004 (OK)


async def _status(address: str, timeout_seconds: float) -> int:
    import aiohttp  # noqa: PLC0415 (as above)

    async with asyncio.timeout(timeout_seconds), aiohttp.ClientSession() as session, session.get(address) as response:
        return response.status
