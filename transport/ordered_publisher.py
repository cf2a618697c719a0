"""Publishing to JetStream: in order within a subject, many subjects at once; each message is repeated until the server
has it.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from clock import cancel_and_wait
from services.telemetry import number_of
from transport.streams import DUPLICATE_BEING_STORED, STREAM_FULL, may_pass

log = logging.getLogger(__name__)

AT_ONCE = 256
"""Messages without an answer, one per subject. From 64 on, a server on the same machine gets no faster."""
MAX_WAITING = 20_000
MAX_WAITING_BYTES = 64 * 1024 * 1024
ANSWER_SECONDS = 2.0  # without an answer for so long a message is sent once more
CHECK_SECONDS = 0.25
COMPLAIN_SECONDS = 60.0

_PAUSES = {DUPLICATE_BEING_STORED: 0.05, STREAM_FULL: 1.0}
_PAUSE_SECONDS = 0.5  # after any other error that may pass


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to publish. `on_settled` is called once the server has it, or refuses it for good. `headers` contain a
    `Nats-Msg-Id`, since it may be sent more than once.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str]
    on_settled: Callable[[], object] | None = None

    @property
    def size(self) -> int:
        """In bytes, with its headers (which are ASCII), as the server counts it."""
        return len(self.data) + len("NATS/1.0\r\n\r\n") + sum(len(f"{k}: {v}\r\n") for k, v in self.headers.items())


@dataclass(slots=True)
class _Sent:
    """A message that waits for its answer. `at`: when it was sent last, on the clock of the loop."""

    outgoing: OutgoingMessage
    at: float


class OrderedPublisher:
    """Publishes messages in order within each subject, many subjects at once: the next message of a subject is sent
    when the server has confirmed the previous one. Used within `running`.

    Attributes:
        stored: how many messages the server has taken.
        repeats: how many of the stored ones it had already.
        refused: how many messages it refused for good.
    """

    def __init__(
        self, client: Client, *, at_once: int = AT_ONCE, most: int = MAX_WAITING, most_bytes: int = MAX_WAITING_BYTES
    ) -> None:
        self._client = client
        self._at_once, self._most, self._most_bytes = at_once, most, most_bytes
        self._queues: dict[str, deque[OutgoingMessage]] = {}  # by subject; the first is sent, ready or delayed
        self._ready: deque[str] = deque()  # subjects whose first message may be sent
        self._sent: dict[int, _Sent] = {}  # by the number in the answer's subject
        self._delayed: dict[str, asyncio.TimerHandle] = {}
        self._numbers = itertools.count()
        self._inbox = client.new_inbox()
        self._wake, self._has_less = asyncio.Event(), asyncio.Event()
        self._failure: BaseException | None = None
        self._complained: dict[str, float] = {}
        self.waiting = self.waiting_bytes = 0
        self.stored = self.repeats = self.refused = 0

    async def put(self, outgoing: OutgoingMessage) -> None:
        """Queue a message; waits only if too many are queued already. Raises nats.errors.Error: the connection was
        closed for good.
        """
        while self.waiting >= self._most or self.waiting_bytes >= self._most_bytes:
            many = number_of(self.waiting, "message")
            self._complain("behind", f"NATS is behind: {many} wait, and no more are taken from Discord until it is not")
            await self._wait_for_change()
        self._check()
        self.waiting += 1
        self.waiting_bytes += len(outgoing.data)
        queue = self._queues.get(outgoing.subject)
        if queue is None:
            self._queues[outgoing.subject] = deque((outgoing,))
            self._ready.append(outgoing.subject)
            self._wake.set()
        else:
            queue.append(outgoing)

    async def drain(self) -> None:
        """Wait until the server has all messages, however long it is away: the caller sets a limit. Raises
        nats.errors.Error: the connection was closed for good.
        """
        while self.waiting:
            await self._wait_for_change()

    async def drain_subject(self, subject: str) -> None:
        """Wait until the server has all messages of one subject. Raises as `drain`."""
        while subject in self._queues:
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        self._check()
        self._has_less.clear()
        await self._has_less.wait()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _keep_sending(self) -> None:
        while True:
            while self._ready and len(self._sent) < self._at_once and self._client.is_connected:
                outgoing = self._queues[self._ready.popleft()][0]
                number = next(self._numbers)
                self._sent[number] = _Sent(outgoing, 0.0)
                await self._send(number)
            self._wake.clear()
            await self._wake.wait()

    async def _keep_repeating(self) -> None:
        """Send messages again whose answer is overdue, or was lost with the connection."""
        connection = self._client.stats["reconnects"]
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if not self._client.is_connected:
                self._check_connection()
                continue
            anew, connection = self._client.stats["reconnects"] != connection, self._client.stats["reconnects"]
            limit = asyncio.get_running_loop().time() - ANSWER_SECONDS
            for number in [number for number, sent in self._sent.items() if anew or sent.at < limit]:
                await self._send(number)
            self._wake.set()

    def _check_connection(self) -> None:
        if self._client.is_closed:
            raise nats.errors.ConnectionClosedError

    async def _send(self, number: int) -> None:
        sent = self._sent.get(number)
        if sent is None:
            return  # answered meanwhile
        sent.at = asyncio.get_running_loop().time()
        outgoing = sent.outgoing
        if outgoing.size > self._client.max_payload:  # the server would end the connection, each time
            del self._sent[number]
            self._refuse(outgoing, f"{outgoing.size:,} bytes are more than the server's max_payload")
            return
        try:
            await self._client.publish(
                outgoing.subject, outgoing.data, reply=f"{self._inbox}.{number}", headers=dict(outgoing.headers)
            )
        except nats.errors.ConnectionClosedError:
            raise
        except (nats.errors.Error, OSError) as error:
            log.debug("not sent, and tried again: %s", error)

    async def _on_answer(self, message: Msg) -> None:
        sent = self._sent.pop(int(message.subject.rpartition(".")[2]), None)
        if sent is None:
            return  # the second answer to a message that was sent twice
        outgoing = sent.outgoing
        if not message.data:  # "no responders": the stream is not there, or its server is not ready
            self._send_later(outgoing, _PAUSE_SECONDS, f"no stream takes {outgoing.subject.partition('.')[0]}.*")
            return
        answer = cast("dict[str, Any]", json.loads(message.data))
        error = answer.get("error")
        if error is None:
            self.stored += 1
            self.repeats += bool(answer.get("duplicate"))
            self._settle(outgoing)
        elif (number := error.get("err_code")) == STREAM_FULL or may_pass(error.get("code"), number):
            what = None if number == DUPLICATE_BEING_STORED else f"{error.get('description')} (error {number})"
            self._send_later(outgoing, _PAUSES.get(number, _PAUSE_SECONDS), what)
        else:
            self._refuse(outgoing, f"{error.get('description')} (error {error.get('err_code')})")

    def _send_later(self, outgoing: OutgoingMessage, seconds: float, why: str | None) -> None:
        if why is not None:
            stream = outgoing.subject.partition(".")[0]
            self._complain(stream, f"NATS does not take {stream}: {why}; trying until it does")
        loop = asyncio.get_running_loop()
        self._delayed[outgoing.subject] = loop.call_later(seconds, self._resume, outgoing.subject)
        self._wake.set()

    def _resume(self, subject: str) -> None:
        del self._delayed[subject]
        self._ready.append(subject)
        self._wake.set()

    def _refuse(self, outgoing: OutgoingMessage, why: str) -> None:
        self.refused += 1
        log.error("NATS refuses one message for %s, which is left out: %s", outgoing.subject, why)
        self._settle(outgoing)

    def _settle(self, outgoing: OutgoingMessage) -> None:
        queue = self._queues[outgoing.subject]
        queue.popleft()
        self.waiting -= 1
        self.waiting_bytes -= len(outgoing.data)
        if queue:
            self._ready.append(outgoing.subject)
        else:
            del self._queues[outgoing.subject]
        self._wake.set()
        self._has_less.set()
        if outgoing.on_settled is not None:
            outgoing.on_settled()

    def _complain(self, about: str, line: str) -> None:
        """Log at most one line a minute `about` something."""
        at = asyncio.get_running_loop().time()
        if at - self._complained.get(about, float("-inf")) >= COMPLAIN_SECONDS:
            self._complained[about] = at
            log.warning("%s", line)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Self]:
        """Send until the end of the block. Messages that are not drained on leaving are dropped."""
        subscription = await self._client.subscribe(f"{self._inbox}.*", cb=self._on_answer)
        tasks = [asyncio.create_task(self._keep_sending()), asyncio.create_task(self._keep_repeating())]
        for task in tasks:
            task.add_done_callback(self._on_task_ended)
        try:
            yield self
        finally:
            for each in self._delayed.values():
                each.cancel()
            await cancel_and_wait(*tasks)
            if self._client.is_connected:
                await subscription.unsubscribe()

    def _on_task_ended(self, task: asyncio.Task[None]) -> None:
        if self._failure is None:
            self._failure = nats.errors.ConnectionClosedError() if task.cancelled() else task.exception()
        self._has_less.set()
