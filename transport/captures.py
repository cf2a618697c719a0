"""The stream CAPTURES: workers send captures, and edits and deletions of captured messages; the process with the role
team stores them in the archive.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import errno
import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.errors import APIError, NotFoundError
from pydantic import TypeAdapter
from reactivex.subject import Subject

from clock import now
from clock.timeouts import Backoff
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind, snowflake_time
from model.outcomes import Outcome, OutcomeKind, Reason, Result
from services.team import Capture, PendingCapture, Revision, pending
from streams.captures import RemoteRevisions
from transport.connection import AWAY_ERRORS, streams_of
from transport.lease import Lease
from transport.streams import CAPTURES, MESSAGE_ID, NOT_TO_DELETE

ALL_CAPTURES = "captures.>"
PART_HEADER = "Part"
"""The header with the ids of the part that a capture is from."""
REVISIONS_HEADER = "Revisions"
"""The header of edits and deletions: their number."""
TRY_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 10.0
FORGET_SECONDS = 30.0
MAX_OPEN = 256
"""Captures without an acknowledgement: as many as may share an append, and some that wait for the next."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CaptureSender:
    """Sends captures to the process that keeps the archive."""

    client: Client

    async def send(self, capture: Capture) -> None:
        """Send a capture. Returns when the server has it, and waits while the server is away. If the caller is
        cancelled meanwhile, the capture is not sent, and its messages are delivered again.
        """
        part = capture.part
        assert part is not None, "only a fresh capture is handed over"  # noqa: S101 (for the type checker)
        await self._publish(part.guild_id, *encode_capture(capture, part))

    async def send_revisions(self, guild_id: int | None, revisions: Sequence[Revision]) -> None:
        """Send how captured messages read now. Returns as `send`."""
        await self._publish(guild_id, encode_revisions(revisions), {REVISIONS_HEADER: str(len(revisions))})

    async def is_any_waiting(self) -> bool:
        """Return True if a capture is not stored yet, or if the server does not say."""
        try:
            return (await streams_of(self.client).stream_info(CAPTURES)).state.messages > 0
        except AWAY_ERRORS:
            return True

    async def _publish(self, guild_id: int | None, data: bytes, headers: dict[str, str]) -> None:
        backoff = Backoff(0.2, LONGEST_PAUSE_SECONDS)
        while True:
            try:
                subject = f"captures.{guild_id or 0}"
                await streams_of(self.client).publish(subject, data, TRY_SECONDS, CAPTURES, headers)
            except (Error, TimeoutError, APIError) as error:
                pause = backoff.pause()
                log.warning("a capture waits: NATS does not take it (%s); tried again in %g s", error, pause)
                await asyncio.sleep(pause)
            else:
                return


