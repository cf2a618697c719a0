"""A part of all channels in the hands of one worker: messages in, and what became of them out.

    MESSAGES ─► deliver ─► the graph ─► results ─► log.<partition>.done ─► acknowledged
                  │ held until then          fenced

Before anything is acknowledged it is recorded, and nothing is recorded of a partition that another has taken over.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from clock import now
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed, Result
from services.discord import Dispatch
from transport.acknowledging import Acknowledging
from transport.connection import Beside, streams_of
from transport.errors import Fenced
from transport.fence import TTL, Epoch, FencedLog
from transport.layout import DAY_SECONDS, MESSAGES, Layout, scope
from transport.lease import Lease
from transport.wire import Received, received

MOST_OPEN = 20_000
"""Messages of one partition that may be open at a time: windows hold them for as long as people write."""
AT_ONCE = 50
"""Messages taken up before everything else has its turn."""
GROUP_SECONDS = 0.01
"""How long results wait for others, to be recorded together."""
REMEMBERED = 100_000
SUSPICIOUS = 2
"""So many owners in a row were lost over the same messages: the next one tries each alone."""

log = logging.getLogger(__name__)


class PartitionGraph(Protocol):
    """A graph over one partition's folder."""

    def feed(self, dispatch: Dispatch) -> None: ...

    async def drain(self) -> None:
        """Bring everything to its end: no more is fed."""
        ...

    async def cut(self) -> None:
        """End at once, and write nothing more."""
        ...


Open = Callable[[int, FencedLog, Callable[[Result], None]], Awaitable[PartitionGraph]]
"""Begins the work on a partition, which is told by its number and its log; results go to the function."""
Interact = Callable[[Mapping[str, Any]], None]


class _Ended(NamedTuple):
    channel_id: int
    message_ids: list[int]
    kind: str


