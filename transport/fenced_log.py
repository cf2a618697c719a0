"""A log with one writer at a time per scope: the server refuses an append that does not name the last entry. And the
secure deletion of messages.

A message that is replaced or purged stays in the server's files until the server rewrites them. A message that is
deleted by its number (`erase_entry`) is overwritten at once, on each replica.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import errno
import json
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import cast

from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from model.outcomes import Reason
from services.conversations import WorkCancelled
from transport.connection import FILE_PATIENCE_SECONDS, TRY_SECONDS, retry
from transport.streams import (
    EXPECTED_LAST,
    EXPECTED_LAST_SUBJECT,
    LOG,
    MESSAGE_ID,
    NO_MESSAGE,
    NOT_TO_DELETE,
    ROLLUP,
    WRONG_EXPECTED_LAST,
    may_pass,
    read_stream,
)


class Fenced(WorkCancelled):
    """Another process owns this scope of the log now: the server rejects every further write. Work under way here is
    cancelled; the new owner does it again.
    """

    def __init__(self, scope: str) -> None:
        super().__init__(Reason.SHUTDOWN)
        self.scope = scope

    def __str__(self) -> str:
        return f"{self.scope} belongs to another process now"


@dataclass(frozen=True, slots=True)
class Epoch:
    """An entry of the log that says who owns the scope from now on.

    Attributes:
        owner: the process; empty: nobody, it was handed back in order. The other fields are kept then.
        at: seconds since 1970.
        crashes: how many owners in a row were lost before the same message was done.
        seen: only messages published before this time can have crashed them all; on the server's clock.
        trying: the id of the message that is tried alone after such crashes; 0: none.
    """

    owner: str
    at: float
    crashes: int = 0
    seen: float = 0.0
    trying: int = 0


@dataclass(frozen=True, slots=True)
class Backlog:
    """Unacknowledged messages when a scope changes its owner; times in seconds since 1970 on the server's clock.

    Attributes:
        oldest: when the oldest of them was published.
        silent_since: the former owner, if it was lost, has received nothing since then.
    """

    oldest: float
    silent_since: float


class FencedLog:
    """The log of one scope, on the loop of its connection."""

    def __init__(self, streams: JetStreamContext, scope: str) -> None:
        self.scope = scope
        self.subjects = f"log.{scope}.>"
        self.is_lost = False
        self.on_lost: Callable[[], object] | None = None
        self.streams = streams
        self._last = 0
        self._epoch = Epoch("", 0.0)
        self._append_lock = asyncio.Lock()

    async def open(self, owner: str, at: float, backlog: Backlog | None = None) -> Epoch:
        """Take the scope over; returns the epoch that begins. `backlog`: None if nothing is unacknowledged."""
        while True:
            self._last, before = await self._read_state()
            epoch = _epoch_after(before, owner, at, backlog)
            try:
                await self._append(f"log.{self.scope}.epoch", _render_epoch(epoch), {ROLLUP: "sub"})
            except Fenced:  # somebody else wrote between the two calls
                continue
            self._epoch = epoch
            return epoch

    async def replace_epoch(self, epoch: Epoch) -> None:
        """Raises as `append`."""
        self._epoch = epoch
        await self.append("epoch", _render_epoch(epoch), {ROLLUP: "sub"})

    async def hand_back(self, at: float) -> None:
        """Release the scope: append an epoch without an owner. For a process that ends normally. Raises as `append`."""
        await self.replace_epoch(replace(self._epoch, owner="", at=at))

    async def append(self, branch: str, data: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Add an entry below the scope; returns its number.

        Raises:
            Fenced: the scope belongs to another process.
            OSError: the server has not answered for a minute.
        """
        if self.is_lost:
            raise Fenced(self.scope)
        try:
            return await self._append(f"log.{self.scope}.{branch}", data, headers or {})
        except Fenced:
            if not self.is_lost:
                self.is_lost = True
                if self.on_lost is not None:
                    self.on_lost()
            raise

    async def entries(self, since: float | None = None, branch: str = ">") -> AsyncIterator[Msg]:
        """Yield the entries of the scope now, oldest first. `since`: seconds since 1970; None: from the beginning."""
        async for entry in read_stream(self.streams, LOG, f"log.{self.scope}.{branch}", since):
            yield entry

    async def _read_state(self) -> tuple[int, Epoch | None]:
        try:
            last = (await self.streams.get_last_msg(LOG, self.subjects)).seq or 0
        except NotFoundError:
            return 0, None
        try:
            found = await self.streams.get_last_msg(LOG, f"log.{self.scope}.epoch")
        except NotFoundError:
            return last, None
        return last, _parse_epoch(found.data or b"{}")

    async def _append(self, subject: str, data: bytes, headers: Mapping[str, str]) -> int:
        async with self._append_lock:
            sent = {**headers, MESSAGE_ID: uuid.uuid4().hex, EXPECTED_LAST_SUBJECT: self.subjects}

            async def store() -> int:
                while True:
                    sent[EXPECTED_LAST] = str(self._last)
                    try:
                        answer = await self.streams.publish(subject, data, TRY_SECONDS, LOG, sent)
                    except APIError as error:
                        if may_pass(error.code, error.err_code):
                            raise  # `retry` tries again
                        if error.err_code not in WRONG_EXPECTED_LAST:
                            raise OSError(errno.EIO, f"NATS refuses it ({error.description})") from error
                        if await self._was_stored(sent[MESSAGE_ID]):
                            return self._last
                    else:
                        # If the server calls it a duplicate, it is our own entry whose answer was lost.
                        self._last = answer.seq
                        return answer.seq

            return await retry(store, FILE_PATIENCE_SECONDS, per_try=None)

    async def _was_stored(self, message_id: str) -> bool:
        """Return, after a rejected append, True if the entry is in the log and only the answer was lost; False if the
        last known entry has expired, so that the append is to be repeated. Raises Fenced if another process has
        written.
        """
        known, last = self._last, await self.streams.get_last_msg(LOG, self.subjects)
        headers = cast("Mapping[str, str]", last.headers or {})
        mine = headers.get(MESSAGE_ID) == message_id
        # A new owner begins with an epoch, which does not expire and is newer than our last entry.
        if not mine and (last.seq or 0) >= known:
            raise Fenced(self.scope)
        self._last = last.seq or 0
        return mine


