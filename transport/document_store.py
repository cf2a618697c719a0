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
from pathlib import Path
from typing import Any, TypeVar

from nats.aio.client import Client
from pydantic import TypeAdapter

from clock.timeouts import Backoff
from services.documents.store import (
    Collection,
    CollectionSummary,
    OpenFile,
    SharedStore,
    SqliteCollections,
    StoreUnavailable,
    protocol,
)
from services.storage import in_thread
from transport.connection import streams_of
from transport.errors import ServerAway
from transport.object_store import ObjectBucket, ObjectChanged, ObjectInfo
from transport.streams import EVIDENCE

_LEVEL, _READ_BYTES = 1, 1 << 20


def object_name(name: str) -> str:
    """Return the path of a collection below a data folder."""
    return f"{'evidence' if name.startswith(protocol.CASE_PREFIX) else 'runbooks'}/{name}.sqlite"


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
SOON_SECONDS = 2.0
"""How long vectors, and documents that are expected, may be in the copy only."""

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
    """Collections in the bucket, worked on in replicas of this process: `SharedCollections`
    (services.documents.store.document_store).

    A write changes the copy first; then the bucket gets the copy, if it still holds what the copy was made from. Where
    another process was faster, the copy is fetched anew and the write is done again: of two additions at once, none is
    lost.

    It does not matter which process owns a thread now. What people are told to be there, or to be deleted, is so in the
    bucket before the call returns. Vectors, and documents that are only expected, follow within seconds. Should the
    process end before that, a document is found by its words, and an expected one counts as never begun.
    """

    def __init__(
        self, client: Client, folder: Path, copies: SqliteCollections, soon_seconds: float = SOON_SECONDS
    ) -> None:
        """`folder`: for what is on its way, on the same disk as the folders of `copies`."""
        self._client, self._watching = client, contextlib.AsyncExitStack()
        self._bucket = ObjectBucket(streams_of(client), EVIDENCE)
        self._folder, self._copies, self._soon = folder, copies, soon_seconds
        self._known: dict[str, _Replica] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._transfers = asyncio.Semaphore(AT_ONCE)
        self._closing = asyncio.Event()

    async def read(self, name: str, work: Callable[[OpenFile], T], nothing: T) -> T:
        """Read the copy as the bucket has it."""
        copy = self._copy(name)

        async def looked() -> T:
            await self._current(copy)
            return await self._copies.read(name, work, nothing)

        return await self._in_turn(copy, looked)

    async def change(
        self,
        name: str,
        work: Callable[[sqlite3.Connection], T],
        create: Collection | None = None,
        *,
        erase: bool = False,
        soon: bool = False,
    ) -> T | None:
        """Write to the copy; this may be done again. `soon`: the bucket has it within seconds, else before the end."""

        async def write() -> T | None:
            return await self._copies.change(name, work, create, erase=erase)

        async def written() -> T | None:
            for _ in range(TRIES):
                base = await self._current(copy)
                before = await self._copies.version(name)
                copy.made_from = None  # whatever fails from here on leaves a copy that is ahead
                result = await write()
                if await self._copies.version(name) == before:
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

        copy = self._copy(name)
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
            return await self._copies.describe(name)

        return await self._in_turn(copy, described)

    async def delete(self, name: str) -> bool:
        """Return whether it was there."""
        copy = self._copy(name)

        async def deleted() -> bool:
            copy.made_from = None
            there = await self._bucket.delete(copy.key)
            copy.waiting.clear()
            return await self._copies.delete(name) or there

        return await self._in_turn(copy, deleted)

    async def names(self, prefix: str = "") -> list[str]:
        """Those in the bucket, and those that are begun here. Of what others have deleted the copies go."""
        with _readable():
            heads = await self._bucket.heads()
            await self._bucket.clear_orphans(heads, ORPHANED_SECONDS)
        there = {name for head in heads if (name := collection_of(head.name)) is not None}
        for name in set(await self._copies.names()) - there:
            copy = self._copy(name)
            await self._in_turn(copy, lambda copy=copy: self._current(copy))
        begun = {name for name, copy in self._known.items() if copy.waiting}
        return sorted(name for name in there | begun if name.startswith(prefix))

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
        for name in await self._copies.names():
            await self._copies.delete(name)
        await self._copies.close()

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
            await self._copies.delete(copy.name)
            return True
        async with self._transfers:
            content = await self._bucket.fetch(head)
            if content is None:
                return False
            with scratch(self._folder) as path:
                await in_thread(unpack, content, path)
                await self._copies.move_in(copy.name, path)
        return True

    async def _sent(self, copy: _Replica, over: ObjectInfo) -> ObjectInfo:
        """Raises ObjectChanged."""
        async with self._transfers:
            with scratch(self._folder) as path:
                if not await self._copies.copy(copy.name, path):
                    return over
                content = await in_thread(pack, path)
            described = await self._copies.describe(copy.name)
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
        return self._known.setdefault(name, _Replica(name, object_name(protocol.checked(name))))


@contextlib.contextmanager
def _readable() -> Generator[None]:
    """Raises what the seam knows."""
    try:
        yield
    except ServerAway as error:
        raise StoreUnavailable(str(error)) from error
    except OSError as error:
        raise StoreUnavailable(f"the copies of documents cannot be written: {type(error).__name__}") from error


def open_bucket_store(
    client: Client, folder: Path, copies: SqliteCollections, *, soon_seconds: float = SOON_SECONDS
) -> SharedStore:
    """Return a store whose collections are kept in the bucket `evidence`, with `copies` in this process.

    `client`: on the loop on which the store is used. `folder`: of this process, for what is on its way; on the same
    disk as the folders of `copies`.
    """
    return SharedStore(CollectionReplicas(client, folder, copies, soon_seconds))
