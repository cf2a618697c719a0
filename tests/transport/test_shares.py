"""Who owns which partition, as workers come, go and fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.loopback.nats_server import NatsServer
from transport.connection import Address, connect, streams_of
from transport.lease import Lease
from transport.members import Member, Members, answer_presence
from transport.rebalancing import WORKER, Rebalancing
from transport.streams import MESSAGES, Layout, create_streams, delete_all_streams

pytestmark = pytest.mark.real_time

LAYOUT = Layout(partitions=6, lease_seconds=1.0)


@dataclass
class Held:
    """A lease and nothing behind it. `transport.rebalancing.OwnedPartition`."""

    lease: Lease
    lost: bool = False
    drained: list[bool] = field(default_factory=list[bool])

    @property
    def consumer(self) -> str | None:
        return self.lease.consumer

    def lose(self) -> None:
        self.lost = True

    async def release(self, *, drain: bool, seconds: float | None = None) -> None:
        _ = seconds
        self.drained.append(drain)
        await self.lease.release()


class Workers:
    """Workers that beat and own, on one connection."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.shares: dict[str, Rebalancing] = {}
        self.beating: dict[str, asyncio.Task[None]] = {}
        self.keeping: dict[str, asyncio.Task[None]] = {}

    async def join(self, name: str, connection: Client | None = None) -> None:
        """`connection`: of its own; its beats are heard without it."""
        client = connection or self.client
        members = Members(streams_of(self.client), Member(name, (WORKER,)))
        await answer_presence(client, name)
        await members.send_heartbeat()

        async def beat() -> None:
            while True:
                await asyncio.sleep(LAYOUT.lease_seconds / 3)
                await members.send_heartbeat()

        async def take(number: int) -> Held | None:
            lease = Lease(client, MESSAGES, f"messages.{number}.>", name, seconds=LAYOUT.lease_seconds, most_unacked=10)
            return Held(lease) if await lease.take(nothing) else None

        self.shares[name] = Rebalancing(client, LAYOUT, members, take)
        self.beating[name] = asyncio.create_task(beat())
        self.keeping[name] = asyncio.create_task(self.shares[name].keep_share())

    async def leave(self, name: str) -> None:
        """In order."""
        self.keeping.pop(name).cancel()
        await self.shares.pop(name).release()
        self.beating.pop(name).cancel()
        await Members(streams_of(self.client), Member(name, (WORKER,))).leave()

    def freeze(self, name: str) -> Rebalancing:
        """It keeps its connection and does nothing any more."""
        self.keeping.pop(name).cancel()
        self.beating.pop(name).cancel()
        return self.shares.pop(name)

    def counts(self) -> list[int]:
        return sorted(len(each.owned) for each in self.shares.values())


async def nothing(_message: Msg) -> None:
    pass


@pytest.fixture
async def workers(nats_server: NatsServer) -> AsyncGenerator[Workers]:
    client = await connect(Address((nats_server.url,)), "test")
    await delete_all_streams(client)
    await create_streams(client, LAYOUT)
    made = Workers(client)
    yield made
    for name in list(made.shares):
        await made.leave(name)
    await client.close()


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(15):
        while not true():  # noqa: ASYNC110 (other processes, in real life)
            await asyncio.sleep(0.02)


async def test_each_worker_has_its_share_as_they_come_and_go(workers: Workers) -> None:
    await workers.join("one")
    await until(lambda: workers.counts() == [6])
    await workers.join("two")
    await until(lambda: workers.counts() == [3, 3])
    given = set(range(6)) - set(workers.shares["one"].owned)
    assert given == set(workers.shares["two"].owned)
    await workers.join("three")
    await until(lambda: workers.counts() == [2, 2, 2])
    await workers.leave("two")
    await until(lambda: workers.counts() == [3, 3])


async def test_what_is_given_away_is_drained_first(workers: Workers) -> None:
    await workers.join("one")
    await until(lambda: workers.counts() == [6])
    before = dict(workers.shares["one"].owned)
    await workers.join("two")
    await until(lambda: workers.counts() == [3, 3])
    gone = [each for number, each in before.items() if number not in workers.shares["one"].owned]
    assert [each.drained for each in gone if isinstance(each, Held)] == [[True]] * 3


async def test_who_has_lost_its_connection_has_no_share_any_more(workers: Workers, nats_server: NatsServer) -> None:
    """Its last beat is still to be heard."""
    connection = await connect(Address((nats_server.url,)), "other")
    await workers.join("one")
    await workers.join("two", connection)
    await until(lambda: workers.counts() == [3, 3])
    workers.keeping.pop("two").cancel()
    workers.shares.pop("two")
    await connection.close()
    await until(lambda: workers.counts() == [6])
    for _ in range(100):  # nor later, while it still seems to be alive
        await asyncio.sleep(0.02)
        assert workers.counts() == [6]
    workers.beating.pop("two").cancel()


async def test_a_silent_worker_loses_what_it_owned(workers: Workers) -> None:
    """It keeps its connection: the server alone would wait for a ping that is not answered."""
    await workers.join("one")
    await workers.join("two")
    await until(lambda: workers.counts() == [3, 3])
    workers.freeze("two")
    await until(lambda: workers.counts() == [6])


async def test_a_worker_that_wakes_up_knows_what_it_has_lost(workers: Workers) -> None:
    await workers.join("one")
    await workers.join("two")
    await until(lambda: workers.counts() == [3, 3])
    frozen = workers.freeze("two")
    mine = list(frozen.owned.values())
    await until(lambda: workers.counts() == [6])
    waking = asyncio.create_task(frozen.keep_share())
    await until(lambda: all(isinstance(each, Held) and each.drained == [False] for each in mine))
    assert all(isinstance(each, Held) and each.lost for each in mine)
    waking.cancel()
    await frozen.release()