class CaptureReceiver:
    """Receives the captures that workers sent, and what has changed in captured messages; one process at a time.
    `captures`: the received ones; completed by `stop`.
    """

    def __init__(self, client: Client, process: str, *, lease_seconds: float) -> None:
        self.captures: Subject[Capture | RemoteRevisions] = Subject()
        self.lease = Lease(client, CAPTURES, ALL_CAPTURES, process, seconds=lease_seconds, most_unacked=MAX_OPEN)
        self._client = client
        self._numbers = 0
        self._waiting: dict[int, Msg] = {}  # by the number of the part
        self._early: list[Msg] = []
        self._is_open = self._is_closed = self._is_released = False
        self._acks: set[asyncio.Task[None]] = set()
        self._dropped: set[int] = set()  # by the number in the stream
        self._has_ended = asyncio.Event()

    async def take(self) -> bool:
        """Take the lease; False: another process has it. Captures are kept until `begin`. Raises as the client."""
        return await self.lease.take(self._deliver)

    def begin(self) -> None:
        """Emit captures from now on; to be called after subscribing to `captures`."""
        self._is_open = True
        early, self._early = self._early, []
        for message in early:
            self._emit(message)

    def stop(self) -> None:
        """Emit no more captures; `on_result` goes on for those emitted."""
        self._is_closed = True
        self.captures.on_completed()

    def on_result(self, result: Result) -> None:
        """Acknowledge the capture of a result, unless it failed or was cut off. For each result of the graph."""
        if not isinstance(result, Outcome):
            return
        must_stay = result.result is OutcomeKind.FAILED or (
            result.result is OutcomeKind.CANCELLED and result.reason == Reason.SHUTDOWN
        )
        self._end(result.part.number, not must_stay)

    def _end(self, number: int, is_done: bool) -> None:
        message = self._waiting.pop(number, None)
        self._has_ended.set()
        if message is not None and is_done:
            task = asyncio.get_running_loop().create_task(self._acknowledge(message))
            self._acks.add(task)
            task.add_done_callback(self._acks.discard)

    async def forget(self, user_id: int) -> int:
        """Delete the captures in the stream in which a person has written; returns their number. First waits until
        emitted ones have their result: remove the person from the archive afterwards. Raises OSError: NATS does not
        answer, or an emitted capture gets no result.
        """
        streams, number, dropped = streams_of(self._client), 1, 0
        try:
            async with asyncio.timeout(FORGET_SECONDS):
                while self._handles_person(user_id):
                    self._has_ended.clear()
                    await self._has_ended.wait()
                while True:
                    try:
                        found = await streams.get_msg(CAPTURES, number, ALL_CAPTURES, next=True)
                    except NotFoundError:
                        return dropped
                    number = (found.seq or number) + 1
                    if has_written_in(found.data or b"", user_id) and not self._handles_message(number - 1):
                        self._dropped.add(number - 1)
                        dropped += await self._delete(number - 1)
        except AWAY_ERRORS as error:
            raise OSError(errno.EIO, "captures on their way are not looked through; NATS does not answer") from error

    async def _delete(self, number: int) -> bool:
        """Return False if the message was acknowledged a moment before."""
        try:
            return await streams_of(self._client).delete_msg(CAPTURES, number)
        except APIError as error:
            if error.err_code not in NOT_TO_DELETE:
                raise
            return False

    def _handles_person(self, user_id: int) -> bool:
        return any(has_written_in(message.data, user_id) for message in self._waiting.values())

    def _handles_message(self, number: int) -> bool:
        return any(message.metadata.sequence.stream == number for message in self._waiting.values())

    async def release(self) -> None:
        """Give the lease back, after all acknowledgements are sent."""
        self._is_released = True
        while self._acks:
            await asyncio.gather(*self._acks, return_exceptions=True)
        await self.lease.release()

    async def _deliver(self, message: Msg) -> None:
        if self._is_closed:
            return
        if self._is_open:
            self._emit(message)
        else:
            self._early.append(message)

    def _emit(self, message: Msg) -> None:
        if message.metadata.sequence.stream in self._dropped:
            return
        self._numbers += 1
        headers = cast("Mapping[str, str]", message.headers or {})
        try:
            if REVISIONS_HEADER in headers:
                guild_id = int(message.subject.rpartition(".")[2]) or None
                ended = partial(self._end, self._numbers)
                capture = RemoteRevisions(guild_id, decode_revisions(message.data), ended)
            else:
                capture = decode_capture(message.data, headers, self._numbers)
        except (pending.DamagedCapture, KeyError, ValueError) as error:
            log.error("a capture cannot be read, and stays where it is: %s", error)  # noqa: TRY400 (a line for the operator)
            return
        self._waiting[self._numbers] = message
        self.captures.on_next(capture)

    async def _acknowledge(self, message: Msg) -> None:
        backoff = Backoff(0.1, TRY_SECONDS)
        while True:
            try:
                await message.ack_sync(timeout=TRY_SECONDS)
            except (Error, TimeoutError):
                if self._is_released:
                    return  # the next receiver gets it, and recognises it as stored
                await asyncio.sleep(backoff.pause())
            else:
                return


def has_written_in(data: bytes, user_id: int) -> bool:
    """Return whether a person has written a message of an encoded capture, or has edited one."""
    with suppress(ValueError):
        return any(each.author_id == user_id for each in decode_revisions(data))
    try:
        capture = pending.parse_pending(data).capture
    except pending.DamagedCapture:
        return False
    return any(each.author_id == user_id for each in capture.messages)


def encode_capture(capture: Capture, part: Part) -> tuple[bytes, dict[str, str]]:
    """Return the data and the headers of its message."""
    # The id is the same if another worker captures these messages again after a crash.
    message_id = f"{capture.conversation_id}-{capture.messages[-1].message_id}-{len(capture.messages)}-{part.last.id}"
    headers = {MESSAGE_ID: message_id, PART_HEADER: render_part(part)}
    # Its place is in the header.
    return pending.render_pending(PendingCapture(now(), replace(capture, part=None), ())), headers


_REVISIONS = TypeAdapter(tuple[Revision, ...])


def encode_revisions(revisions: Sequence[Revision]) -> bytes:
    return _REVISIONS.dump_json(tuple(revisions))


def decode_revisions(data: bytes) -> tuple[Revision, ...]:
    """Decode what `encode_revisions` has returned. Raises ValueError."""
    return _REVISIONS.validate_json(data)


def decode_capture(data: bytes, headers: Mapping[str, str], number: int) -> Capture:
    """Decode a capture from a message of NATS. Its part has ids only, as in `parse_part`. `number`: that of the part.

    Raises DamagedCapture, KeyError, ValueError.
    """
    capture = pending.parse_pending(data).capture
    return replace(capture, part=parse_part(headers[PART_HEADER], number))


def render_part(part: Part) -> str:
    """Return the ids of a part, without texts, as JSON."""
    place = part.place
    fields = {
        "place": place.id,
        "parent": place.parent_id,
        "thread": place.is_thread,
        "guild": part.guild_id,
        "author": part.author.id,
        "messages": list(part.message_ids),
    }
    return json.dumps(fields)


def parse_part(text: str, number: int) -> Part:
    """Return a part with these ids and empty texts. Raises ValueError, KeyError."""
    fields = cast("dict[str, Any]", json.loads(text))
    kind = PlaceKind.THREAD if fields["thread"] else PlaceKind.CHANNEL
    place = Place(fields["place"], kind, guild_id=fields["guild"], parent_id=fields["parent"])
    author = Author(fields["author"], "")
    messages = tuple(
        Message(each, place.id, author, "", snowflake_time(each), place.guild_id) for each in fields["messages"]
    )
    return Part(number, messages, AuthorType.TEAM_MEMBER, place, now())
