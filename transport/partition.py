"""One partition in the hands of one worker: messages in, results recorded in the log, then messages acknowledged."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from clock import cancelled, now
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed, Result
from services.discord import Dispatch
from transport.connection import AWAY_ERRORS, FileConnection, streams_of
from transport.dispatches import ReceivedDispatch, parse_message
from transport.errors import Fenced
from transport.fenced_log import Backlog, Epoch, FencedLog
from transport.lease import Lease
from transport.streams import DAY_SECONDS, MESSAGES, TTL, Layout, scope_of

ACK = b"+ACK"
CHECK_SECONDS = 2.0
AGAIN_SECONDS = 0.02

log = logging.getLogger(__name__)


class AckSender:
    """Sends the acknowledgements of one consumer. `unacknowledged` asks the server how many it waits for; `held`: the
    number of deliveries not to be acknowledged yet.

    An acknowledgement that is lost while the server restarts or changes its leader would bring its message back after
    ten minutes. Awaiting the confirmation of each costs more than all other work on a message. So they are sent, and
    the server is asked now and then how many it still waits for. What is missing is sent again, which does no harm.
    """

    def __init__(self, client: Client, unacknowledged: Callable[[], Awaitable[int]], held: Callable[[], int]) -> None:
        self._client, self._unacknowledged, self._held = client, unacknowledged, held
        self._unconfirmed: deque[str] = deque()
        self._confirming = asyncio.Lock()

    async def send(self, replies: list[str]) -> None:
        """Acknowledge by the reply subjects of messages."""
        self._unconfirmed.extend(replies)
        for reply in replies:
            await self._client.publish(reply, ACK)

    async def check(self) -> None:
        """Confirm now and then, until cancelled, that the server has them."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            if self._unconfirmed:
                await self.confirm()

    async def wait_confirmed(self, seconds: float) -> None:
        """Wait until the server has all of them, for at most so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if await self.confirm():
                        return
                    await asyncio.sleep(AGAIN_SECONDS)
        except TimeoutError:
            log.warning("nats: some messages will come again, and be known as done")

    async def confirm(self) -> bool:
        """Return True if all that were sent until now have arrived; otherwise send them again and return False."""
        async with self._confirming:
            sent = len(self._unconfirmed)
            try:
                # The request uses the same connection, so the server handles it after the acknowledgements. `flush` is
                # not used: cancelling it breaks the client.
                arrived = await self._unacknowledged() <= self._held()
                if not arrived:
                    for reply in list(self._unconfirmed)[:sent]:
                        await self._client.publish(reply, ACK)
            except AWAY_ERRORS:
                return False
            if arrived:
                for _ in range(sent):
                    self._unconfirmed.popleft()
            return arrived


GROUP_SECONDS = 0.01
"""How long results wait for others, to be recorded together."""
REMEMBERED = 100_000


class MessageResult(NamedTuple):
    """Some messages of one place, and how they ended."""

    channel_id: int
    message_ids: list[int]
    kind: str


class ResultRecorder:
    """Knows which messages of a partition have no result yet and which are done. A message is acknowledged only after
    its result is in the log.

    Attributes:
        acks: to be set before the first message is held.
    """

    acks: AckSender

    def __init__(self, file_connection: FileConnection, fenced: FencedLog, process: str) -> None:
        self._file_connection, self._log, self._process = file_connection, fenced, process
        self._held: dict[int, list[str]] = {}  # messages without a result, and all replies that wait with them
        self._done: dict[int, None] = {}
        self._to_record: list[MessageResult] = []
        self._to_acknowledge: list[str] = []
        self._more = asyncio.Event()
        self._writing = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def waiting(self) -> int:
        """How many deliveries are rightly not acknowledged yet."""
        return len(self._to_acknowledge) + sum(map(len, self._held.values()))

    def hold(self, message_id: int, reply: str) -> bool:
        """Return True if the message is new. A redelivered one waits for the pending result; a finished one is
        acknowledged. `reply`: the subject to acknowledge on.
        """
        if message_id in self._held:
            self._held[message_id].append(reply)
            return False
        if message_id in self._done:
            self.acknowledge(reply)
            return False
        self._held[message_id] = [reply]
        return True

    def acknowledge_with(self, message_ids: tuple[int, ...], reply: str) -> None:
        """Acknowledge an edit or a deletion together with the message that it changes: until then both would be
        delivered again.
        """
        held = next((self._held[each] for each in message_ids if each in self._held), None)
        if held is None:
            self.acknowledge(reply)
        else:
            held.append(reply)

    def is_done(self, message_id: int) -> bool:
        return message_id in self._done

    def record_result(self, result: Result) -> None:
        """Take a result of the graph: the messages it is about are done, and will be recorded and acknowledged.
        Cancelled by shutdown: ignored, the next owner answers.
        """
        match result:
            case Outcome():
                if result.result is OutcomeKind.CANCELLED and result.reason == Reason.SHUTDOWN:
                    return  # it is left for the next owner
                self.finish(MessageResult(result.part.place.id, list(result.part.message_ids), result.result))
            case Ignored():
                self.finish(MessageResult(result.channel_id, list(result.message_ids), "ignored"))
            case Removed():
                self.finish(MessageResult(result.channel_id, [result.message_id], "removed"))

    def finish(self, result: MessageResult) -> None:
        """Have a result recorded, for those of its messages that have none yet."""
        new = [message_id for message_id in result.message_ids if message_id not in self._done]
        if not new:
            return
        for message_id in new:
            self._done[message_id] = None
            self._to_acknowledge += self._held.pop(message_id, ())
        while len(self._done) > REMEMBERED:
            del self._done[next(iter(self._done))]
        self._to_record.append(result._replace(message_ids=new))
        self._more.set()

    def acknowledge(self, reply: str) -> None:
        """Acknowledge soon, together with others. Nothing is recorded."""
        self._to_acknowledge.append(reply)
        self._more.set()

    async def keep_recording(self) -> None:
        """Record results until cancelled or until another process takes the partition."""
        while not self._log.lost:
            await self._more.wait()
            await asyncio.sleep(GROUP_SECONDS)
            try:
                await self.record()
            except Fenced:
                return  # `FencedLog.on_lost` has told
            except OSError as error:
                log.error("%s: results wait to be recorded: %s", self._log.scope, error)  # noqa: TRY400 (a line for the operator)

    async def record(self) -> None:
        """Record what has ended; then acknowledge it. Raises Fenced, OSError."""
        async with self._writing:
            self._more.clear()
            results, replies = self._to_record, self._to_acknowledge
            self._to_record, self._to_acknowledge = [], []
            if results:
                entry = json.dumps({"by": self._process, "at": now(), "ended": results}).encode()
                try:
                    await self._file_connection.do(self._log.append("done", entry, {TTL: f"{DAY_SECONDS}s"}))
                except OSError:
                    self._to_record, self._to_acknowledge = results + self._to_record, replies + self._to_acknowledge
                    self._more.set()
                    raise
            if replies:
                await self.acks.send(replies)

    async def read_done(self, since: float) -> None:
        """Learn what earlier owners have recorded. On the loop of the log's connection."""
        async for entry in self._log.entries(since, "done"):
            for _, message_ids, _ in cast("list[tuple[int, list[int], str]]", json.loads(entry.data)["ended"]):
                self._done.update(dict.fromkeys(message_ids))


