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
from transport.connection import AWAY, streams_of
from transport.lease import evict, wait_for_any
from transport.members import Members, gone
from transport.streams import MESSAGES, Layout

WORKER = "worker"
LOOK_SECONDS = 1.0
"""Between two looks at who owns what, where nothing is heard of a change."""
SOON_SECONDS = 0.1
"""First pause before the next look while some partition has no owner (its former owner is still listed as alive, or
taking it failed); doubles up to LOOK_SECONDS.
"""
HAND_OVER_SECONDS = 1.5
"""When partitions are handed to a new worker: how long answers under way may take; later ones are answered again by the
new owner.
"""

log = logging.getLogger(__name__)


class OwnedPartition(Protocol):
    """A partition in hand."""

    @property
    def consumer(self) -> str | None:
        """That of its lease."""
        ...

    def lose(self) -> None:
        """It belongs to another process now: nothing of it is accepted any more."""
        ...

    async def release(self, *, drain: bool, seconds: float | None = None) -> None:
        """Give it back; `drain`: after all work on it has ended, or so many seconds. Must not raise."""
        ...


class Rebalancing:
    """Keeps this worker's share of the partitions: takes free ones, gives surplus ones back.

    `take`: gives a partition in hand, or None where another process has it.
    """

    def __init__(
        self, client: Client, layout: Layout, members: Members, take: Callable[[int], Awaitable[OwnedPartition | None]]
    ) -> None:
        self.owned: dict[int, OwnedPartition] = {}
        self._client, self._layout, self._members, self._take = client, layout, members, take
        self._changed = asyncio.Event()
        self._suspects: dict[str, float] = {}
        self._giving: set[asyncio.Task[None]] = set()

    async def keep(self) -> None:
        """Own what is due. Ends by being cancelled; `release` gives everything back then."""
        subject = f"$JS.EVENT.ADVISORY.CONSUMER.DELETED.{MESSAGES}.>"
        listening = await self._client.subscribe(subject, cb=self._deleted)
        soon = Backoff(SOON_SECONDS, LOOK_SECONDS)
        try:
            while True:
                self._changed.clear()
                complete = True
                try:
                    complete = await self._settle()
                except AWAY as error:
                    log.info("partitions: the server does not answer (%s)", error or type(error).__name__)
                if complete:
                    soon.reset()
                await wait_for_any(LOOK_SECONDS if complete else soon.pause(), self._changed)
        finally:
            await listening.unsubscribe()

    async def release(self) -> None:
        """Give everything back, when all work on it has ended."""
        owned, self.owned = list(self.owned.values()), {}
        await asyncio.gather(*self._giving, *(each.release(drain=True) for each in owned))

    async def _deleted(self, advisory: Msg) -> None:
        name = advisory.subject.rpartition(".")[2]
        for each in self.owned.values():
            if each.consumer == name:
                each.lose()
        self._changed.set()

    async def _settle(self) -> bool:
        """Own what is due as far as it is free; gives whether every partition has an owner."""
        alive = await self._members.alive()
        me = self._members.me.name
        consumers = await streams_of(self._client).consumers_info(MESSAGES)
        taken = {number_of(each) for each in consumers}
        free = [number for number in range(self._layout.partitions) if number not in taken]
        workers = {name for name, member in alive.items() if WORKER in member.roles} | {me}
        owners = {(each.config.metadata or {}).get("process") for each in consumers}
        workers -= await gone(self._client, workers - owners - {me})
        share = math.ceil(self._layout.partitions / len(workers))
        self._suspects = await evict(self._client, MESSAGES, consumers, alive, me, self._suspects)
        there = {each.name for each in consumers}
        for number, each in list(self.owned.items()):
            if each.consumer not in there:
                del self.owned[number]
                each.lose()
                await each.release(drain=False)
        surplus = list(self.owned)[share:]
        if surplus:
            log.info("partitions: %d of %d are given to other workers", len(surplus), len(self.owned))
            for number in surplus:
                giving = asyncio.create_task(self.owned.pop(number).release(drain=True, seconds=HAND_OVER_SECONDS))
                self._giving.add(giving)
                giving.add_done_callback(self._giving.discard)
        # Each worker begins elsewhere: all of them want some of the same at the same moment.
        first = len(free) * sorted(workers).index(me) // len(workers)
        return await self._fill(share, free[first:] + free[:first])

    async def _fill(self, share: int, free: Sequence[int]) -> bool:
        """Take of what is free until the share is full; gives whether nothing was free."""
        tried = 0
        while (wanted := share - len(self.owned)) > 0 and tried < len(free):
            chosen = free[tried : tried + wanted]
            tried += len(chosen)
            taken_now = await asyncio.gather(*map(self._take, chosen), return_exceptions=True)
            for number, each in zip(chosen, taken_now, strict=True):
                if isinstance(each, BaseException):
                    log.error("partition %d cannot be taken: %s; tried again", number, each or type(each).__name__)
                elif each is not None:
                    self.owned[number] = each
        if tried:
            log.info("partitions: %d of %d are this worker's", len(self.owned), self._layout.partitions)
        return not free


def number_of(consumer: api.ConsumerInfo) -> int | None:
    """The partition that a consumer is the lease of."""
    number = (consumer.config.filter_subject or "").split(".")[1:2]
    return int(number[0]) if number and number[0].isdigit() else None
