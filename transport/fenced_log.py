"""A log with one writer at a time per scope: the server refuses an append that does not name the last entry. And the
secure deletion of messages.

What a newer message replaces, or a purge takes out, stays in the server's block files until the server writes them
anew. What is deleted by its number (`erase`) is overwritten at once, on each replica.
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

from transport.connection import FILE_PATIENCE_SECONDS, TRY_SECONDS, retry
from transport.errors import Fenced
from transport.streams import (
    DELETE_FAILED,
    EXPECTED_LAST,
    EXPECTED_LAST_SUBJECT,
    LOG,
    MESSAGE_ID,
    NO_MESSAGE,
    ROLLUP,
    WRONG_EXPECTED_LAST,
    read_stream,
)


@dataclass(frozen=True, slots=True)
class Epoch:
    """An entry of the log that says who owns the scope from now on.

    Attributes:
        owner: the process; empty: nobody, it was handed back in order. What was suspected before still is.
        at: seconds since 1970.
        crashes: how many owners in a row were lost before one and the same message was done.
        seen: only what was published before can have ended all of them; on the server's clock.
        trying: the message that is tried alone, since one of those that wait has ended its worker again and again.
    """

    owner: str
    at: float
    crashes: int = 0
    seen: float = 0.0
    trying: int = 0


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is unacknowledged when a scope changes its owner; times in seconds since 1970 on the server's clock.

    Attributes:
        oldest: when the oldest message was published that is not acknowledged.
        lost: since when the former owner has received nothing, if it was lost.
    """

    oldest: float
    lost: float


class FencedLog:
    """The log of one scope, on the loop of its connection."""

    def __init__(self, streams: JetStreamContext, scope: str) -> None:
        self.scope = scope
        self.all = f"log.{scope}.>"
        self.lost = False
        self.on_lost: Callable[[], object] | None = None
        self.streams = streams
        self._last = 0
        self._epoch = Epoch("", 0.0)
        self._turn = asyncio.Lock()

    async def open(self, owner: str, at: float, waiting: Backlog | None = None) -> Epoch:
        """Take the scope over; gives the epoch that begins. `waiting`: None where nothing waits."""
        while True:
            self._last, before = await self._state()
            epoch = _next(before, owner, at, waiting)
            try:
                await self._append(f"log.{self.scope}.epoch", _rendered(epoch), {ROLLUP: "sub"})
            except Fenced:  # somebody else wrote between the look and the append
                continue
            self._epoch = epoch
            return epoch

    async def note(self, epoch: Epoch) -> None:
        """Replace the current epoch's entry, for instance with the message that is being tried alone. Raises as
        `append`.
        """
        self._epoch = epoch
        await self.append("epoch", _rendered(epoch), {ROLLUP: "sub"})

    async def hand_back(self, at: float) -> None:
        """Release the scope: append an epoch without an owner. For a process that ends normally. Raises as `append`."""
        await self.note(replace(self._epoch, owner="", at=at))

    async def append(self, branch: str, data: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Add an entry below the scope; gives its number.

        Raises:
            Fenced: the scope belongs to another process.
            OSError: the server has not answered for a minute.
        """
        if self.lost:
            raise Fenced(self.scope)
        try:
            return await self._append(f"log.{self.scope}.{branch}", data, headers or {})
        except Fenced:
            self.mark_lost()
            raise

    def mark_lost(self) -> None:
        """Write nothing more: the scope is known to belong to another."""
        if not self.lost:
            self.lost = True
            if self.on_lost is not None:
                self.on_lost()

    async def entries(self, since: float | None = None, branch: str = ">") -> AsyncIterator[Msg]:
        """What is kept in the scope now, oldest first. `since`: seconds since 1970; None: from the beginning."""
        async for entry in read_stream(self.streams, LOG, f"log.{self.scope}.{branch}", since):
            yield entry

    async def _state(self) -> tuple[int, Epoch | None]:
        try:
            last = (await self.streams.get_last_msg(LOG, self.all)).seq or 0
        except NotFoundError:
            return 0, None
        try:
            found = await self.streams.get_last_msg(LOG, f"log.{self.scope}.epoch")
        except NotFoundError:
            return last, None
        return last, _read(found.data or b"{}")

    async def _append(self, subject: str, data: bytes, headers: Mapping[str, str]) -> int:
        async with self._turn:
            sent = {**headers, MESSAGE_ID: uuid.uuid4().hex, EXPECTED_LAST_SUBJECT: self.all}

            async def stored() -> int:
                while True:
                    sent[EXPECTED_LAST] = str(self._last)
                    try:
                        answer = await self.streams.publish(subject, data, TRY_SECONDS, LOG, sent)
                    except APIError as error:
                        if error.err_code not in WRONG_EXPECTED_LAST:
                            raise OSError(errno.EIO, f"NATS refuses it ({error.description})") from error
                        if await self._stored(sent[MESSAGE_ID]):
                            return self._last
                    else:
                        # A repeat is our own entry whose answer was lost.
                        self._last = answer.seq
                        return answer.seq

            return await retry(stored, FILE_PATIENCE_SECONDS, per_try=None)

    async def _stored(self, message_id: str) -> bool:
        """After a rejected append: True if the entry is in the log and only the answer was lost. False if the last
        known
        entry has expired; then append again. Raises Fenced if another process has written.
        """
        known, last = self._last, await self.streams.get_last_msg(LOG, self.all)
        headers = cast("Mapping[str, str]", last.headers or {})
        mine = headers.get(MESSAGE_ID) == message_id
        # Whoever takes over begins with an epoch, which does not run out and is newer than all that we know.
        if not mine and (last.seq or 0) >= known:
            raise Fenced(self.scope)
        self._last = last.seq or 0
        return mine


def _next(before: Epoch | None, owner: str, at: float, waiting: Backlog | None) -> Epoch:
    """The epoch after another; a new beginning where everything is done that its lost owners can have seen."""
    if before is None or waiting is None:
        return Epoch(owner, at)
    lost = bool(before.owner)
    if before.trying or waiting.oldest < before.seen:
        return replace(before, owner=owner, at=at, crashes=before.crashes + lost)
    return Epoch(owner, at, crashes=1, seen=waiting.lost) if lost else Epoch(owner, at)


def _read(data: bytes) -> Epoch:
    """Of what another version of the program has written, what this one knows."""
    told = json.loads(data)
    return Epoch(**{each.name: told[each.name] for each in fields(Epoch) if each.name in told})


def _rendered(epoch: Epoch) -> bytes:
    return json.dumps(asdict(epoch)).encode()


async def erase(streams: JetStreamContext, stream: str, subject: str) -> None:
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
        if error.err_code not in (NO_MESSAGE, DELETE_FAILED):
            raise
