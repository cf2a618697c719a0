"""The stream CAPTURES: workers send what the team wrote, the process with the role team stores it in the archive."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import errno
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.errors import APIError, NotFoundError
from reactivex.subject import Subject

from clock import now
from clock.timeouts import Backoff
from model.batches import Part
from model.messages import Author, AuthorType, Message, Place, PlaceKind, snowflake_time
from model.outcomes import Outcome, OutcomeKind, Reason, Result
from services.team import Capture, PendingCapture, captures
from transport.connection import AWAY_ERRORS, streams_of
from transport.lease import Lease
from transport.streams import CAPTURES, DELETE_FAILED, MESSAGE_ID

SUBJECTS = "captures.>"
PART = "Part"
"""The header with what a stored capture says of where it is from."""
TRY_SECONDS, LONGEST_SECONDS = 2.0, 10.0
FORGET_SECONDS = 30.0
MOST_OPEN = 256
"""Captures that the writer has in hand: as many as may share an append, and some that wait for it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CaptureSender:
    """Sends captures to the process that keeps the archive."""

    client: Client

    async def give(self, capture: Capture) -> None:
        """Returns when the server has it. A server that is away is waited for: who is cancelled meanwhile has not given
        it, and its messages come again.
        """
        part = capture.part
        assert part is not None, "only a fresh capture is handed over"  # noqa: S101 (for the type checker)
        data, headers = encoded(capture, part)
        backoff = Backoff(0.2, LONGEST_SECONDS)
        while True:
            try:
                subject = f"captures.{part.guild_id or 0}"
                await streams_of(self.client).publish(subject, data, TRY_SECONDS, CAPTURES, headers)
            except (Error, TimeoutError, APIError) as error:
                pause = backoff.pause()
                log.warning("a capture waits: NATS does not take it (%s); tried again in %g s", error, pause)
                await asyncio.sleep(pause)
            else:
                return


class CaptureReceiver:
    """Receives the captures that workers sent; one process at a time.

    Attributes:
        captures: those that come; completed by `stop`.
    """

    def __init__(self, client: Client, process: str, *, lease_seconds: float) -> None:
        self.captures: Subject[Capture] = Subject()
        self.lease = Lease(client, CAPTURES, SUBJECTS, process, seconds=lease_seconds, most_unacked=MOST_OPEN)
        self._client = client
        self._numbers = 0
        self._waiting: dict[int, Msg] = {}  # by the number of the part
        self._held: list[Msg] = []
        self._open = self._closed = self._given_back = False
        self._acks: set[asyncio.Task[None]] = set()
        self._dropped: set[int] = set()  # by the number in the stream
        self._ended = asyncio.Event()

    async def take(self) -> bool:
        """Return whether nobody else is the writer. What comes is kept until `begin`. Raises as the client."""
        return await self.lease.take(self._deliver)

    def begin(self) -> None:
        """Have somebody subscribed first."""
        self._open = True
        held, self._held = self._held, []
        for message in held:
            self._emit(message)

    def stop(self) -> None:
        """Take up no more; what is in hand is brought to its end."""
        self._closed = True
        self.captures.on_completed()

    def settled(self, result: Result) -> None:
        """To be called with each result of the graph: what is stored, or taught nothing, does not come again."""
        if not isinstance(result, Outcome):
            return
        stays = result.result is OutcomeKind.FAILED or (
            result.result is OutcomeKind.CANCELLED and result.reason == Reason.SHUTDOWN
        )
        message = self._waiting.pop(result.part.number, None)
        self._ended.set()
        if message is not None and not stays:
            task = asyncio.get_running_loop().create_task(self._acknowledge(message))
            self._acks.add(task)
            task.add_done_callback(self._acks.discard)

    async def forget(self, user_id: int) -> int:
        """Drop the captures that a person takes part in and that nobody has stored; gives their number. Those in hand
        are stored when this returns: what is stored is to be changed afterwards.

        Raises:
            OSError: NATS does not answer, or something stays in hand.
        """
        streams, number, dropped = streams_of(self._client), 1, 0
        try:
            async with asyncio.timeout(FORGET_SECONDS):
                while self._in_hand(user_id):
                    self._ended.clear()
                    await self._ended.wait()
                while True:
                    try:
                        found = await streams.get_msg(CAPTURES, number, SUBJECTS, next=True)
                    except NotFoundError:
                        return dropped
                    number = (found.seq or number) + 1
                    if takes_part(found.data or b"", user_id) and not self._has(number - 1):
                        self._dropped.add(number - 1)
                        dropped += await self._delete(number - 1)
        except AWAY_ERRORS as error:
            raise OSError(errno.EIO, "captures on their way are not looked through; NATS does not answer") from error

    async def _delete(self, number: int) -> bool:
        """Return whether this did it, and not an acknowledgement a moment before."""
        try:
            return await streams_of(self._client).delete_msg(CAPTURES, number)
        except APIError as error:
            if error.err_code != DELETE_FAILED:
                raise
            return False

    def _in_hand(self, user_id: int) -> bool:
        return any(takes_part(message.data, user_id) for message in self._waiting.values())

    def _has(self, number: int) -> bool:
        return any(message.metadata.sequence.stream == number for message in self._waiting.values())

    async def release(self) -> None:
        """Give the right back, once what is settled is acknowledged."""
        self._given_back = True
        while self._acks:
            await asyncio.gather(*self._acks, return_exceptions=True)
        await self.lease.release()

    async def _deliver(self, message: Msg) -> None:
        if self._closed:
            return
        if self._open:
            self._emit(message)
        else:
            self._held.append(message)

    def _emit(self, message: Msg) -> None:
        if message.metadata.sequence.stream in self._dropped:
            return
        self._numbers += 1
        headers = cast("Mapping[str, str]", message.headers or {})
        try:
            capture = decoded(message.data, headers, self._numbers)
        except (captures.DamagedCapture, KeyError, ValueError) as error:
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
                if self._given_back:
                    return  # it comes to the next writer, and is known to be stored
                await asyncio.sleep(backoff.pause())
            else:
                return


