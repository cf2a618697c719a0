"""Roles that only one process plays at a time: the others wait, and take over when its lease ends or its heartbeat
stops.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import api
from nats.js.errors import APIError

from transport.connection import AWAY, streams_of
from transport.lease import Lease
from transport.members import Members

LOOK_SECONDS = 0.5
"""Between two looks at who does it."""
SILENT_SECONDS = 0.4
"""So long a process must have been missing already: after a restart of the server not all are seen at once."""

log = logging.getLogger(__name__)


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
                suspects = await evict(client, stream, consumers, await members.alive(), members.me.name, suspects)
            except AWAY as error:
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


async def wait_for_any(seconds: float, *events: asyncio.Event) -> None:
    """Wait until one of the events is set, but no longer."""
    waiting = [asyncio.ensure_future(each.wait()) for each in events]
    await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
