"""An object store with compare-and-set: an object is replaced only if it is still the version that the writer read.

Objects have the usual format of NATS (`nats object ls evidence` shows them): pieces, and a head that names them. The
`put` of nats-py writes a head unconditionally; here the server refuses it if the head is not the one that was read.
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

from clock import DAY, now, rfc3339
from transport.connection import TRY_SECONDS, ServerAway, retry
from transport.fenced_log import erase_entry, erase_subject
from transport.key_value import SubjectWatcher
from transport.streams import EXPECTED_LAST, MESSAGE_ID, TTL, WRONG_EXPECTED_LAST, read_stream

log = logging.getLogger(__name__)

PIECE_BYTES = 256 * 1024
"""The bytes of an object in one message: by default a server takes at most a megabyte."""
TRIES = 8
SILENT_SECONDS, MAX_SILENCES = 0.3, 10
DIGEST_PREFIX = "SHA-256="


class ObjectChanged(Exception):
    """Another writer has written or deleted the object."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """The head of an object.

    Attributes:
        revision: the number of the head in the stream; 0: there is none.
        pieces: the last token of its pieces' subject; empty: the object does not exist.
        count: of its pieces.
        digest: SHA-256 of its bytes, in base64.
        notes: metadata that the writer gave.
        written: when, in RFC 3339; empty: not known.
    """

    name: str
    revision: int = 0
    pieces: str = ""
    count: int = 0
    digest: str = ""
    notes: Mapping[str, str] = field(default_factory=dict[str, str])
    written: str = field(default="", compare=False)

    @property
    def exists(self) -> bool:
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

    async def find_head(self, name: str) -> ObjectInfo:
        async def find() -> ObjectInfo:
            try:
                found = await self._streams.get_last_msg(self._stream, self._head_subject(name))
            except NotFoundError:
                return ObjectInfo(name)
            revision = found.seq or 0
            return self._parse_head(found.subject or "", found.data or b"{}", revision) or ObjectInfo(name, revision)

        return await retry(find)

    async def heads(self) -> list[ObjectInfo]:
        """Return the heads of all objects that exist."""

        async def read() -> list[ObjectInfo]:
            latest: dict[str, ObjectInfo] = {}
            self._superseded.clear()
            self._has_unreadable = False
            async for head in read_stream(self._streams, self._stream, f"$O.{self._name}.M.>"):
                found = self._parse_head(head.subject, head.data, head.metadata.sequence.stream)
                before = latest.pop(head.subject, None)
                if found is None:
                    self._has_unreadable = True
                    continue
                if before is not None:
                    self._superseded.append(before.revision)
                latest[head.subject] = found
            return list(latest.values())

        return [head for head in await retry(read, per_try=None) if head.exists]

    def _parse_head(self, subject: str, data: bytes, revision: int) -> ObjectInfo | None:
        try:
            return _parse_info(data, revision)
        except (AttributeError, RecursionError, TypeError, ValueError):
            log.warning("nats: %s holds no head of an object, and is left out", subject)
            return None

    async def fetch(self, head: ObjectInfo) -> bytes | None:
        """Return the bytes of an object; None: some are missing, mostly since the object has changed."""

        async def subscribe() -> JetStreamContext.PushSubscription:
            return await self._streams.subscribe(
                self._piece_subject(head.pieces), stream=self._stream, ordered_consumer=True
            )

        subscription = await retry(subscribe)
        content, silent = bytearray(), 0
        try:
            info = await subscription.consumer_info()
            stored = (info.num_pending or 0) + (info.delivered.consumer_seq if info.delivered else 0)
            left = head.count if stored >= head.count else 0
            while left:
                try:
                    content += (await subscription.next_msg(timeout=SILENT_SECONDS)).data
                    left -= 1
                except TimeoutError:
                    silent += 1  # the server is slow, or has deleted them
                    if silent > MAX_SILENCES or (await self.find_head(head.name)).revision != head.revision:
                        return None
        except (Error, OSError):
            return None
        finally:
            with suppress(Error, OSError):  # a server that is away has forgotten it anyway
                await subscription.unsubscribe()
        return bytes(content) if _digest(content) == head.digest else None

    async def read(self, name: str) -> bytes | None:
        """Return the current bytes of an object; None: it does not exist."""
        for _ in range(TRIES):
            head = await self.find_head(name)
            if not head.exists:
                return None
            if (content := await self.fetch(head)) is not None:
                return content
        raise ServerAway(f"{name} cannot be fetched whole; look into the log of NATS")

    async def put(self, previous: ObjectInfo, content: bytes, notes: Mapping[str, str]) -> ObjectInfo:
        """Replace the object `previous`. Raises ObjectChanged: it is no longer the current one, and nothing changes."""
        pieces, count = uuid.uuid4().hex, -(-len(content) // PIECE_BYTES)
        try:
            for at in range(0, len(content), PIECE_BYTES):
                await self._publish(self._piece_subject(pieces), content[at : at + PIECE_BYTES], {})
            fields = {
                "name": previous.name,
                "bucket": self._name,
                "nuid": pieces,
                "size": len(content),
                "chunks": count,
                "digest": f"{DIGEST_PREFIX}{_digest(content)}",
                "mtime": rfc3339(now()),
                "options": {"max_chunk_size": PIECE_BYTES},
                "metadata": dict(notes),
            }
            revision = await self._publish_head(previous, fields, {})
        except (ServerAway, ObjectChanged):
            await self._erase_pieces(pieces)
            raise
        if previous.exists:
            await self._erase_pieces(previous.pieces)
        return ObjectInfo(previous.name, revision, pieces, count, _digest(content), dict(notes))

    async def delete(self, name: str) -> bool:
        """Return whether it existed. A delete marker stays for a day, for watchers."""
        while (found := await self.find_head(name)).exists:
            marker = json.dumps(self._marker(name)).encode()
            try:
                revision = await self._publish(self._head_subject(name), marker, {EXPECTED_LAST: str(found.revision)})
            except ObjectChanged:
                continue
            await self._erase_pieces(found.pieces)
            # Only a marker without an older head may expire: otherwise that head would become current again.
            if await self._erase_head(found.revision):
                with suppress(ObjectChanged):  # somebody has written a new object
                    await self._publish_head(ObjectInfo(name, revision), self._marker(name), {TTL: f"{DAY}s"})
            return True
        return False

    async def delete_if_unchanged(self, head: ObjectInfo) -> bool:
        """Delete an object; False: `head` is no longer the current one, and nothing changes. The marker stays."""
        try:
            await self._publish_head(head, self._marker(head.name), {})
        except ObjectChanged:
            return False
        await self._erase_pieces(head.pieces)
        return True

    def _marker(self, name: str) -> Mapping[str, Any]:
        return {"name": name, "bucket": self._name, "size": 0, "chunks": 0, "deleted": True, "nuid": ""}

    async def clear_orphans(self, heads: Iterable[ObjectInfo], after_seconds: float) -> None:
        """Delete what killed writers left: pieces that no head has named for `after_seconds`, and superseded heads.
        `heads`: those of all objects, just read.
        """

        async def list_pieces() -> dict[str, int]:
            info = await self._streams.stream_info(self._stream, subjects_filter=self._piece_subject(">"))
            return info.state.subjects or {}

        for revision in self._superseded:
            await self._erase_head(revision)
        self._superseded.clear()
        if self._has_unreadable:
            return  # some pieces may belong to it
        found = {subject.rpartition(".")[2] for subject in await retry(list_pieces, per_try=None)}
        alone = found - {head.pieces for head in heads}
        at = asyncio.get_running_loop().time()
        self._orphans = {pieces: self._orphans.get(pieces, at) for pieces in alone}
        for pieces, since in list(self._orphans.items()):
            if at - since >= after_seconds:
                await self._erase_pieces(pieces)
                del self._orphans[pieces]

    @asynccontextmanager
    async def watching(self, client: Client, on_object: Callable[[str, bool], object]) -> AsyncGenerator[None]:
        """Call `on_object` with the name of each object and whether it exists, then for each change, until the context
        ends; it begins once all objects are reported.
        """

        def on_head(key: str, head: bytes) -> None:
            found = self._parse_head(key, head, 0) if head else None
            on_object(base64.urlsafe_b64decode(key).decode(), found is not None and found.exists)

        async with SubjectWatcher(client, self._stream, self._head_subject(""), on_head).watching():
            yield

    async def _publish_head(self, previous: ObjectInfo, fields: Mapping[str, Any], headers: Mapping[str, str]) -> int:
        """Publish a head, and erase the previous one: a rollup would leave its bytes, which tell of people's files."""
        expected = {**headers, EXPECTED_LAST: str(previous.revision)}
        revision = await self._publish(self._head_subject(previous.name), json.dumps(fields).encode(), expected)
        if previous.revision:
            await self._erase_head(previous.revision)
        return revision

    async def _erase_head(self, revision: int) -> bool:
        """Erase a head. Returns False if the server is away: the head stays, and `clear_orphans` erases it later."""
        try:
            await erase_entry(self._streams, self._stream, revision)
        except (Error, OSError, TimeoutError):
            return False
        return True

    async def _publish(self, subject: str, data: bytes, headers: Mapping[str, str]) -> int:
        message_id = uuid.uuid4().hex

        async def publish() -> int:
            try:
                stored = await self._streams.publish(
                    subject, data, timeout=TRY_SECONDS, stream=self._stream, headers={**headers, MESSAGE_ID: message_id}
                )
            except APIError as error:
                if error.err_code not in WRONG_EXPECTED_LAST:
                    raise
                return await self._own_sequence(subject, message_id)
            return stored.seq

        return await retry(publish)

    async def _own_sequence(self, subject: str, message_id: str) -> int:
        """Return, after a rejected write, the number of our message if its answer was lost. Raises ObjectChanged."""
        try:
            last = await self._streams.get_last_msg(self._stream, subject)
        except NotFoundError:
            raise ObjectChanged(subject) from None
        if (last.headers or {}).get(MESSAGE_ID) != message_id:
            raise ObjectChanged(subject)
        return last.seq or 0

    async def _erase_pieces(self, pieces: str) -> None:
        """Erase the pieces of an object. If the server is away they stay, and `clear_orphans` deletes them later."""
        try:
            await erase_subject(self._streams, self._stream, self._piece_subject(pieces))
        except (Error, OSError, TimeoutError):
            return

    def _head_subject(self, name: str) -> str:
        return f"$O.{self._name}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"

    def _piece_subject(self, pieces: str) -> str:
        return f"$O.{self._name}.C.{pieces}"


def _parse_info(data: bytes, revision: int) -> ObjectInfo:
    fields: dict[str, Any] = json.loads(data)
    name = str(fields.get("name", ""))
    if fields.get("deleted"):
        return ObjectInfo(name, revision)
    digest = str(fields.get("digest", "")).removeprefix(DIGEST_PREFIX)
    notes: dict[str, str] = fields.get("metadata") or {}
    return ObjectInfo(
        name,
        revision,
        str(fields.get("nuid", "")),
        int(fields.get("chunks", 0)),
        digest,
        notes,
        str(fields.get("mtime") or ""),
    )


def _digest(content: bytes | bytearray) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
