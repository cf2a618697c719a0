"""A document store whose collections are kept in the object store of NATS: each process works on local replicas
(SQLite files), compared with the bucket before each use.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nats.aio.client import Client
from pydantic import TypeAdapter

from clock.timeouts import Backoff
from services.documents.store import (
    ChunkHit,
    ChunkSearch,
    Collection,
    CollectionSummary,
    Document,
    EmbeddedStore,
    LineWhere,
    MatchingLines,
    NewDocument,
    Origin,
    StoredChunk,
    StoreUnavailable,
    Unembedded,
    protocol,
)
from services.search.embedding import Vectors
from services.storage import in_thread
from transport.connection import streams_of
from transport.errors import ServerAway
from transport.object_store import ObjectBucket, ObjectChanged, ObjectInfo
from transport.streams import EVIDENCE

FOLDERS = ((protocol.CASE_PREFIX, "evidence"), (protocol.USER_PREFIX, "runbooks"))
_LEVEL, _READ_BYTES = 1, 1 << 20


def object_name(name: str) -> str | None:
    """Of a collection: its path below a data folder. None: it is kept in this process only, and made anew elsewhere."""
    folder = next((folder for prefix, folder in FOLDERS if name.startswith(prefix)), None)
    return None if folder is None else f"{folder}/{name}.sqlite"


def collection_of(key: str) -> str | None:
    """The other way round. None: it is no collection's."""
    name = key.rpartition("/")[2].removesuffix(".sqlite")
    return name if object_name(name) == key else None


