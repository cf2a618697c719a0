"""The exclusive right to read a subject of a work queue: the process whose consumer exists holds it. Processes stand
by, and take over from one that is gone or frozen.

A work-queue stream refuses a second consumer of the same subjects, so making a consumer is taking the lease. The server
deletes the consumer when nobody listens for half of `lease_seconds`: the process has ended, or its connection is gone.
A process that listens and does nothing is found by its silence (`evict`). The next consumer receives every message that
was not acknowledged, oldest first.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error
from nats.js import api
from nats.js.errors import APIError, NotFoundError

from transport.connection import AWAY_ERRORS, streams_of
from transport.errors import Fenced
from transport.members import Members
from transport.streams import CONSUMER_EXISTS

GONE = 0.5
"""The part of a lease after which the server gives up an owner without a connection: a lost one is back in 0.2 s."""
ACK_SECONDS = 600.0
"""After that an unacknowledged message comes again to the same owner: a backstop, for one whose answer was lost."""

log = logging.getLogger(__name__)


class Lease:
    """One subject of a work queue, and perhaps the right to work on it.

    Attributes:
        consumer: its name while it is held.
        since: when it was taken, in seconds since 1970 on the server's clock.
        seconds: it ends after so long a silence; `gone_seconds`: after so long without a connection.
        lost: set when it is known that another has it.
    """

    def __init__(
        self, client: Client, stream: str, subject: str, process: str, *, seconds: float, most_open: int
    ) -> None:
        self.stream, self.subject = stream, subject
        self.consumer: str | None = None
        self.since = 0.0
        self.seconds, self.gone_seconds = seconds, GONE * seconds
        self.lost = asyncio.Event()
        self._client, self._process, self._most_open = client, process, most_open
        self._subscription: Subscription | None = None

    @property
    def unread(self) -> int:
        """How many messages have come that `deliver` was not given yet."""
        return 0 if self._subscription is None else self._subscription.pending_msgs

    async def unacknowledged(self) -> int:
        """How many of those that came the server still waits for. Raises as the client."""
        info = await streams_of(self._client).consumer_info(self.stream, self.consumer or "")
        return info.num_ack_pending or 0

    @property
    def lease(self) -> Lease:
        """Itself: a `Holder` where there are no messages."""
        return self

    async def take(self, deliver: Callable[[Msg], Awaitable[None]] | None = None) -> bool:
        """Take the lease. Returns False if another process has it. From then on `deliver` is awaited for each message,
        in order; None: nothing is ever sent there. Raises as the client.
        """

        async def delivered(message: Msg) -> None:
            # The client would hand what this raises to whoever hears of lost connections.
            try:
                if deliver is not None:
                    await deliver(message)
            except Fenced:
                log.info("%s: belongs to another process now", self.subject)
            except Exception:
                log.exception("%s: a message was not taken up; it comes again later", self.subject)

        inbox = self._client.new_inbox()
        # Each name once: what a former life of this process still sends goes nowhere.
        name = f"{self.subject.replace('.', '-').strip('->')}-{time.time_ns():x}"
        subscription = await self._client.subscribe(
            inbox, cb=delivered, pending_msgs_limit=2 * self._most_open, pending_bytes_limit=1 << 30
        )
        config = api.ConsumerConfig(
            name=name,
            filter_subject=self.subject,
            deliver_subject=inbox,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ACK_SECONDS,
            max_ack_pending=self._most_open,
            inactive_threshold=self.gone_seconds,
            metadata={"process": self._process},
        )
        try:
            made = await streams_of(self._client).add_consumer(self.stream, config)
        except BaseException as error:
            await subscription.unsubscribe()
            if isinstance(error, APIError) and error.err_code == CONSUMER_EXISTS:
                return False
            raise
        self._subscription, self.consumer, self.since = subscription, name, made.created.timestamp()
        return True

    async def release(self) -> None:
        """Give it back at once. Where the server does not answer, it ends by itself. What was delivered and not
        acknowledged goes to the next owner; so does what is delivered while the work is brought to its end, which
        nobody takes up here any more: without a listener the lease would run out meanwhile.
        """
        if self._subscription is not None:
            subscription, self._subscription = self._subscription, None
            await subscription.unsubscribe()
        if self.consumer is not None:
            name, self.consumer = self.consumer, None
            try:
                await streams_of(self._client).delete_consumer(self.stream, name)
            except (NotFoundError, Error, TimeoutError):
                return


LOOK_SECONDS = 0.5
"""Between two looks at who does it."""
SILENT_SECONDS = 0.4
"""So long a process must have been missing already: after a restart of the server not all are seen at once."""


class Holder(Protocol):
    """Something that can be used only while its lease is held."""

    @property
    def lease(self) -> Lease: ...

    async def take(self) -> bool: ...

    async def release(self) -> None: ...


H = TypeVar("H", bound=Holder)


async def stand_by(
    client: Client, stream: str, members: Members, make: Callable[[], H], stopping: asyncio.Event
) -> AsyncGenerator[H]:
    """Gives what `make` made each time that it could be taken, until `stopping` is set; released after each round.
    `Lease.lost` of what is given is set when another has it.
    """
    changed, suspects, held = asyncio.Event(), dict[str, float](), list[H]()

    async def deleted(advisory: Msg) -> None:
        name = advisory.subject.rpartition(".")[2]
        for each in held:
            if each.lease.consumer == name:
                each.lease.lost.set()
        changed.set()

    listening = await client.subscribe(f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{stream}.>", cb=deleted)
    try:
        while not stopping.is_set():
            changed.clear()
            try:
                mine = make()
                if await mine.take():
                    held = [mine]
                    try:
                        yield mine
                    finally:
                        held = []
                        await mine.release()
                    continue
                consumers = await streams_of(client).consumers_info(stream)
                suspects = await evict(client, stream, consumers, await members.list_alive(), members.me.name, suspects)
            except AWAY_ERRORS as error:
                log.info("%s: the server does not answer (%s)", stream, error or type(error).__name__)
            await wait_for_any(LOOK_SECONDS, changed, stopping)
    finally:
        await listening.unsubscribe()


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
    at = asyncio.get_running_loop().time()
    silent = {
        each.name: suspects.get(each.name, at)
        for each in consumers
        if (each.config.metadata or {}).get("process") not in alive
    }
    for name in [name for name, since in silent.items() if at - since >= SILENT_SECONDS]:
        log.warning("%s: the owner of %s is silent; another takes over", stream, name)
        try:
            await streams_of(client).delete_consumer(stream, name)
        except APIError:
            continue  # it is gone
    return silent


async def wait_for_any(
    seconds: float | None, *events: asyncio.Event, ended: Collection[asyncio.Future[None]] = ()
) -> None:
    """Wait until one of the events is set or something has `ended`, but no longer than so many seconds."""
    waiting = [asyncio.ensure_future(each.wait()) for each in events]
    await asyncio.wait([*waiting, *ended], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
