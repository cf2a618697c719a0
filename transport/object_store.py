"""An object store with compare-and-set: an object is replaced only if it is still the version that the writer read.

It is kept as every client of NATS keeps objects (`nats object ls evidence` shows it), but a head is written only where
the one before is still the one that its writer knows. The client's own `put` takes whatever comes last.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from clock import now, rfc3339
from transport.connection import TRY_SECONDS, retry
from transport.errors import ServerAway
from transport.fenced_log import erase_entry, erase_subject
from transport.key_value import SubjectWatcher
from transport.streams import DAY_SECONDS, EXPECTED_LAST, MESSAGE_ID, TTL, WRONG_EXPECTED_LAST, read_stream

log = logging.getLogger(__name__)

PIECE_BYTES = 256 * 1024
"""Of an object in one message: a server takes a megabyte as it comes."""
TRIES = 8
SILENT_SECONDS, MOST_SILENCES = 0.3, 10
DIGEST = "SHA-256="


class ObjectChanged(Exception):
    """Somebody else has written or deleted the object meanwhile."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What is known of an object without reading it.

    Attributes:
        revision: the number of its head in the stream; 0: there has been none lately.
        pieces: the name under which its bytes lie; empty: it is deleted, or was never there.
        count: of the messages that hold its bytes.
        digest: SHA-256 of its bytes, in base64.
        notes: what its writer said of it.
        written: when, in RFC 3339; empty: it is not told.
    """

    name: str
    revision: int = 0
    pieces: str = ""
    count: int = 0
    digest: str = ""
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    written: str = field(default="", compare=False)

    @property
    def there(self) -> bool:
        return self.pieces != ""


class ObjectBucket:
    """Each method raises ServerAway."""

    def __init__(self, streams: JetStreamContext, name: str) -> None:
        """`streams`: of a connection on the loop on which this is used."""
        self._streams = streams
        self._name, self._stream = name, f"OBJ_{name}"
        self._orphans: dict[str, float] = {}
        self._superseded: list[int] = []
        self._has_unreadable = False

    async def look(self, name: str) -> ObjectInfo:
        async def looked() -> ObjectInfo:
            try:
                found = await self._streams.get_last_msg(self._stream, self._head_of(name))
            except NotFoundError:
                return ObjectInfo(name)
            revision = found.seq or 0
            return self._read_head(found.subject or "", found.data or b"{}", revision) or ObjectInfo(name, revision)

        return await retry(looked)

    async def heads(self) -> list[ObjectInfo]:
        """Of all objects that are there."""

        async def read() -> list[ObjectInfo]:
            latest: dict[str, ObjectInfo] = {}
            self._superseded.clear()
            self._has_unreadable = False
            async for head in read_stream(self._streams, self._stream, f"$O.{self._name}.M.>"):
                found = self._read_head(head.subject, head.data, head.metadata.sequence.stream)
                before = latest.pop(head.subject, None)
                if found is None:
                    self._has_unreadable = True
                    continue
                if before is not None:
                    self._superseded.append(before.revision)
                latest[head.subject] = found
            return list(latest.values())

        return [head for head in await retry(read, per_try=None) if head.there]

    def _read_head(self, subject: str, data: bytes, revision: int) -> ObjectInfo | None:
        try:
            return _parsed(data, revision)
        except (AttributeError, RecursionError, TypeError, ValueError):
            log.warning("nats: %s holds no head of an object, and is left out", subject)
            return None

    async def fetch(self, head: ObjectInfo) -> bytes | None:
        """The bytes; None: they are not all there now. Mostly the object has changed: look again."""

        async def opened() -> JetStreamContext.PushSubscription:
            return await self._streams.subscribe(
                self._piece_of(head.pieces), stream=self._stream, ordered_consumer=True
            )

        reading = await retry(opened)
        content, silent = bytearray(), 0
        try:
            info = await reading.consumer_info()
            there = (info.num_pending or 0) + (info.delivered.consumer_seq if info.delivered else 0)
            left = head.count if there >= head.count else 0
            while left:
                try:
                    content += (await reading.next_msg(timeout=SILENT_SECONDS)).data
                    left -= 1
                except TimeoutError:
                    silent += 1  # the server is slow, or has deleted them
                    if silent > MOST_SILENCES or (await self.look(head.name)).revision != head.revision:
                        return None
        except (Error, OSError):
            return None
        finally:
            with suppress(Error, OSError):  # a server that is away has forgotten it anyway
                await reading.unsubscribe()
        return bytes(content) if _digest(content) == head.digest else None

    async def read(self, name: str) -> bytes | None:
        """The bytes of an object as it is now; None: it is not there."""
        for _ in range(TRIES):
            head = await self.look(name)
            if not head.there:
                return None
            if (content := await self.fetch(head)) is not None:
                return content
        raise ServerAway(f"{name} cannot be fetched whole; look into the log of NATS")

    async def put(self, over: ObjectInfo, content: bytes, notes: Mapping[str, str]) -> ObjectInfo:
        """Write an object in the place of `over`. Raises ObjectChanged: another is there by now, and stays."""
        pieces, count = uuid.uuid4().hex, -(-len(content) // PIECE_BYTES)
        try:
            for at in range(0, len(content), PIECE_BYTES):
                await self._publish(self._piece_of(pieces), content[at : at + PIECE_BYTES], {})
            about = {
                "name": over.name,
                "bucket": self._name,
                "nuid": pieces,
                "size": len(content),
                "chunks": count,
                "digest": f"{DIGEST}{_digest(content)}",
                "mtime": rfc3339(now()),
                "options": {"max_chunk_size": PIECE_BYTES},
                "metadata": dict(notes),
            }
            revision = await self._publish_head(over, about, {})
        except (ServerAway, ObjectChanged):
            await self._drop(pieces)
            raise
        if over.there:
            await self._drop(over.pieces)
        return ObjectInfo(over.name, revision, pieces, count, _digest(content), dict(notes))

    async def delete(self, name: str) -> bool:
        """Returns whether it was there. For a day a mark tells others."""
        while (found := await self.look(name)).there:
            mark = json.dumps(self._mark(name)).encode()
            try:
                revision = await self._publish(self._head_of(name), mark, {EXPECTED_LAST: str(found.revision)})
            except ObjectChanged:
                continue
            await self._drop(found.pieces)
            # Only a mark with nothing below it may expire: what it hides would come back.
            if await self._erase_head(found.revision):
                with suppress(ObjectChanged):  # there is a new object by now
                    await self._publish_head(ObjectInfo(name, revision), self._mark(name), {TTL: f"{DAY_SECONDS}s"})
            return True
        return False

    async def delete_if_unchanged(self, head: ObjectInfo) -> bool:
        """Delete what was looked at; False: it is another by now, and stays. The mark of it remains."""
        try:
            await self._publish_head(head, self._mark(head.name), {})
        except ObjectChanged:
            return False
        await self._drop(head.pieces)
        return True

    def _mark(self, name: str) -> Mapping[str, Any]:
        """The head of an object that is deleted."""
        return {"name": name, "bucket": self._name, "size": 0, "chunks": 0, "deleted": True, "nuid": ""}

    async def clear_orphans(self, heads: Iterable[ObjectInfo], after_seconds: float) -> None:
        """Delete the pieces of writers that were killed before their head: those that none of `heads`, all
        that are there, has named for so long; and earlier heads that such writers left.
        """

        async def listed() -> dict[str, int]:
            info = await self._streams.stream_info(self._stream, subjects_filter=self._piece_of(">"))
            return info.state.subjects or {}

        for revision in self._superseded:
            await self._erase_head(revision)
        self._superseded.clear()
        if self._has_unreadable:
            return  # pieces may belong to what it was
        found = {subject.rpartition(".")[2] for subject in await retry(listed, per_try=None)}
        alone = found - {head.pieces for head in heads}
        at = asyncio.get_running_loop().time()
        self._orphans = {pieces: self._orphans.get(pieces, at) for pieces in alone}
        for pieces, since in list(self._orphans.items()):
            if at - since >= after_seconds:
                await self._drop(pieces)
                del self._orphans[pieces]

    @asynccontextmanager
    async def watching(self, client: Client, heard: Callable[[str, bool], object]) -> AsyncGenerator[None]:
        """Tell `heard` of each object by its name whether it is there, then of each change, for as long as the block
        runs; it begins when all is said that there is.
        """

        def on_head(key: str, head: bytes) -> None:
            found = self._read_head(key, head, 0) if head else None
            heard(base64.urlsafe_b64decode(key).decode(), found is not None and found.there)

        async with SubjectWatcher(client, self._stream, self._head_of(""), on_head).watching():
            yield

    async def _publish_head(self, over: ObjectInfo, about: Mapping[str, Any], headers: Mapping[str, str]) -> int:
        """Publish a head over another, and erase that: a rollup would leave its bytes, which tell of people's files."""
        only = {**headers, EXPECTED_LAST: str(over.revision)}
        revision = await self._publish(self._head_of(over.name), json.dumps(about).encode(), only)
        if over.revision:
            await self._erase_head(over.revision)
        return revision

    async def _erase_head(self, revision: int) -> bool:
        """If the server is away the head stays (False), and `clear_orphans` erases it later."""
        try:
            await erase_entry(self._streams, self._stream, revision)
        except (Error, OSError, TimeoutError):
            return False
        return True

    async def _publish(self, subject: str, data: bytes, headers: Mapping[str, str]) -> int:
        message_id = uuid.uuid4().hex

        async def published() -> int:
            try:
                stored = await self._streams.publish(
                    subject, data, timeout=TRY_SECONDS, stream=self._stream, headers={**headers, MESSAGE_ID: message_id}
                )
            except APIError as error:
                if error.err_code not in WRONG_EXPECTED_LAST:
                    raise
                return await self._mine(subject, message_id)
            return stored.seq

        return await retry(published)

    async def _mine(self, subject: str, message_id: str) -> int:
        """After a rejected write: the sequence of our own message, if only the answer was lost. Raises ObjectChanged:
        another process wrote.
        """
        try:
            last = await self._streams.get_last_msg(self._stream, subject)
        except NotFoundError:
            raise ObjectChanged(subject) from None
        if (last.headers or {}).get(MESSAGE_ID) != message_id:
            raise ObjectChanged(subject)
        return last.seq or 0

    async def _drop(self, pieces: str) -> None:
        """Delete chunks; if the server is away they stay, and `clear_orphans` deletes them later."""
        try:
            await erase_subject(self._streams, self._stream, self._piece_of(pieces))
        except (Error, OSError, TimeoutError):
            return

    def _head_of(self, name: str) -> str:
        return f"$O.{self._name}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"

    def _piece_of(self, pieces: str) -> str:
        return f"$O.{self._name}.C.{pieces}"


def _parsed(data: bytes, revision: int) -> ObjectInfo:
    about: dict[str, Any] = json.loads(data)
    name = str(about.get("name", ""))
    if about.get("deleted"):
        return ObjectInfo(name, revision)
    digest = str(about.get("digest", "")).removeprefix(DIGEST)
    notes: dict[str, str] = about.get("metadata") or {}
    return ObjectInfo(
        name,
        revision,
        str(about.get("nuid", "")),
        int(about.get("chunks", 0)),
        digest,
        notes,
        str(about.get("mtime") or ""),
    )


def _digest(content: bytes | bytearray) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