@contextlib.contextmanager
def scratch(folder: Path) -> Generator[Path]:
    """A path for a file that is gone afterwards."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f".unfinished-{uuid.uuid4().hex}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def pack(path: Path) -> bytes:
    """The content of a file, compressed. Blocking."""
    packer, encode_compressed = zlib.compressobj(_LEVEL), bytearray()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            encode_compressed += packer.compress(piece)
    return bytes(encode_compressed + packer.flush())


def unpack(content: bytes, path: Path) -> None:
    """Make a file of what `pack` gave. Blocking."""
    unpacker = zlib.decompressobj()
    with path.open("wb") as file:
        while content:
            file.write(unpacker.decompress(content, _READ_BYTES))
            content = unpacker.unconsumed_tail
        file.write(unpacker.flush())


TRIES = 8
AT_ONCE = 4
"""Collections on their way: each is in memory, compressed."""
ORPHANED_SECONDS = 600.0
MOST_SUMMARY_BYTES = 256 * 1024
SUMMARY = "summary"

T = TypeVar("T")
Write = Callable[[], Awaitable[object]]

log = logging.getLogger(__name__)
_summaries = TypeAdapter(CollectionSummary)


@dataclass(slots=True)
class _Replica:
    """What is known of one collection's copy.

    Attributes:
        made_from: the head that the copy was made from, or that was made from the copy; None: it cannot be trusted.
        waiting: the writes that are in the copy, and not in the bucket yet.
        leaving: whether they are about to be sent.
        users: how many work with it or wait for their turn.
    """

    name: str
    key: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    made_from: ObjectInfo | None = None
    waiting: list[Write] = field(default_factory=list[Write])
    leaving: bool = False
    users: int = 0


class CollectionReplicas:
    """The replicas of this process, for collections that have an `object_name`. Each method raises StoreUnavailable.

    A write changes the copy first; then the bucket gets the copy, if it still holds what the copy was made from. Where
    another process was faster, the copy is fetched anew and the write is done again: of two additions at once, none is
    lost.
    """

    def __init__(self, client: Client, folder: Path, store: EmbeddedStore, soon_seconds: float) -> None:
        """`store`: of the copies. `folder`: for what is on its way, on the same disk as the store's own folders."""
        self._client, self._watching = client, contextlib.AsyncExitStack()
        self._bucket = ObjectBucket(streams_of(client), EVIDENCE)
        self._folder, self._store, self._soon = folder, store, soon_seconds
        self._known: dict[str, _Replica] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._transfers = asyncio.Semaphore(AT_ONCE)
        self._closing = asyncio.Event()

    async def read(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        """Read the copy as the bucket has it."""
        copy = self._copy(name)

        async def looked() -> T:
            await self._current(copy)
            return await read()

        return await self._in_turn(copy, looked)

    async def write(self, name: str, write: Callable[[], Awaitable[T]], *, soon: bool = False) -> T:
        """Write to the copy; this may be done again. `soon`: the bucket has it within seconds, else before the end."""
        copy = self._copy(name)

        async def written() -> T:
            for _ in range(TRIES):
                base = await self._current(copy)
                before = await self._store.version(name)
                copy.made_from = None  # whatever fails from here on leaves a copy that is ahead
                result = await write()
                if await self._store.version(name) == before:
                    copy.made_from = base
                elif soon:
                    copy.made_from = base
                    copy.waiting.append(write)
                    self._send_soon(copy)
                else:
                    try:
                        copy.made_from = await self._sent(copy, base)
                    except ObjectChanged:
                        continue
                    copy.waiting.clear()
                return result
            raise StoreUnavailable(f"{name} is written by other processes all the time")

        return await self._in_turn(copy, written)

    async def describe(self, name: str) -> CollectionSummary | None:
        """The summary of a collection; taken from the object's metadata where this process has no replica, since a
        sweep asks for every thread.
        """
        copy = self._copy(name)

        async def described() -> CollectionSummary | None:
            head = await self._bucket.look(copy.key)
            known = copy.made_from is not None and copy.made_from.revision == head.revision
            if not known and not copy.waiting and head.there and SUMMARY in head.notes:
                return _summaries.validate_json(head.notes[SUMMARY])
            await self._bring_up(copy, head)
            return await self._store.describe(name)

        return await self._in_turn(copy, described)

    async def delete(self, name: str) -> bool:
        """Whether it was there."""
        copy = self._copy(name)

        async def deleted() -> bool:
            copy.made_from = None
            gone = await self._bucket.delete(copy.key)
            copy.waiting.clear()
            return await self._store.delete_collection(name) or gone is not None

        return await self._in_turn(copy, deleted)

    async def names(self) -> set[str]:
        """Those in the bucket, and those that are begun here. Of what others have deleted the copies go."""
        with _readable():
            heads = await self._bucket.heads()
            await self._bucket.clear_orphans(heads, ORPHANED_SECONDS)
        there = {name for head in heads if (name := collection_of(head.name)) is not None}
        for name in {each for each in await self._store.list_collections() if object_name(each)} - there:
            copy = self._copy(name)
            await self._in_turn(copy, lambda copy=copy: self._current(copy))
        return there | {name for name, copy in self._known.items() if copy.waiting}

    async def follow(self, heard: Callable[[str, bool], None]) -> None:
        """Tell `heard` what is in the bucket, and what changes, until `close`."""

        def on_object(key: str, there: bool) -> None:
            if (name := collection_of(key)) is not None:
                heard(name, there)

        with _readable():
            await self._watching.enter_async_context(self._bucket.watching(self._client, on_object))

    async def flush(self) -> None:
        """Bring all that waits into the bucket; what cannot be sent goes on waiting."""
        waiting = [copy for copy in self._known.values() if copy.waiting]
        await asyncio.gather(*(self._in_turn(copy, lambda copy=copy: self._send(copy)) for copy in waiting))

    async def close(self) -> None:
        """Flush, and leave no copies. What cannot be sent now is given up, and said."""
        await self._watching.aclose()
        self._closing.set()
        try:
            await self.flush()
        except StoreUnavailable as error:
            log.error("documents: the last vectors are lost: %s", error)  # noqa: TRY400 (a line for the operator)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name in await self._store.list_collections():
            if object_name(name) is not None:
                await self._store.delete_collection(name)

    async def _current(self, copy: _Replica) -> ObjectInfo:
        return await self._bring_up(copy, await self._bucket.look(copy.key))

    async def _bring_up(self, copy: _Replica, head: ObjectInfo) -> ObjectInfo:
        """Bring the copy to what the bucket holds, with what waits on top; gives the head that it is made from."""
        for _ in range(TRIES):
            if copy.made_from is not None and copy.made_from.revision == head.revision:
                return head
            if copy.made_from is not None and copy.made_from.there and not head.there:
                copy.waiting.clear()  # another process has deleted it: that was meant for this as well
            copy.made_from = None
            if await self._fetched(copy, head):
                for write in copy.waiting:
                    await write()
                copy.made_from = head
                return head
            head = await self._bucket.look(copy.key)
        raise StoreUnavailable(f"{copy.name} cannot be fetched whole; look into the log of NATS")

    async def _fetched(self, copy: _Replica, head: ObjectInfo) -> bool:
        """Make the copy what `head` stands for. False: that is not there any more."""
        if not head.there:
            await self._store.delete_collection(copy.name)
            return True
        async with self._transfers:
            content = await self._bucket.fetch(head)
            if content is None:
                return False
            with scratch(self._folder) as path:
                await in_thread(unpack, content, path)
                await self._store.move_in(copy.name, path)
        return True

    async def _sent(self, copy: _Replica, over: ObjectInfo) -> ObjectInfo:
        """Raises ObjectChanged."""
        async with self._transfers:
            with scratch(self._folder) as path:
                if not await self._store.copy(copy.name, path):
                    return over
                content = await in_thread(pack, path)
            described = await self._store.describe(copy.name)
            summary = _summaries.dump_json(described).decode() if described is not None else ""
            fits = 0 < len(summary.encode()) <= MOST_SUMMARY_BYTES
            return await self._bucket.put(over, content, {SUMMARY: summary} if fits else {})

    async def _send(self, copy: _Replica) -> None:
        """Bring what waits into the bucket."""
        for _ in range(TRIES):
            base = await self._current(copy)
            if not copy.waiting:
                return
            try:
                copy.made_from = await self._sent(copy, base)
            except ObjectChanged:
                continue
            copy.waiting.clear()
            return
        raise StoreUnavailable(f"{copy.name} is written by other processes all the time")

    def _send_soon(self, copy: _Replica) -> None:
        if not copy.leaving:
            copy.leaving = True
            self._start(self._sending(copy))

    async def _sending(self, copy: _Replica) -> None:
        pause, backoff = self._soon, Backoff()
        try:
            while copy.waiting:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), pause)
                    return  # the one who closes flushes
                try:
                    await self._in_turn(copy, lambda: self._send(copy))
                except StoreUnavailable as error:
                    log.warning("documents: %s: %s", copy.name, error)
                    pause = backoff.pause()
        finally:
            copy.leaving = False

    async def _in_turn(self, copy: _Replica, work: Callable[[], Awaitable[T]]) -> T:
        """One at a time for each collection, and to its end: what is cancelled halfway would go on in its thread, upon
        a copy that is somebody else's by then.
        """

        async def alone() -> T:
            try:
                async with copy.lock:
                    with _readable():
                        return await work()
            finally:
                copy.users -= 1
                held = copy.made_from is not None and copy.made_from.there
                if not (copy.users or copy.waiting or held):
                    self._known.pop(copy.name, None)  # there are many more threads than copies

        copy.users += 1
        return await asyncio.shield(self._start(alone()))

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it has it; nobody else needs to

    def _copy(self, name: str) -> _Replica:
        key = object_name(protocol.checked(name))
        assert key is not None, "others are kept here only"  # noqa: S101 (tells the type checker)
        return self._known.setdefault(name, _Replica(name, key))


