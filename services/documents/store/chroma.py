"""The same store over a server of Chroma."""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

import clock
from services.documents.store import chroma_records, protocol
from services.documents.store.chroma_records import TRIES, ChromaRecords, Overtaken, RemoteState
from services.documents.store.collection_files import Folders, OpenFile, SqliteCollections, summary
from services.documents.store.document_store import DocumentStore
from services.documents.store.protocol import Collection, CollectionSummary, StoreUnavailable
from services.storage import in_thread
from services.telemetry import connection_problem

T = TypeVar("T")

CHECK = "`python app.py --check` says what is missing"
MISSING = "needs the extra `chroma`: make extra-chroma"
PROBE_SECONDS = 5.0
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
        self._held: dict[str, RemoteState] = {}  # the records that each up-to-date copy was made from
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
                after = await self._copies.read(
                    name, lambda file: chroma_records.read_collection(file.connection), None
                )
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

    async def _update_copy(self, name: str) -> RemoteState | None:
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
        await self._copies.make(name, lambda connection: chroma_records.write_collection(connection, packed))
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
