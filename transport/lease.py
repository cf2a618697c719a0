"""The exclusive right to read a subject of a work queue: the process whose consumer exists holds it. Other processes
stand by, and take over when it ends or freezes.

A work-queue stream refuses a second consumer of the same subjects, so creating a consumer is taking the lease. The
server deletes the consumer when nobody has listened for half of `lease_seconds`: the process has ended, or has lost its
connection. A process that listens but is frozen sends no heartbeat (`evict`). The next consumer receives every message
that was not acknowledged, oldest first.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Protocol, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error
from nats.js import api
from nats.js.errors import APIError, NotFoundError

from transport.connection import AWAY_ERRORS, streams_of
from transport.fenced_log import Fenced
from transport.members import Members
from transport.streams import CONSUMER_EXISTS

DISCONNECTED_FRACTION = 0.5
"""The part of a lease after which the server gives up an owner that is disconnected. Reconnecting takes 0.2 s."""
ACK_SECONDS = 600.0
"""After so long the server sends an unacknowledged message again to the same owner, in case its ack was lost."""

log = logging.getLogger(__name__)


class Lease:
    """The lease of one subject of a work queue, held or not.

    Attributes:
        consumer: the name of the consumer while the lease is held; else None.
        since: when it was taken, in seconds since 1970 on the server's clock.
        seconds: others may take it after so long without a heartbeat.
        gone_seconds: the server ends it after so long without a connection.
        lost: set when another process is known to hold it, and when a delivery did not arrive.
        on_missed: called when a delivery did not arrive; sets `lost` unless replaced. No message is delivered from then
            on.
    """

    def __init__(
        self, client: Client, stream: str, subject: str, process: str, *, seconds: float, most_unacked: int
    ) -> None:
        self.stream, self.subject = stream, subject
        self.consumer: str | None = None
        self.since = 0.0
        self.seconds, self.gone_seconds = seconds, DISCONNECTED_FRACTION * seconds
        self.lost = asyncio.Event()
        self.on_missed: Callable[[], object] = self.lost.set
        self._client, self._process, self._most_unacked = client, process, most_unacked
        self._subscription: Subscription | None = None

    @property
    def unread(self) -> int:
        """How many received messages `deliver` was not given yet."""
        return 0 if self._subscription is None else self._subscription.pending_msgs

    async def count_unacknowledged(self) -> int:
        """Return how many delivered messages the server counts as unacknowledged. Raises as the client."""
        info = await streams_of(self._client).consumer_info(self.stream, self.consumer or "")
        return info.num_ack_pending or 0

    @property
    def lease(self) -> Lease:
        """Itself: so a lease is a `Holder`."""
        return self

    async def take(self, deliver: Callable[[Msg], Awaitable[None]] | None = None) -> bool:
        """Take the lease; returns False if another process has it. From then on `deliver` is awaited for each message,
        in order; None: the subject has no messages. Raises as the client.
        """
        received, has_missed = 0, False

        async def on_message(message: Msg) -> None:
            nonlocal received, has_missed
            number = message.metadata.sequence.consumer
            if number > received + 1 and not has_missed:
                # A message was lost on its way, as from a server that is cut off from the others. It would come again
                # after ACK_SECONDS, behind later ones; whoever takes the lease anew gets all in order.
                has_missed = True
                log.warning("%s: a delivery did not arrive; all that waits is asked for anew", self.subject)
                self.on_missed()
            received = number
            if has_missed:
                return
            # An exception here would go to the client's handler of connection errors.
            try:
                if deliver is not None:
                    await deliver(message)
            except Fenced:
                log.info("%s: belongs to another process now", self.subject)
            except Exception:
                log.exception("%s: a message was not taken up; it comes again later", self.subject)

        inbox = self._client.new_inbox()
        # A new name each time, so that late acknowledgements of an earlier consumer reach nobody.
        name = f"{self.subject.replace('.', '-').strip('->')}-{time.time_ns():x}"
        subscription = await self._client.subscribe(
            inbox, cb=on_message, pending_msgs_limit=2 * self._most_unacked, pending_bytes_limit=1 << 30
        )
        config = api.ConsumerConfig(
            name=name,
            filter_subject=self.subject,
            deliver_subject=inbox,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ACK_SECONDS,
            max_ack_pending=self._most_unacked,
            inactive_threshold=self.gone_seconds,
            metadata={"process": self._process},
        )
        try:
            info = await streams_of(self._client).add_consumer(self.stream, config)
        except BaseException as error:
            await subscription.unsubscribe()
            if isinstance(error, APIError) and error.err_code == CONSUMER_EXISTS:
                return False
            raise
        self._subscription, self.consumer, self.since = subscription, name, info.created.timestamp()
        return True

    async def release(self) -> None:
        """Give it back at once; if the server does not answer, the lease expires. Unacknowledged messages go to the
        next owner. To be called once all work has ended: without a listener the lease would expire meanwhile.
        """
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            await subscription.unsubscribe()
        if self.consumer is not None:
            name, self.consumer = self.consumer, None
            with suppress(NotFoundError, Error, TimeoutError):
                await streams_of(self._client).delete_consumer(self.stream, name)


POLL_SECONDS = 0.5
"""Between two tries of `stand_by` to take the lease."""
SILENT_SECONDS = 0.4
"""How long a process must be missing before `evict`: after a restart of the server, heartbeats come back one by one."""


class Holder(Protocol):
    @property
    def lease(self) -> Lease: ...

    async def take(self) -> bool: ...

    async def release(self) -> None: ...


H = TypeVar("H", bound=Holder)


async def stand_by(
    client: Client, stream: str, members: Members, make: Callable[[], H], stopping: asyncio.Event
) -> AsyncGenerator[H]:
    """Yield a holder from `make` each time its lease could be taken, until `stopping` is set, and release it when the
    caller asks for the next one. Sets its `Lease.lost` when another process takes the lease.
    """
    freed, suspects = asyncio.Event(), dict[str, float]()  # `freed`: a consumer was deleted
    held: H | None = None

    async def on_consumer_deleted(advisory: Msg) -> None:
        name = advisory.subject.rpartition(".")[2]
        if held is not None and held.lease.consumer == name:
            held.lease.lost.set()
        freed.set()

    listener = await client.subscribe(f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{stream}.>", cb=on_consumer_deleted)
    try:
        while not stopping.is_set():
            freed.clear()
            try:
                holder = make()
                if await holder.take():
                    held = holder
                    try:
                        yield holder
                    finally:
                        held = None
                        await holder.release()
                    continue
                consumers = await streams_of(client).consumers_info(stream)
                suspects = await evict(client, stream, consumers, await members.list_alive(), members.me.name, suspects)
            except AWAY_ERRORS as error:
                log.info("%s: the server does not answer (%s)", stream, str(error) or type(error).__name__)
            await wait_for_any(POLL_SECONDS, freed, stopping)
    finally:
        await listener.unsubscribe()


async def evict(
    client: Client,
    stream: str,
    consumers: Iterable[api.ConsumerInfo],
    alive: Mapping[str, object],
    me: str,
    suspects: Mapping[str, float],
) -> dict[str, float]:
    """Delete the consumers of processes without a heartbeat, so that others can take over their leases (a frozen
    process keeps its connection, and with it its consumers).

    Returns the consumers whose process is missing, each with the loop time since when; pass that as `suspects` next
    time: a consumer is deleted once its process has been missing for SILENT_SECONDS. Does nothing if this process
    itself has no heartbeat in the bucket: then the bucket is stale.
    """
    if me not in alive:
        return {}
    now = asyncio.get_running_loop().time()
    silent = {
        each.name: suspects.get(each.name, now)
        for each in consumers
        if (each.config.metadata or {}).get("process") not in alive
    }
    for name in [name for name, since in silent.items() if now - since >= SILENT_SECONDS]:
        log.warning("%s: the owner of %s is silent; another takes over", stream, name)
        with suppress(APIError):  # the server has deleted it already
            await streams_of(client).delete_consumer(stream, name)
    return silent


async def wait_for_any(
    seconds: float | None, *events: asyncio.Event, ended: Collection[asyncio.Future[None]] = ()
) -> None:
    """Wait until an event is set or one of `ended` is done; for at most `seconds`, or without limit if None."""
    waiting = [asyncio.ensure_future(each.wait()) for each in events]
    await asyncio.wait([*waiting, *ended], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