@contextlib.contextmanager
def _readable() -> Generator[None]:
    """Raises what the seam knows."""
    try:
        yield
    except ServerAway as error:
        raise StoreUnavailable(str(error)) from error
    except OSError as error:
        raise StoreUnavailable(f"the copies of documents cannot be written: {type(error).__name__}") from error


SOON_SECONDS = 2.0
"""How long vectors, and documents that are expected, may be in the copy only."""


def open_bucket_store(
    client: Client, folder: Path, store: EmbeddedStore, *, soon_seconds: float = SOON_SECONDS
) -> BucketDocumentStore:
    """`store` over copies, kept in the bucket `evidence`; those of the team and of the documentation each process makes
    for itself.

    `client`: on the loop on which the store is used. `folder`: of this process, for what is on its
    way; on the same disk as the store's own folders.
    """
    return BucketDocumentStore(CollectionReplicas(client, folder, store, soon_seconds), store)


class BucketDocumentStore:
    """A `SharedStore` (services.documents.store.protocol).

    It does not matter which process owns a thread now. What people are told to be there, or to be deleted, is so in the
    bucket before the call returns. Vectors, and documents that are only expected, follow within seconds. Should the
    process end before that, a document is found by its words, and an expected one counts as never begun.
    """

    def __init__(self, kept: CollectionReplicas, copies: EmbeddedStore) -> None:
        self._kept, self._copies = kept, copies

    async def expect(self, collection: Collection, origin: Origin) -> Document:
        return await self._written(collection.name, lambda: self._copies.expect(collection, origin), soon=True)

    async def add(self, collection: Collection, docs: Sequence[NewDocument], *, create: bool = True) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.add(collection, docs, create=create))

    async def revise(self, collection: Collection, docs: Sequence[NewDocument], drop: Sequence[str]) -> list[Document]:
        return await self._written(collection.name, lambda: self._copies.revise(collection, docs, drop))

    async def fail(self, name: str, doc_id: str, reason: str) -> bool:
        return await self._written(name, lambda: self._copies.fail(name, doc_id, reason))

    async def unembedded(self, name: str, doc_id: str, embedder_id: str) -> list[Unembedded]:
        return await self._read(name, lambda: self._copies.unembedded(name, doc_id, embedder_id))

    async def embed(self, name: str, doc_id: str, embedder_id: str, vectors: Mapping[int, Vectors]) -> bool:
        return await self._written(name, lambda: self._copies.embed(name, doc_id, embedder_id, vectors), soon=True)

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

    async def delete_document(self, name: str, doc_id: str) -> bool:
        return await self._written(name, lambda: self._copies.delete_document(name, doc_id))

    async def withdraw(self, name: str, doc_id: str, gone: Callable[[Origin], bool]) -> bool:
        return await self._written(name, lambda: self._copies.withdraw(name, doc_id, gone))

    async def describe(self, name: str) -> CollectionSummary | None:
        return await (self._kept if is_in_bucket(name) else self._copies).describe(name)

    async def delete_collection(self, name: str) -> bool:
        return await (self._kept.delete(name) if is_in_bucket(name) else self._copies.delete_collection(name))

    async def list_collections(self, prefix: str = "") -> list[str]:
        kept = await self._kept.names()
        own = [name for name in await self._copies.list_collections() if not is_in_bucket(name)]
        return sorted(name for name in (*kept, *own) if name.startswith(prefix))

    async def follow(self, heard: Callable[[str, bool], None]) -> None:
        await self._kept.follow(heard)

    async def flush(self) -> None:
        await self._kept.flush()

    async def close(self) -> None:
        """Flush, and leave no copies."""
        await self._kept.close()
        await self._copies.close()

    aclose = close

    async def _read(self, name: str, read: Callable[[], Awaitable[T]]) -> T:
        return await (self._kept.read(name, read) if is_in_bucket(name) else read())

    async def _written(self, name: str, write: Callable[[], Awaitable[T]], *, soon: bool = False) -> T:
        return await (self._kept.write(name, write, soon=soon) if is_in_bucket(name) else write())


def is_in_bucket(name: str) -> bool:
    return object_name(protocol.checked(name)) is not None