def takes_part(data: bytes, user_id: int) -> bool:
    """Return whether a person has written something of a capture as it is handed over."""
    try:
        capture = captures.parse_pending(data).capture
    except captures.DamagedCapture:
        return False
    return any(said.author_id == user_id for said in capture.said)


def encoded(capture: Capture, part: Part) -> tuple[bytes, dict[str, str]]:
    """Return the data and the headers of a capture as it is handed over."""
    # The same messages, captured again by another worker after a crash, are known.
    message_id = f"{capture.conversation_id}-{capture.said[-1].message_id}-{len(capture.said)}-{part.last.id}"
    headers = {MESSAGE_ID: message_id, PART: rendered_part(part)}
    return captures.render_pending(PendingCapture(now(), capture, ())), headers


def decoded(data: bytes, headers: Mapping[str, str], number: int) -> Capture:
    """The inverse, as far as `parsed_part` goes. Raises DamagedCapture, KeyError, ValueError."""
    capture = captures.parse_pending(data).capture
    return replace(capture, part=parsed_part(headers[PART], number))


def rendered_part(part: Part) -> str:
    """Ids, and nothing that was written."""
    place = part.place
    ids = {
        "place": place.id,
        "parent": place.parent_id,
        "thread": place.is_thread,
        "guild": part.guild_id,
        "author": part.author.id,
        "messages": list(part.message_ids),
    }
    return json.dumps(ids)


def parsed_part(text: str, number: int) -> Part:
    """The inverse, as far as it goes. Raises ValueError, KeyError."""
    ids = cast("dict[str, Any]", json.loads(text))
    kind = PlaceKind.THREAD if ids["thread"] else PlaceKind.CHANNEL
    place = Place(ids["place"], kind, guild_id=ids["guild"], parent_id=ids["parent"])
    author = Author(ids["author"], "")
    written = tuple(
        Message(each, place.id, author, "", snowflake_time(each), place.guild_id) for each in ids["messages"]
    )
    return Part(number, written, AuthorType.TEAM_MEMBER, place, now())
