"""One partition that a worker owns: messages in, results recorded in the log, then messages acknowledged."""

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

from clock import DAY, cancel_and_wait, now
from clock.timeouts import Backoff
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed, Result
from services.discord import Dispatch
from transport.connection import AWAY_ERRORS, FileConnection, streams_of
from transport.dispatches import ReceivedDispatch, parse_message
from transport.fenced_log import Backlog, Epoch, Fenced, FencedLog
from transport.lease import Lease
from transport.streams import MESSAGES, TTL, Layout, scope_of

ACK = b"+ACK"
CHECK_SECONDS = 2.0
CONFIRM_AGAIN_SECONDS = 0.02
IDLE_CHECKS = 5
"""Without new acknowledgements, every so many checks ask the server."""
MAX_REPEATED = 1_000
"""So many of the last acknowledgements can be sent again."""

log = logging.getLogger(__name__)


class AckSender:
    """Sends the acknowledgements of one consumer. `unacknowledged` asks the server how many it waits for; `held`
    returns the number of deliveries not to be acknowledged yet.

    If an acknowledgement is lost while the server restarts or changes its leader, its message is delivered again after
    ten minutes. Awaiting the confirmation of each costs more than all other work on a message. So they are sent without
    waiting; the server is asked now and then how many it still waits for, and if too many, they are sent again. Where
    that does not help, so are earlier ones that it had already: a new leader may not know all that the last one knew.
    """

    def __init__(self, client: Client, unacknowledged: Callable[[], Awaitable[int]], held: Callable[[], int]) -> None:
        self._client, self._unacknowledged, self._held = client, unacknowledged, held
        self._sent: deque[str] = deque(maxlen=MAX_REPEATED)
        self._unconfirmed = 0
        self._missed_before = False  # by the last `confirm`
        self._confirming = asyncio.Lock()

    async def send(self, replies: list[str]) -> None:
        """Acknowledge by the reply subjects of messages."""
        self._sent.extend(replies)
        self._unconfirmed += len(replies)
        for reply in replies:
            await self._client.publish(reply, ACK)

    async def check(self) -> None:
        """Run `confirm` now and then, until cancelled."""
        while True:
            for _ in range(IDLE_CHECKS):
                await asyncio.sleep(CHECK_SECONDS)
                if self._unconfirmed:
                    break
            if self._sent:
                await self.confirm()

    async def wait_confirmed(self, seconds: float) -> None:
        """Wait until the server has all of them, for at most `seconds`."""
        backoff = Backoff(CONFIRM_AGAIN_SECONDS, CHECK_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if await self.confirm():
                        return
                    await asyncio.sleep(backoff.pause())
        except TimeoutError:
            log.warning("nats: some messages will come again, and be known as done")

    async def confirm(self) -> bool:
        """Return True if all that were sent until now have arrived; otherwise send them again and return False."""
        async with self._confirming:
            asked = self._unconfirmed
            try:
                # The request uses the same connection, so the server handles it after the acknowledgements. `flush` is
                # not used: cancelling it breaks the client.
                arrived = await self._unacknowledged() <= self._held()
                if not arrived:
                    sent = list(self._sent)
                    for reply in sent if self._missed_before else sent[max(0, len(sent) - asked) :]:
                        await self._client.publish(reply, ACK)
            except AWAY_ERRORS:
                return False
            self._missed_before = not arrived
            if arrived:
                self._unconfirmed -= asked
            return arrived


GROUP_SECONDS = 0.01
"""How long a result waits for others, to be recorded together."""
MAX_REMEMBERED = 100_000
"""Ids of messages that are known as done."""


class MessageResult(NamedTuple):
    """Some messages of one place, and how they ended."""

    channel_id: int
    message_ids: list[int]
    kind: str


class ResultRecorder:
    """Tracks which messages of a partition have no result yet and which are done. A message is acknowledged only after
    its result is in the log. `acks`: set it before the first message arrives.
    """

    acks: AckSender

    def __init__(self, file_connection: FileConnection, fenced_log: FencedLog, process: str) -> None:
        self._file_connection, self._log, self._process = file_connection, fenced_log, process
        self._replies: dict[int, list[str]] = {}  # by message without a result: the replies to send when it has one
        self._done_ids: dict[int, None] = {}
        self._to_record: list[MessageResult] = []
        self._to_acknowledge: list[str] = []
        self._has_more = asyncio.Event()
        self._record_lock = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._replies)

    def count_unacknowledged(self) -> int:
        """Return how many deliveries are not to be acknowledged yet."""
        return len(self._to_acknowledge) + sum(map(len, self._replies.values()))

    def hold(self, message_id: int, reply: str) -> bool:
        """Return True if the message is new. A redelivered one waits for the pending result; if there is a result, it
        is acknowledged. `reply`: the subject to acknowledge on.
        """
        if message_id in self._replies:
            self._replies[message_id].append(reply)
            return False
        if message_id in self._done_ids:
            self.acknowledge(reply)
            return False
        self._replies[message_id] = [reply]
        return True

    def acknowledge_with(self, message_ids: tuple[int, ...], reply: str) -> None:
        """Acknowledge an edit or a deletion with the message that it changes: until then both would come again."""
        replies = next((self._replies[each] for each in message_ids if each in self._replies), None)
        if replies is None:
            self.acknowledge(reply)
        else:
            replies.append(reply)

    def is_done(self, message_id: int) -> bool:
        return message_id in self._done_ids

    def record_result(self, result: Result) -> None:
        """Take a result of the graph: its messages are done, and will be recorded and acknowledged."""
        match result:
            case Outcome():
                if result.result is OutcomeKind.CANCELLED and result.reason == Reason.SHUTDOWN:
                    return  # the next owner answers
                self.finish(MessageResult(result.part.place.id, list(result.part.message_ids), result.result))
            case Ignored():
                self.finish(MessageResult(result.channel_id, list(result.message_ids), "ignored"))
            case Removed():
                self.finish(MessageResult(result.channel_id, [result.message_id], "removed"))

    def finish(self, result: MessageResult) -> None:
        """Have a result recorded for those of its messages that have none yet."""
        new = [message_id for message_id in result.message_ids if message_id not in self._done_ids]
        if not new:
            return
        for message_id in new:
            self._done_ids[message_id] = None
            self._to_acknowledge += self._replies.pop(message_id, ())
        while len(self._done_ids) > MAX_REMEMBERED:
            del self._done_ids[next(iter(self._done_ids))]
        self._to_record.append(result._replace(message_ids=new))
        self._has_more.set()

    def acknowledge(self, reply: str) -> None:
        """Acknowledge soon, together with others, without a record."""
        self._to_acknowledge.append(reply)
        self._has_more.set()

    async def keep_recording(self) -> None:
        """Record results until cancelled or until another process takes the partition."""
        while not self._log.is_lost:
            await self._has_more.wait()
            await asyncio.sleep(GROUP_SECONDS)
            try:
                await self.record()
            except Fenced:
                return  # `FencedLog.on_lost` was called
            except OSError as error:
                log.error("%s: results wait to be recorded: %s", self._log.scope, error)  # noqa: TRY400 (a line for the operator)

    async def record(self) -> None:
        """Record the results so far; then acknowledge their messages. Raises Fenced, OSError."""
        async with self._record_lock:
            self._has_more.clear()
            results, replies = self._to_record, self._to_acknowledge
            self._to_record, self._to_acknowledge = [], []
            if results:
                entry = json.dumps({"by": self._process, "at": now(), "ended": results}).encode()
                try:
                    await self._file_connection.do(self._log.append("done", entry, {TTL: f"{DAY}s"}))
                except OSError:
                    self._to_record, self._to_acknowledge = results + self._to_record, replies + self._to_acknowledge
                    self._has_more.set()
                    raise
            if replies:
                await self.acks.send(replies)

    async def read_done(self, since: float) -> None:
        """Read the results that earlier owners have recorded. On the loop of the log's connection."""
        async for entry in self._log.entries(since, "done"):
            for _, message_ids, _ in cast("list[tuple[int, list[int], str]]", json.loads(entry.data)["ended"]):
                self._done_ids.update(dict.fromkeys(message_ids))