MOST_OPEN = 20_000
"""Messages of one partition that may be open at a time: windows hold them for as long as people write."""
AT_ONCE = 50
"""Messages handled in a row before everything else has its turn."""
SUSPICIOUS = 2
"""So many owners in a row were lost over the same messages: the next one tries each of them alone."""


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
    """Implements `transport.rebalancing.OwnedPartition`.

        MESSAGES ─► deliver ─► the graph ─► results ─► log.<partition>.done ─► acknowledged
                      │ unacknowledged until then      fenced

    Before a message is acknowledged its result is in the log, and nothing is recorded of a partition that another
    process has taken over.

    Its states, in order:

    - taken (`take`): it has its lease and its log, and learns what earlier owners have done;
    - suspecting, only if owners in a row crashed over the same messages: these are tried one by one, each in a graph of
      its own;
    - open: one graph gets every message;
    - closing (`release`): the graph is drained or cut, and the lease is given back;
    - lost (`lose`), at any time: another process has it, and nothing more is taken up or recorded.
    """

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
        trial_lock: asyncio.Lock,
    ) -> None:
        """`trial_lock`: that of the process, held while one message of any partition is tried alone."""
        self.number, self.process = number, process
        self._client, self._file_connection, self._open, self._interact = client, file_connection, open_work, interact
        subject = f"messages.{number}.>"
        self._lease = Lease(client, MESSAGES, subject, process, seconds=layout.lease_seconds, most_open=MOST_OPEN)
        self._log = FencedLog(file_connection.streams, scope_of(number))
        self._epoch = Epoch(process, 0.0)
        self._work: PartitionGraph | None = None
        self._results = ResultRecorder(file_connection, self._log, process)
        self._results.acks = AckSender(client, self._lease.unacknowledged, self._outstanding)
        self._ready = asyncio.Event()
        self._trial_lock = trial_lock
        self._graph_lock = asyncio.Lock()  # held while `_work` is replaced or ended
        self._closing = self._lost = False
        self._tasks: list[asyncio.Task[None]] = []
        self._delivered = self._left_out = 0
        self._suspecting = False

    @property
    def consumer(self) -> str | None:
        return self._lease.consumer

    @property
    def in_flight(self) -> int:
        """Messages without a result."""
        return len(self._results)

    async def take(self) -> bool:
        """Take the partition. Returns False if another process has it. Raises as the client."""
        if not await self._lease.take(self._deliver):
            return False
        try:
            loop = asyncio.get_running_loop()
            self._log.on_lost = lambda: loop.call_soon_threadsafe(self.lose)
            oldest = await self._oldest()
            # An owner that was lost stopped receiving at least `gone_seconds` before this lease began.
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
        """Pass a dispatch that concerns all partitions to the graph."""
        if self._work is not None and not self._closing:
            self._work.feed(dispatch)

    def lose(self) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self._log.lost = True
            log.warning("partition %d belongs to another process now", self.number)

    async def release(self, *, drain: bool, seconds: float | None = None) -> None:
        """`OwnedPartition.release`."""
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
        async with self._graph_lock:
            if self._work is not None:
                await self._work.drain(seconds)
        log.debug("partition %d is at rest", self.number)
        await self._results.record()
        await self._results.acks.wait_confirmed(self._lease.seconds)
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
            self._hand_to_graph(message, got)
        self._delivered += 1
        if self._delivered % AT_ONCE == 0:
            await asyncio.sleep(0)

    def _hand_to_graph(self, message: Msg, got: ReceivedDispatch) -> None:
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
        """Process a message alone if a crashed worker may have had it. The first message that none of them had ends
        this mode; so does the last one that waits.
        """
        metadata = message.metadata
        may_have_crashed_owner = metadata.timestamp.timestamp() < self._epoch.seen
        if may_have_crashed_owner:
            # One in the whole process: with several under way nobody could tell which has ended it.
            async with self._trial_lock, self._graph_lock:
                await self._try_alone(message, got)
        if may_have_crashed_owner and metadata.num_pending:
            return
        async with self._graph_lock:
            if self._closing:
                self._left_out += not may_have_crashed_owner
                return
            await self._file_connection.do(self._log.note(Epoch(self.process, now())))
            self._work = await self._open(self.number, self._log, self._results.record_result)
            self._suspecting = False
        if not may_have_crashed_owner:
            self._hand_to_graph(message, got)

    async def _try_alone(self, message: Msg, got: ReceivedDispatch) -> None:
        """Process one message in a graph of its own, so that a crash is known to be its fault."""
        if self._closing:
            self._left_out += 1
            return
        message_id = next(iter(got.message_ids), 0)
        new = got.dispatch.t == "MESSAGE_CREATE" and not self._results.is_done(message_id)
        if new and message_id == self._epoch.trying:
            log.error("message %d has ended its worker again and again: it is given up", message_id)
            self._results.hold(message_id, message.reply)
            channel_id = int(str(got.dispatch.d.get("channel_id", 0)))
            self._results.finish(MessageResult(channel_id, [message_id], OutcomeKind.FAILED))
            await self._results.record()
            await self._file_connection.do(self._log.note(replace(self._epoch, trying=0)))
        elif new:
            await self._file_connection.do(self._log.note(replace(self._epoch, trying=message_id)))
            work = self._work = await self._open(self.number, self._log, self._results.record_result)
            self._hand_to_graph(message, got)
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