def _epoch_after(before: Epoch | None, owner: str, at: float, backlog: Backlog | None) -> Epoch:
    """Return the epoch after `before`. Crashes are forgotten once no message that the lost owners received is left."""
    if before is None or backlog is None:
        return Epoch(owner, at)
    was_lost = bool(before.owner)
    if before.trying or backlog.oldest < before.seen:
        return replace(before, owner=owner, at=at, crashes=before.crashes + was_lost)
    return Epoch(owner, at, crashes=1, seen=backlog.silent_since) if was_lost else Epoch(owner, at)


def _parse_epoch(data: bytes) -> Epoch:
    """Fields of another version of the program are left out."""
    values = json.loads(data)
    return Epoch(**{each.name: values[each.name] for each in fields(Epoch) if each.name in values})


def _render_epoch(epoch: Epoch) -> bytes:
    return json.dumps(asdict(epoch)).encode()


async def erase_subject(streams: JetStreamContext, stream: str, subject: str) -> None:
    """Overwrite the messages of a subject. Raises as the client."""
    numbers = [
        message.metadata.sequence.stream async for message in read_stream(streams, stream, subject, headers_only=True)
    ]
    for number in numbers:
        await erase_entry(streams, stream, number)


async def erase_entry(streams: JetStreamContext, stream: str, number: int) -> None:
    """Overwrite one message, if it is still there. Raises as the client."""
    try:
        await streams.delete_msg(stream, number)
    except APIError as error:
        if error.err_code not in (NO_MESSAGE, *NOT_TO_DELETE):
            raise