MAX_OPEN = 20_000
"""Messages of one partition without an acknowledgement: quiet windows hold them for as long as people write."""
YIELD_EVERY = 50
"""Messages handled in a row before other tasks run."""
SUSPICIOUS_CRASHES = 2
"""After so many owners in a row were lost over the same messages, the next one tries each of them alone."""


class PartitionGraph(Protocol):
    """A graph over one partition's folder."""

    def feed(self, dispatch: Dispatch) -> None: ...

    async def drain(self, seconds: float | None = None) -> None:
        """Finish all work. After `seconds` (None: as configured) the rest is left for the next owner."""
        ...

    async def cut(self) -> None:
        """End at once, and write nothing more."""
        ...


OpenGraph = Callable[[int, FencedLog, Callable[[Result], None]], Awaitable[PartitionGraph]]
"""Opens the graph of a partition, given its number, its log and a function that takes results."""
OnInteraction = Callable[[Mapping[str, Any]], None]


class Partition:
    """Implements `transport.rebalancing.OwnedPartition`.

        MESSAGES ─► deliver ─► the graph ─► results ─► log.<partition>.done ─► acknowledged
                      │ unacknowledged until then      fenced

    A message is acknowledged after its result is in the log. Once another process has taken the partition over, the log
    refuses results.

    Its states, in order:

    - taken (`take`): it has its lease and its log, and reads which messages earlier owners have done;
    - suspecting, only if owners in a row crashed over the same messages: these are tried one by one, each in a graph of
      its own;
    - open: one graph gets every message;
    - closing (`release`): the graph is drained or cut, and the lease is given back;
    - lost (`lose`), at any time: another process owns it, and messages and results are dropped here.
    """

    def __init__(
        self,
        client: Client,
        file_connection: FileConnection,
        layout: Layout,
        number: int,
        process: str,
        open_graph: OpenGraph,
        on_interaction: OnInteraction = lambda _payload: None,
        *,
        trial_lock: asyncio.Lock,
    ) -> None:
        """`trial_lock`: one per process, held while one message of any partition is tried alone."""
        self.number, self.process = number, process
        self._client, self._file_connection = client, file_connection
        self._open_graph, self._on_interaction = open_graph, on_interaction
        subject, seconds = f"messages.{number}.>", layout.lease_seconds
        self._lease = Lease(client, MESSAGES, subject, process, seconds=seconds, most_unacked=MAX_OPEN)
        self._lease.on_missed = self.lose
        self._log = FencedLog(file_connection.streams, scope_of(number))
        self._epoch = Epoch(process, 0.0)
        self._graph: PartitionGraph | None = None
        self._results = ResultRecorder(file_connection, self._log, process)
        self._results.acks = AckSender(client, self._lease.count_unacknowledged, self._count_outstanding)
        self._ready = asyncio.Event()
        self._trial_lock = trial_lock
        self._graph_lock = asyncio.Lock()  # held while `_graph` is replaced or ended
        self._is_closing = self._is_lost = False
        self._tasks: list[asyncio.Task[None]] = []
        self._delivered = self._unhandled = 0
        self._is_suspecting = False

    @property
    def consumer(self) -> str | None:
        return self._lease.consumer

    @property
    def is_lost(self) -> bool:
        return self._is_lost

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
            oldest = await self._oldest_unacknowledged()
            # An owner that was lost stopped receiving at least `gone_seconds` before this lease began.
            lost = self._lease.since - self._lease.gone_seconds
            backlog = None if oldest is None else Backlog(oldest, lost)
            # From here on an earlier owner can record nothing.
            self._epoch = await self._file_connection.do(self._log.open(self.process, now(), backlog))
            if oldest is not None:
                await self._file_connection.do(self._results.read_done(oldest))
            self._is_suspecting = self._epoch.crashes >= SUSPICIOUS_CRASHES
            if self._is_suspecting:
                log.error(
                    "partition %d has ended its worker %d times: what waited then is tried message by message",
                    self.number,
                    self._epoch.crashes,
                )
            else:
                self._graph = await self._open_graph(self.number, self._log, self._results.record_result)
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
        if self._graph is not None and not self._is_closing:
            self._graph.feed(dispatch)

    def lose(self) -> None:
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._log.is_lost = True
            log.warning("partition %d belongs to another process now", self.number)

    async def release(self, *, drain: bool, seconds: float | None = None) -> None:
        """Give the partition back, as `OwnedPartition.release`."""
        self._is_closing = True
        try:
            await self._release(drain=drain, seconds=seconds)
        except Exception:
            log.exception("partition %d was not handed over in order; its messages come again", self.number)
        finally:
            await cancel_and_wait(*self._tasks)
            await self._lease.release()
            log.info("partition %d is given back", self.number)

    async def _release(self, *, drain: bool, seconds: float | None) -> None:
        if not drain or self._is_lost:
            if self._graph is not None:
                await self._graph.cut()
            return
        async with self._graph_lock:
            if self._graph is not None:
                await self._graph.drain(seconds)
        log.debug("partition %d is at rest", self.number)
        await self._results.record()
        await self._results.acks.wait_confirmed(self._lease.seconds)
        await self._file_connection.do(self._log.hand_back(now()))

    def _count_outstanding(self) -> int:
        """Return how many delivered messages are not to be acknowledged yet."""
        return self._unhandled + self._lease.unread + self._results.count_unacknowledged()

    # Messages in

    async def _deliver(self, message: Msg) -> None:
        await self._ready.wait()
        if self._is_closing:
            self._unhandled += 1
            return
        received = parse_message(message)
        if received is None:
            await self._results.acks.send([message.reply])
            return
        if self._is_suspecting:
            await self._handle_suspect(message, received)
        else:
            self._hand_to_graph(message, received)
        self._delivered += 1
        if self._delivered % YIELD_EVERY == 0:
            await asyncio.sleep(0)

    def _hand_to_graph(self, message: Msg, received: ReceivedDispatch) -> None:
        graph = self._graph
        if graph is None:
            return
        if received.interaction is not None:
            self._results.acknowledge(message.reply)
            self._on_interaction(received.interaction)
            return
        if received.dispatch.t != "MESSAGE_CREATE" or not received.message_ids:
            self._results.acknowledge_with(received.message_ids, message.reply)
        elif not self._results.hold(received.message_ids[0], message.reply):
            return
        if received.place is not None:
            graph.feed(received.place)
        graph.feed(received.dispatch)

    async def _handle_suspect(self, message: Msg, received: ReceivedDispatch) -> None:
        """Process a message alone if a crashed owner may have had it. The first message that none of them had ends this
        mode; so does the last message that waits.
        """
        metadata = message.metadata
        may_have_crashed_owner = metadata.timestamp.timestamp() < self._epoch.seen
        if may_have_crashed_owner:
            # One at a time in the whole process: of several, nobody could tell which has crashed it.
            async with self._trial_lock, self._graph_lock:
                await self._try_alone(message, received)
        if may_have_crashed_owner and metadata.num_pending:
            return
        async with self._graph_lock:
            if self._is_closing:
                self._unhandled += not may_have_crashed_owner
                return
            await self._file_connection.do(self._log.replace_epoch(Epoch(self.process, now())))
            self._graph = await self._open_graph(self.number, self._log, self._results.record_result)
            self._is_suspecting = False
        if not may_have_crashed_owner:
            self._hand_to_graph(message, received)

    async def _try_alone(self, message: Msg, received: ReceivedDispatch) -> None:
        """Process one message in a graph of its own, so that a crash is known to come from it."""
        if self._is_closing:
            self._unhandled += 1
            return
        message_id = next(iter(received.message_ids), 0)
        new = received.dispatch.t == "MESSAGE_CREATE" and not self._results.is_done(message_id)
        if new and message_id == self._epoch.trying:
            log.error("message %d has ended its worker again and again: it is given up", message_id)
            self._results.hold(message_id, message.reply)
            channel_id = int(str(received.dispatch.d.get("channel_id", 0)))
            self._results.finish(MessageResult(channel_id, [message_id], OutcomeKind.FAILED))
            await self._results.record()
            await self._file_connection.do(self._log.replace_epoch(replace(self._epoch, trying=0)))
        elif new:
            await self._file_connection.do(self._log.replace_epoch(replace(self._epoch, trying=message_id)))
            graph = self._graph = await self._open_graph(self.number, self._log, self._results.record_result)
            self._hand_to_graph(message, received)
            await graph.drain()
            self._graph = None
            await self._results.record()
            await self._file_connection.do(self._log.replace_epoch(replace(self._epoch, trying=0)))
        else:
            self._results.acknowledge(message.reply)
            if received.interaction is not None:
                self._on_interaction(received.interaction)

    async def _oldest_unacknowledged(self) -> float | None:
        """Return when the oldest unacknowledged message was published, in seconds since 1970; None: there is none."""
        try:
            found = await streams_of(self._client).get_msg(MESSAGES, 1, f"messages.{self.number}.>", next=True)
        except NotFoundError:
            return None
        return now() - DAY if found.time is None else found.time.timestamp()
