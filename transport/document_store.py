"""A document store whose collections are kept in the object store of NATS: each process works on local replicas
(SQLite files), compared with the bucket before each use.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import uuid
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nats.aio.client import Client
from pydantic import TypeAdapter

from clock.timeouts import Backoff
from services.documents.store import (
    Collection,
    CollectionSummary,
    OpenFile,
    SqliteCollections,
    StoreUnavailable,
    protocol,
)
from services.storage import in_thread
from transport.connection import ServerAway, streams_of
from transport.object_store import ObjectBucket, ObjectChanged, ObjectInfo
from transport.streams import EVIDENCE

_COMPRESSION_LEVEL, _READ_BYTES = 1, 1 << 20


def object_name(name: str) -> str:
    """Return the name of a collection's object, which is its path below a data folder."""
    return f"{'evidence' if name.startswith(protocol.CASE_PREFIX) else 'runbooks'}/{name}.sqlite"


def collection_of(object_key: str) -> str | None:
    """Return the name of the collection whose object has this name; None: it is no collection's object."""
    name = object_key.rpartition("/")[2].removesuffix(".sqlite")
    return name if object_name(name) == object_key else None


@contextlib.contextmanager
def temporary_path(folder: Path) -> Generator[Path]:
    """Give a path below `folder` for a file, which is deleted at the end of the block."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f".unfinished-{uuid.uuid4().hex}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def pack(path: Path) -> bytes:
    """Return the content of a file, compressed. Blocking."""
    compressor, packed = zlib.compressobj(_COMPRESSION_LEVEL), bytearray()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            packed += compressor.compress(piece)
    return bytes(packed + compressor.flush())


def unpack(content: bytes, path: Path) -> None:
    """Write the uncompressed content of what `pack` has returned to a file. Blocking."""
    decompressor = zlib.decompressobj()
    with path.open("wb") as file:
        while content:
            file.write(decompressor.decompress(content, _READ_BYTES))
            content = decompressor.unconsumed_tail
        file.write(decompressor.flush())


TRIES = 8
MAX_TRANSFERS = 4
"""Collections that are uploaded or fetched at the same time: each is in memory, compressed."""
ORPHANED_SECONDS = 600.0
MAX_SUMMARY_BYTES = 256 * 1024
SUMMARY = "summary"
SOON_SECONDS = 2.0
"""How long vectors and announced documents may be in the replica only."""

T = TypeVar("T")
Write = Callable[[], Awaitable[object]]

log = logging.getLogger(__name__)
_summaries = TypeAdapter(CollectionSummary)


@dataclass(slots=True)
class _Replica:
    """The local copy of one collection.

    Attributes:
        made_from: the head that it was fetched from or uploaded as; None: it may differ from every version.
        pending_writes: the writes that are in the replica, and not in the bucket yet.
        is_sending: a task is about to upload them.
        users: how many calls work with it or wait for it.
    """

    name: str
    object_key: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    made_from: ObjectInfo | None = None
    pending_writes: list[Write] = field(default_factory=list[Write])
    is_sending: bool = False
    users: int = 0


class CollectionReplicas:
    """`SharedCollections` (services.documents.store.document_store): collections in the bucket, of which this process
    keeps replicas.

    A write changes the replica, which is then uploaded, if the bucket still has the version that it was made from.
    If another process was faster, the replica is fetched anew and the write is done again, so no write is lost.

    Any process may write a collection. Added and deleted documents are in the bucket before the call returns; vectors,
    and documents that are only announced, follow within seconds. If the process crashes before that, a document is
    still found by its words, and an announced one counts as never begun.
    """

    def __init__(
        self, client: Client, folder: Path, copies: SqliteCollections, soon_seconds: float = SOON_SECONDS
    ) -> None:
        """`client`: on the loop of this object. `folder`: for temporary files, on the same disk as `copies`."""
        self._client, self._watching = client, contextlib.AsyncExitStack()
        self._bucket = ObjectBucket(streams_of(client), EVIDENCE)
        self._folder, self._local, self._soon = folder, copies, soon_seconds
        self._replicas: dict[str, _Replica] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._transfers = asyncio.Semaphore(MAX_TRANSFERS)
        self._closing = asyncio.Event()

    async def read(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        """Read a replica that is up to date with the bucket."""
        replica = self._replica_of(name)

        async def read_replica() -> T:
            await self._bring_up_to_date(replica)
            return await self._local.read(name, work, nothing)

        return await self._run_alone(replica, read_replica)

    async def change(
        self,
        name: str,
        work: Callable[[sqlite3.Connection], T],
        create: Collection | None = None,
        *,
        erase: bool = False,
        soon: bool = False,
    ) -> T | None:
        """Write a collection; `work` may be called again. `soon`: upload it within seconds instead of at once."""

        async def write() -> T | None:
            return await self._local.change(name, work, create, erase=erase)

        async def write_and_upload() -> T | None:
            for _ in range(TRIES):
                base = await self._bring_up_to_date(replica)
                before = await self._local.version(name)
                replica.made_from = None  # an error from here on leaves a replica that is ahead
                result = await write()
                if await self._local.version(name) == before:
                    replica.made_from = base
                elif soon:
                    replica.made_from = base
                    replica.pending_writes.append(write)
                    self._start_uploading(replica)
                else:
                    try:
                        replica.made_from = await self._upload(replica, base)
                    except ObjectChanged:
                        continue
                    replica.pending_writes.clear()
                return result
            raise StoreUnavailable(f"{name} is written by other processes all the time")

        replica = self._replica_of(name)
        return await self._run_alone(replica, write_and_upload)

    async def describe(self, name: str) -> CollectionSummary | None:
        """Return the summary of a collection, from the object's metadata if there is no replica, as for a sweep."""
        replica = self._replica_of(name)

        async def describe_replica() -> CollectionSummary | None:
            head = await self._bucket.find_head(replica.object_key)
            known = replica.made_from is not None and replica.made_from.revision == head.revision
            if not known and not replica.pending_writes and head.exists and SUMMARY in head.notes:
                return _summaries.validate_json(head.notes[SUMMARY])
            await self._update_to(replica, head)
            return await self._local.describe(name)

        return await self._run_alone(replica, describe_replica)

    async def delete(self, name: str) -> bool:
        """Return whether it existed."""
        replica = self._replica_of(name)

        async def delete_replica() -> bool:
            replica.made_from = None
            there = await self._bucket.delete(replica.object_key)
            replica.pending_writes.clear()
            return await self._local.delete(name) or there

        return await self._run_alone(replica, delete_replica)

    async def names(self, prefix: str = "") -> list[str]:
        """Return the collections in the bucket, and those not uploaded yet. Removes replicas of deleted ones."""
        with _as_store_unavailable():
            heads = await self._bucket.heads()
            await self._bucket.clear_orphans(heads, ORPHANED_SECONDS)
        there = {name for head in heads if (name := collection_of(head.name)) is not None}
        for name in set(await self._local.names()) - there:
            replica = self._replica_of(name)
            await self._run_alone(replica, partial(self._bring_up_to_date, replica))
        unsent = {name for name, replica in self._replicas.items() if replica.pending_writes}
        return sorted(name for name in there | unsent if name.startswith(prefix))

    async def follow(self, heard: Callable[[str, bool], None]) -> None:
        """As `SharedCollections.follow`, until `close`."""

        def on_object(object_key: str, there: bool) -> None:
            if (name := collection_of(object_key)) is not None:
                heard(name, there)

        with _as_store_unavailable():
            await self._watching.enter_async_context(self._bucket.watching(self._client, on_object))

    async def flush(self) -> None:
        """Upload all pending writes. Raises StoreUnavailable: some stay pending."""
        unsent = [each for each in self._replicas.values() if each.pending_writes]
        await asyncio.gather(*(self._run_alone(each, partial(self._upload_pending, each)) for each in unsent))

    async def close(self) -> None:
        """Flush, and delete all replicas. Writes that cannot be uploaded are lost, which is logged."""
        await self._watching.aclose()
        self._closing.set()
        try:
            await self.flush()
        except StoreUnavailable as error:
            log.error("documents: the last vectors are lost: %s", error)  # noqa: TRY400 (a line for the operator)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name in await self._local.names():
            await self._local.delete(name)
        await self._local.close()

    async def _bring_up_to_date(self, replica: _Replica) -> ObjectInfo:
        return await self._update_to(replica, await self._bucket.find_head(replica.object_key))

    async def _update_to(self, replica: _Replica, head: ObjectInfo) -> ObjectInfo:
        """Update the replica to the bucket, with pending writes on top; returns the head that it is made from."""
        for _ in range(TRIES):
            if replica.made_from is not None and replica.made_from.revision == head.revision:
                return head
            if replica.made_from is not None and replica.made_from.exists and not head.exists:
                replica.pending_writes.clear()  # another process has deleted the collection
            replica.made_from = None
            if await self._fetch(replica, head):
                for write in replica.pending_writes:
                    await write()
                replica.made_from = head
                return head
            head = await self._bucket.find_head(replica.object_key)
        raise StoreUnavailable(f"{replica.name} cannot be fetched whole; look into the log of NATS")

    async def _fetch(self, replica: _Replica, head: ObjectInfo) -> bool:
        """Replace the replica by the version `head`; False: that version is gone."""
        if not head.exists:
            await self._local.delete(replica.name)
            return True
        async with self._transfers:
            content = await self._bucket.fetch(head)
            if content is None:
                return False
            with temporary_path(self._folder) as path:
                await in_thread(unpack, content, path)
                await self._local.move_in(replica.name, path)
        return True

    async def _upload(self, replica: _Replica, head: ObjectInfo) -> ObjectInfo:
        """Replace the version `head`; returns the new head. Raises ObjectChanged."""
        async with self._transfers:
            with temporary_path(self._folder) as path:
                if not await self._local.copy(replica.name, path):
                    return head
                content = await in_thread(pack, path)
            described = await self._local.describe(replica.name)
            summary = _summaries.dump_json(described).decode() if described is not None else ""
            fits = 0 < len(summary.encode()) <= MAX_SUMMARY_BYTES
            return await self._bucket.put(head, content, {SUMMARY: summary} if fits else {})

    async def _upload_pending(self, replica: _Replica) -> None:
        for _ in range(TRIES):
            base = await self._bring_up_to_date(replica)
            if not replica.pending_writes:
                return
            try:
                replica.made_from = await self._upload(replica, base)
            except ObjectChanged:
                continue
            replica.pending_writes.clear()
            return
        raise StoreUnavailable(f"{replica.name} is written by other processes all the time")

    def _start_uploading(self, replica: _Replica) -> None:
        if not replica.is_sending:
            replica.is_sending = True
            self._start(self._keep_uploading(replica))

    async def _keep_uploading(self, replica: _Replica) -> None:
        pause, backoff = self._soon, Backoff()
        try:
            while replica.pending_writes:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), pause)
                    return  # `close` flushes
                try:
                    await self._run_alone(replica, partial(self._upload_pending, replica))
                except StoreUnavailable as error:
                    log.warning("documents: %s: %s", replica.name, error)
                    pause = backoff.pause()
        finally:
            replica.is_sending = False

    async def _run_alone(self, replica: _Replica, work: Callable[[], Awaitable[T]]) -> T:
        """Run one `work` at a time for each collection, to its end even if the caller is cancelled: its thread would go
        on with a replica that another call uses.
        """

        async def run_in_turn() -> T:
            try:
                async with replica.lock:
                    with _as_store_unavailable():
                        return await work()
            finally:
                replica.users -= 1
                is_in_bucket = replica.made_from is not None and replica.made_from.exists
                if not (replica.users or replica.pending_writes or is_in_bucket):
                    self._replicas.pop(replica.name, None)  # there are many more threads than replicas

        replica.users += 1
        return await asyncio.shield(self._start(run_in_turn()))

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_ended)
        return task

    def _on_task_ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it; the caller gets it as well

    def _replica_of(self, name: str) -> _Replica:
        return self._replicas.setdefault(name, _Replica(name, object_name(protocol.check_name(name))))


@contextlib.contextmanager
def _as_store_unavailable() -> Generator[None]:
    try:
        yield
    except ServerAway as error:
        raise StoreUnavailable(str(error)) from error
    except OSError as error:
        raise StoreUnavailable(f"the copies of documents cannot be written: {type(error).__name__}") from error