class Partition:
    """`transport.shares.Owned`."""

    def __init__(
        self,
        client: Client,
        beside: Beside,
        layout: Layout,
        number: int,
        process: str,
        open_work: Open,
        interact: Interact = lambda _payload: None,
    ) -> None:
        self.number, self.process = number, process
        self._client, self._beside, self._open, self._interact = client, beside, open_work, interact
        subject = f"messages.{number}.>"
        self._lease = Lease(client, MESSAGES, subject, process, seconds=layout.lease_seconds, most_open=MOST_OPEN)
        self._log = FencedLog(beside.streams, scope(number))
        self._epoch = Epoch(process, 0.0)
        self._work: PartitionGraph | None = None
        self._held: dict[int, list[str]] = {}  # messages without a result, and all replies that wait with them
        self._done: dict[int, None] = {}
        self._ended: list[_Ended] = []
        self._acknowledged: list[str] = []
        self._more = asyncio.Event()
        self._ready = asyncio.Event()
        self._writing = asyncio.Lock()
        self._closing = self._lost = False
        self._tasks: list[asyncio.Task[None]] = []
        self._taken_up = self._left_out = self._suspects = 0
        self._acks = Acknowledging(client, self._lease.unacknowledged, self._outstanding)

    @property
    def consumer(self) -> str | None:
        return self._lease.consumer

    @property
    def in_flight(self) -> int:
        """Messages without a result."""
        return len(self._held)

    async def take(self) -> bool:
        """Whether it was free and is in hand now. Raises as the client."""
        if not await self._lease.take(self._deliver):
            return False
        try:
            loop = asyncio.get_running_loop()
            self._log.on_lost = lambda: loop.call_soon_threadsafe(self.lose)
            oldest = await self._oldest()
            first = 0 if oldest is None else oldest[0]
            # From here on an earlier owner can record nothing.
            self._epoch = await self._beside.do(self._log.open(self.process, now(), first))
            if oldest is not None:
                await self._beside.do(self._read_done(oldest[1]))
            if self._epoch.crashes >= SUSPICIOUS:
                self._suspects = await self._lease.waiting()
                log.error(
                    "partition %d has ended its worker %d times: each message is tried alone",
                    self.number,
                    self._epoch.crashes,
                )
            else:
                self._work = await self._open(self.number, self._log, self._told)
        except BaseException:
            await self._lease.release()
            raise
        self._tasks = [asyncio.create_task(self._record()), asyncio.create_task(self._acks.check())]
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
            self._more.set()

    async def release(self, *, drain: bool) -> None:
        """`Owned.release`."""
        try:
            await self._release(drain=drain)
        except Exception:
            log.exception("partition %d was not handed over in order; its messages come again", self.number)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._lease.release()

    async def _release(self, *, drain: bool) -> None:
        self._closing = True
        work, self._work = self._work, None
        if not drain or self._lost:
            if work is not None:
                await work.cut()
            return
        if work is not None:
            await work.drain()
        await self._write_down()
        await self._acks.settled(self._lease.seconds)
        await self._beside.do(self._log.hand_back(now()))

    def _outstanding(self) -> int:
        """How many that were delivered are rightly not acknowledged."""
        unread = self._left_out + self._lease.unread
        return unread + len(self._acknowledged) + sum(map(len, self._held.values()))

    # Messages in

    async def _deliver(self, message: Msg) -> None:
        await self._ready.wait()
        if self._closing:
            self._left_out += 1
            return
        got = received(message)
        if got is None:
            await self._acks.send([message.reply])
            return
        if self._suspects > 0:
            await self._try_alone(message, got)
        else:
            self._take_up(message, got)
        self._taken_up += 1
        if self._taken_up % AT_ONCE == 0:
            await asyncio.sleep(0)

    def _take_up(self, message: Msg, got: Received) -> None:
        work = self._work
        if work is None:
            return
        if got.interaction is not None:
            self._acknowledge_soon(message.reply)
            self._interact(got.interaction)
            return
        dispatch, concerned = got.dispatch, got.message_ids
        if dispatch.t == "MESSAGE_CREATE" and concerned:
            (message_id,) = concerned
            waiting = self._held.get(message_id)
            if waiting is not None:  # it came again, since its result takes long
                waiting.append(message.reply)
                return
            if message_id in self._done:
                self._acknowledge_soon(message.reply)
                return
            self._held[message_id] = [message.reply]
        else:
            # An edit or a deletion is as important as the message that it changes: both would come again.
            held = next((self._held[each] for each in concerned if each in self._held), None)
            if held is None:
                self._acknowledge_soon(message.reply)
            else:
                held.append(message.reply)
        if got.place is not None:
            work.feed(got.place)
        work.feed(dispatch)

    async def _try_alone(self, message: Msg, got: Received) -> None:
        """One message, and a graph of its own for it: whatever ends the worker now is this one."""
        self._suspects -= 1
        message_id = next(iter(got.message_ids), 0)
        new = got.dispatch.t == "MESSAGE_CREATE" and message_id not in self._done
        if new and message_id == self._epoch.trying:
            log.error("message %d has ended its worker again and again: it is given up", message_id)
            self._held[message_id] = [message.reply]
            channel_id = int(str(got.dispatch.d.get("channel_id", 0)))
            self._settle(_Ended(channel_id, [message_id], OutcomeKind.FAILED))
        elif new:
            await self._beside.do(self._log.note(replace(self._epoch, trying=message_id)))
            work = self._work = await self._open(self.number, self._log, self._told)
            self._take_up(message, got)
            await work.drain()
            await self._write_down()
        else:
            self._acknowledge_soon(message.reply)
        if self._suspects == 0:
            await self._beside.do(self._log.note(Epoch(self.process, now())))
            self._work = await self._open(self.number, self._log, self._told)

    # Results out

    def _told(self, result: Result) -> None:
        match result:
            case Outcome():
                if result.result is OutcomeKind.CANCELLED and result.reason == Reason.SHUTDOWN:
                    return  # it is left for the next owner
                self._settle(_Ended(result.part.place.id, list(result.part.message_ids), result.result))
            case Ignored():
                self._settle(_Ended(result.channel_id, list(result.message_ids), "ignored"))
            case Removed():
                self._settle(_Ended(result.channel_id, [result.message_id], "removed"))

    def _settle(self, ended: _Ended) -> None:
        """Have a result recorded, of messages that have none yet."""
        new = [message_id for message_id in ended.message_ids if message_id not in self._done]
        if not new:
            return
        for message_id in new:
            self._done[message_id] = None
            self._acknowledged += self._held.pop(message_id, ())
        while len(self._done) > REMEMBERED:
            del self._done[next(iter(self._done))]
        self._ended.append(ended._replace(message_ids=new))
        self._more.set()

    def _acknowledge_soon(self, reply: str) -> None:
        self._acknowledged.append(reply)
        self._more.set()

    async def _record(self) -> None:
        while not self._lost:
            await self._more.wait()
            await asyncio.sleep(GROUP_SECONDS)
            try:
                await self._write_down()
            except Fenced:
                self.lose()
            except OSError as error:
                log.error("partition %d: results wait to be recorded: %s", self.number, error)  # noqa: TRY400 (a line for the operator)

    async def _write_down(self) -> None:
        """Record what has ended; then acknowledge it. Raises Fenced, OSError."""
        async with self._writing:
            self._more.clear()
            ended, replies = self._ended, self._acknowledged
            self._ended, self._acknowledged = [], []
            if ended:
                try:
                    await self._beside.do(self._log.append("done", self._rendered(ended), {TTL: f"{DAY_SECONDS}s"}))
                except OSError:
                    self._ended, self._acknowledged = ended + self._ended, replies + self._acknowledged
                    self._more.set()
                    raise
            if replies:
                await self._acks.send(replies)

    def _rendered(self, ended: list[_Ended]) -> bytes:
        return json.dumps({"by": self.process, "at": now(), "ended": ended}).encode()

    # What was before

    async def _oldest(self) -> tuple[int, float] | None:
        """The number of the oldest message that is not acknowledged, and when it was published."""
        try:
            found = await streams_of(self._client).get_msg(MESSAGES, 1, f"messages.{self.number}.>", next=True)
        except NotFoundError:
            return None
        return found.seq or 0, now() - DAY_SECONDS if found.time is None else found.time.timestamp()

    async def _read_done(self, since: float) -> None:
        async for entry in self._log.entries(since, "done"):
            for _, message_ids, _ in cast("list[tuple[int, list[int], str]]", json.loads(entry.data)["ended"]):
                self._done.update(dict.fromkeys(message_ids))
