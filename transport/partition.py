"""One partition (a fixed part of all channels) owned by one worker: messages in, results out.

    MESSAGES ─► deliver ─► the graph ─► results ─► log.<partition>.done ─► acknowledged
                  │ held until then          fenced

Before anything is acknowledged it is recorded, and nothing is recorded of a partition that another has taken over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from clock import cancelled, now
from model.outcomes import OutcomeKind, Result
from services.discord import Dispatch
from transport.acknowledging import AckSender
from transport.connection import FileConnection, streams_of
from transport.fence import Backlog, Epoch, FencedLog
from transport.layout import DAY_SECONDS, MESSAGES, Layout, scope
from transport.lease import Lease
from transport.settling import MessageResult, ResultRecorder
from transport.wire import ReceivedDispatch, parse_message

MOST_OPEN = 20_000
"""Messages of one partition that may be open at a time: windows hold them for as long as people write."""
AT_ONCE = 50
"""Messages taken up before everything else has its turn."""
SUSPICIOUS = 2
"""So many owners in a row were lost over the same messages: the next one tries each of them alone."""

log = logging.getLogger(__name__)


class PartitionGraph(Protocol):
    """A graph over one partition's folder."""

    def feed(self, dispatch: Dispatch) -> None: ...

    async def drain(self, seconds: float | None = None) -> None:
        """Bring everything to its end: no more is fed. What takes longer is left for the next owner; None: as long as
        the configuration says.
        """
        ...

    async def cut(self) -> None:
        """End at once, and write nothing more."""
        ...


Open = Callable[[int, FencedLog, Callable[[Result], None]], Awaitable[PartitionGraph]]
"""Begins the work on a partition, which is told by its number and its log; results go to the function."""
Interact = Callable[[Mapping[str, Any]], None]


