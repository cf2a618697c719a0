"""Rebalancing: each worker takes and gives back partitions until every worker has an equal share, whenever workers come
or go.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api

from clock.timeouts import Backoff
from transport.connection import AWAY_ERRORS, streams_of
from transport.lease import evict, wait_for_any
from transport.members import Members, find_disconnected
from transport.streams import MESSAGES, Layout

WORKER = "worker"
CHECK_SECONDS = 1.0
"""Between two checks of the owners, unless a change is announced sooner."""
FIRST_PAUSE_SECONDS = 0.1
"""First pause before the next check while some partition has no owner (its former owner is still listed as alive, or
taking it failed); doubles up to CHECK_SECONDS.
"""
HAND_OVER_SECONDS = 1.5
"""When partitions are handed to a new worker: how long answers under way may take; later ones are answered again by the
new owner.
"""

STALLED_LEASES = 2.0
"""A partition is given back after so many leases in which messages waited and the server delivered none. Since a cut of
the network between servers, its consumer may exist and deliver nothing; its next consumer gets all that waits.
"""

log = logging.getLogger(__name__)


class OwnedPartition(Protocol):
    @property
    def consumer(self) -> str | None:
        """The consumer of its lease."""
        ...

    @property
    def is_lost(self) -> bool:
        """Return True if another process has written to its log since it was taken."""
        ...

    def lose(self) -> None:
        """Accept no more messages and results: another process owns the partition now."""
        ...

    async def release(self, *, drain: bool, seconds: float | None = None) -> None:
        """Give the partition back; with `drain`, after its work or `seconds`. Must not raise."""
        ...


class Rebalancing:
    """Keeps this worker's share of the partitions: takes free ones, gives surplus ones back.

    `take`: takes a partition by its number; returns None if another process owns it.
    """

    def __init__(
        self, client: Client, layout: Layout, members: Members, take: Callable[[int], Awaitable[OwnedPartition | None]]
    ) -> None:
        self.owned: dict[int, OwnedPartition] = {}
        self._client, self._layout, self._members, self._take = client, layout, members, take
        self._changed = asyncio.Event()
        self._suspects: dict[str, float] = {}
        self._releases: set[asyncio.Task[None]] = set()
        self._waiting: dict[str, tuple[int, float]] = {}  # by consumer: deliveries so far, and since when no more

    async def keep_share(self) -> None:
        """Runs until cancelled; `release` gives everything back then."""
        subject = f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{MESSAGES}.>"
        subscription = await self._client.subscribe(subject, cb=self._on_consumer_deleted)
        backoff = Backoff(FIRST_PAUSE_SECONDS, CHECK_SECONDS)
        try:
            while True:
                self._changed.clear()
                complete = True
                try:
                    complete = await self._rebalance()
                except AWAY_ERRORS as error:
                    log.info("partitions: the server does not answer (%s)", str(error) or type(error).__name__)
                if complete:
                    backoff.reset()
                await wait_for_any(CHECK_SECONDS if complete else backoff.pause(), self._changed)
        finally:
            await subscription.unsubscribe()

    async def release(self) -> None:
        """Give all partitions back, each after its work has ended."""
        owned, self.owned = list(self.owned.values()), {}
        await asyncio.gather(*self._releases, *(each.release(drain=True) for each in owned))

    async def _on_consumer_deleted(self, advisory: Msg) -> None:
        name = advisory.subject.rpartition(".")[2]
        for each in self.owned.values():
            if each.consumer == name:
                each.lose()
        self._changed.set()

    async def _rebalance(self) -> bool:
        """Take and give back once; returns whether every partition has an owner."""
        alive = await self._members.list_alive()
        me = self._members.me.name
        consumers = await streams_of(self._client).consumers_info(MESSAGES)
        taken = {partition_number(each) for each in consumers}
        free = [number for number in range(self._layout.partitions) if number not in taken]
        workers = {name for name, member in alive.items() if WORKER in member.roles} | {me}
        owners = {(each.config.metadata or {}).get("process") for each in consumers}
        workers -= await find_disconnected(self._client, workers - owners - {me})
        share = math.ceil(self._layout.partitions / len(workers))
        self._suspects = await evict(self._client, MESSAGES, consumers, alive, me, self._suspects)
        consumer_names = {each.name for each in consumers}
        for number, each in list(self.owned.items()):
            # One that is lost may still hold its lease: between servers that change their leader, who has lost the
            # lease again may have come to its log last. Kept, it would drop all messages, and nobody else got them.
            if each.consumer not in consumer_names or each.is_lost:
                del self.owned[number]
                each.lose()
                await each.release(drain=False)
        surplus = list(self.owned)[share:]
        if surplus:
            log.info("partitions: %d of %d are given to other workers", len(surplus), len(self.owned))
        if stalled := [number for number in self._find_stalled(consumers) if number not in surplus]:
            log.warning("partitions: NATS delivers nothing of %s; given back, to be sent it anew", stalled)
        for number in [*surplus, *stalled]:
            release = asyncio.create_task(self.owned.pop(number).release(drain=True, seconds=HAND_OVER_SECONDS))
            self._releases.add(release)
            release.add_done_callback(self._releases.discard)
        # Workers that start together try different partitions first.
        first = len(free) * sorted(workers).index(me) // len(workers)
        return await self._take_free(share, free[first:] + free[:first])

    def _find_stalled(self, consumers: Sequence[api.ConsumerInfo]) -> list[int]:
        """Return the owned partitions in which messages wait, could be delivered, and are not."""
        now, earlier = asyncio.get_running_loop().time(), self._waiting
        self._waiting = {}
        for each in consumers:
            room = (each.num_ack_pending or 0) < (each.config.max_ack_pending or 1)
            if each.num_pending and room and each.delivered is not None:
                count, since = earlier.get(each.name, (-1, now))
                delivered = each.delivered.consumer_seq
                self._waiting[each.name] = (delivered, since if count == delivered else now)
        limit = now - STALLED_LEASES * self._layout.lease_seconds
        stalled = {name for name, (_, since) in self._waiting.items() if since <= limit}
        return [number for number, each in self.owned.items() if each.consumer in stalled]

    async def _take_free(self, share: int, free: Sequence[int]) -> bool:
        """Take free partitions until the share is full; returns whether none was free."""
        tried = 0
        while (wanted := share - len(self.owned)) > 0 and tried < len(free):
            chosen = free[tried : tried + wanted]
            tried += len(chosen)
            results = await asyncio.gather(*map(self._take, chosen), return_exceptions=True)
            for number, each in zip(chosen, results, strict=True):
                if isinstance(each, BaseException):
                    log.error("partition %d cannot be taken: %s; tried again", number, each or type(each).__name__)
                elif each is not None:
                    self.owned[number] = each
        if tried:
            log.info("partitions: %d of %d are this worker's", len(self.owned), self._layout.partitions)
        return not free


def partition_number(consumer: api.ConsumerInfo) -> int | None:
    """Return the partition whose lease a consumer is; None: it is no lease of a partition."""
    number = (consumer.config.filter_subject or "").split(".")[1:2]
    return int(number[0]) if number and number[0].isdigit() else None
