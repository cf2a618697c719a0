"""Record in the log how the messages of one partition ended, then acknowledge them."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import NamedTuple, cast

from clock import now
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed, Result
from transport.acknowledging import AckSender
from transport.connection import FileConnection
from transport.errors import Fenced
from transport.fence import FencedLog
from transport.layout import DAY_SECONDS
from transport.protocol import TTL

GROUP_SECONDS = 0.01
"""How long results wait for others, to be recorded together."""
REMEMBERED = 100_000

log = logging.getLogger(__name__)


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
        self._settled: list[MessageResult] = []
        self._acknowledged: list[str] = []
        self._more = asyncio.Event()
        self._writing = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def waiting(self) -> int:
        """How many deliveries are rightly not acknowledged yet."""
        return len(self._acknowledged) + sum(map(len, self._held.values()))

    def hold(self, message_id: int, reply: str) -> bool:
        """Whether a message is new. One that came again, since its result takes long, waits for that; one that is done
        is acknowledged. `reply`: where.
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
                self.settle(MessageResult(result.part.place.id, list(result.part.message_ids), result.result))
            case Ignored():
                self.settle(MessageResult(result.channel_id, list(result.message_ids), "ignored"))
            case Removed():
                self.settle(MessageResult(result.channel_id, [result.message_id], "removed"))

    def settle(self, settled: MessageResult) -> None:
        """Have a result recorded, of messages that have none yet."""
        new = [message_id for message_id in settled.message_ids if message_id not in self._done]
        if not new:
            return
        for message_id in new:
            self._done[message_id] = None
            self._acknowledged += self._held.pop(message_id, ())
        while len(self._done) > REMEMBERED:
            del self._done[next(iter(self._done))]
        self._settled.append(settled._replace(message_ids=new))
        self._more.set()

    def acknowledge(self, reply: str) -> None:
        """Soon, with others; nothing is recorded of it."""
        self._acknowledged.append(reply)
        self._more.set()

    async def keep_recording(self) -> None:
        """Until cancelled, or another process has the partition."""
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
            settled, replies = self._settled, self._acknowledged
            self._settled, self._acknowledged = [], []
            if settled:
                entry = json.dumps({"by": self._process, "at": now(), "ended": settled}).encode()
                try:
                    await self._file_connection.do(self._log.append("done", entry, {TTL: f"{DAY_SECONDS}s"}))
                except OSError:
                    self._settled, self._acknowledged = settled + self._settled, replies + self._acknowledged
                    self._more.set()
                    raise
            if replies:
                await self.acks.send(replies)

    async def read_done(self, since: float) -> None:
        """Learn what earlier owners have recorded. On the loop of the log's connection."""
        async for entry in self._log.entries(since, "done"):
            for _, message_ids, _ in cast("list[tuple[int, list[int], str]]", json.loads(entry.data)["ended"]):
                self._done.update(dict.fromkeys(message_ids))