class Partition:
    """`transport.shares.Owned`."""

    def __init__(
        self,
        client: Client,
        file_connection: FileConnection,
        layout: Layout,
        number: int,
        process: str,
        open_work: Open,
        interact: Interact = lambda _payload: None,
        *,
        alone: asyncio.Lock,
    ) -> None:
        """`alone`: of the process, held while one message is tried alone."""
        self.number, self.process = number, process
        self._client, self._file_connection, self._open, self._interact = client, file_connection, open_work, interact
        subject = f"messages.{number}.>"
        self._lease = Lease(client, MESSAGES, subject, process, seconds=layout.lease_seconds, most_open=MOST_OPEN)
        self._log = FencedLog(file_connection.streams, scope(number))
        self._epoch = Epoch(process, 0.0)
        self._work: PartitionGraph | None = None
        self._results = ResultRecorder(file_connection, self._log, process)
        self._results.acks = AckSender(client, self._lease.unacknowledged, self._outstanding)
        self._ready = asyncio.Event()
        self._alone = alone
        self._taking = asyncio.Lock()  # a message is tried, or everything is given back
        self._closing = self._lost = False
        self._tasks: list[asyncio.Task[None]] = []
        self._taken_up = self._left_out = 0
        self._suspecting = False

    @property
    def consumer(self) -> str | None:
        return self._lease.consumer

    @property
    def in_flight(self) -> int:
        """Messages without a result."""
        return len(self._results)

    async def take(self) -> bool:
        """Whether it was free and is in hand now. Raises as the client."""
        if not await self._lease.take(self._deliver):
            return False
        try:
            loop = asyncio.get_running_loop()
            self._log.on_lost = lambda: loop.call_soon_threadsafe(self.lose)
            oldest = await self._oldest()
            # The server waits for so long before it gives up an owner; one that is silent was so for longer.
            lost = self._lease.since - self._lease.gone_seconds
            waiting = None if oldest is None else Backlog(oldest, lost)
            # From here on an earlier owner can record nothing.
            self._epoch = await self._file_connection.do(self._log.open(self.process, now(), waiting))
            if oldest is not None:
                await self._file_connection.do(self._results.read_done(oldest))
            self._suspecting = self._epoch.crashes >= SUSPICIOUS
            if self._suspecting:
                log.error(
                    "partition %d has ended its worker %d times: what waited then is tried message by message",
                    self.number,
                    self._epoch.crashes,
                )
            else:
                self._work = await self._open(self.number, self._log, self._results.record_result)
        except BaseException:
            await self._lease.release()
            raise
        self._tasks = [
            asyncio.create_task(self._results.keep_recording()),
            asyncio.create_task(self._results.acks.check()),
        ]
        self._ready.set()
        return True

    def feed(self, dispatch: Dispatch) -> None:
        """What concerns all partitions."""
        if self._work is not None and not self._closing:
            self._work.feed(dispatch)

    def lose(self) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._log.lost = True
            log.warning("partition %d belongs to another process now", self.number)

    async def release(self, *, drain: bool, seconds: float | None = None) -> None:
        """`Owned.release`."""
        self._closing = True
        try:
            await self._release(drain=drain, seconds=seconds)
        except Exception:
            log.exception("partition %d was not handed over in order; its messages come again", self.number)
        finally:
            await cancelled(*self._tasks)
            await self._lease.release()
            log.info("partition %d is given back", self.number)

    async def _release(self, *, drain: bool, seconds: float | None) -> None:
        if not drain or self._lost:
            if self._work is not None:
                await self._work.cut()
            return
        async with self._taking:
            if self._work is not None:
                await self._work.drain(seconds)
        log.debug("partition %d is at rest", self.number)
        await self._results.record()
        await self._results.acks.settled(self._lease.seconds)
        await self._file_connection.do(self._log.hand_back(now()))

    def _outstanding(self) -> int:
        """How many that were delivered are rightly not acknowledged."""
        return self._left_out + self._lease.unread + self._results.waiting()

    # Messages in

    async def _deliver(self, message: Msg) -> None:
        await self._ready.wait()
        if self._closing:
            self._left_out += 1
            return
        got = parse_message(message)
        if got is None:
            await self._results.acks.send([message.reply])
            return
        if self._suspecting:
            await self._suspect(message, got)
        else:
            self._take_up(message, got)
        self._taken_up += 1
        if self._taken_up % AT_ONCE == 0:
            await asyncio.sleep(0)

    def _take_up(self, message: Msg, got: ReceivedDispatch) -> None:
        work = self._work
        if work is None:
            return
        if got.interaction is not None:
            self._results.acknowledge(message.reply)
            self._interact(got.interaction)
            return
        if got.dispatch.t != "MESSAGE_CREATE" or not got.message_ids:
            self._results.acknowledge_with(got.message_ids, message.reply)
        elif not self._results.hold(got.message_ids[0], message.reply):
            return
        if got.place is not None:
            work.feed(got.place)
        work.feed(got.dispatch)

    async def _suspect(self, message: Msg, got: ReceivedDispatch) -> None:
        """Process a message by itself if the workers that crashed may have had it. The first message that they cannot
        have had
        ends this mode.
        """
        place = message.metadata
        seen = place.timestamp.timestamp() < self._epoch.seen
        if seen:
            # One in the whole process: with several under way nobody could tell which has ended it.
            async with self._alone, self._taking:
                await self._try_alone(message, got)
        if seen and place.num_pending:
            return
        async with self._taking:
            if self._closing:
                self._left_out += not seen
                return
            await self._file_connection.do(self._log.note(Epoch(self.process, now())))
            self._work = await self._open(self.number, self._log, self._results.record_result)
            self._suspecting = False
        if not seen:
            self._take_up(message, got)

    async def _try_alone(self, message: Msg, got: ReceivedDispatch) -> None:
        """One message, and a graph of its own for it: whatever ends the worker now is this one."""
        if self._closing:
            self._left_out += 1
            return
        message_id = next(iter(got.message_ids), 0)
        new = got.dispatch.t == "MESSAGE_CREATE" and not self._results.is_done(message_id)
        if new and message_id == self._epoch.trying:
            log.error("message %d has ended its worker again and again: it is given up", message_id)
            self._results.hold(message_id, message.reply)
            channel_id = int(str(got.dispatch.d.get("channel_id", 0)))
            self._results.settle(MessageResult(channel_id, [message_id], OutcomeKind.FAILED))
            await self._results.record()
            await self._file_connection.do(self._log.note(replace(self._epoch, trying=0)))
        elif new:
            await self._file_connection.do(self._log.note(replace(self._epoch, trying=message_id)))
            work = self._work = await self._open(self.number, self._log, self._results.record_result)
            self._take_up(message, got)
            await work.drain()
            self._work = None
            await self._results.record()
            await self._file_connection.do(self._log.note(replace(self._epoch, trying=0)))
        else:
            self._results.acknowledge(message.reply)
            if got.interaction is not None:
                self._interact(got.interaction)

    # What was before

    async def _oldest(self) -> float | None:
        """When the oldest message was published that is not acknowledged, in seconds since 1970."""
        try:
            found = await streams_of(self._client).get_msg(MESSAGES, 1, f"messages.{self.number}.>", next=True)
        except NotFoundError:
            return None
        return now() - DAY_SECONDS if found.time is None else found.time.timestamp()
