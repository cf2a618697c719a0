"""Who owns which partition, as workers come, go and fall silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from clock import cancel_and_wait
from tests.loopback.nats_server import NatsServer, delete_all_streams
from tests.waiting import wait_until
from transport.connection import Address, connect, streams_of
from transport.lease import Lease
from transport.members import Member, Members, answer_presence
from transport.rebalancing import WORKER, Rebalancing
from transport.streams import MESSAGES, Layout, create_streams

pytestmark = pytest.mark.real_time

LAYOUT = Layout(partitions=6, lease_seconds=1.0)


@dataclass
class Held:
    """A lease and nothing behind it. `transport.rebalancing.OwnedPartition`."""

    lease: Lease
    is_lost: bool = False
    drained: list[bool] = field(default_factory=list[bool])

    @property
    def consumer(self) -> str | None:
        return self.lease.consumer

    def lose(self) -> None:
        self.is_lost = True

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
        await cancel_and_wait(self.keeping.pop(name))
        await self.shares.pop(name).release()
        await cancel_and_wait(self.beating.pop(name))
        await Members(streams_of(self.client), Member(name, (WORKER,))).leave()

    async def freeze(self, name: str) -> Rebalancing:
        """It keeps its connection and does nothing any more."""
        await cancel_and_wait(self.keeping.pop(name))
        await cancel_and_wait(self.beating.pop(name))
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
    await wait_until(true, 15)


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
    await cancel_and_wait(workers.keeping.pop("two"))
    workers.shares.pop("two")
    await connection.close()
    await until(lambda: workers.counts() == [6])
    for _ in range(100):  # nor later, while it still seems to be alive
        await asyncio.sleep(0.02)
        assert workers.counts() == [6]
    await cancel_and_wait(workers.beating.pop("two"))


async def test_a_silent_worker_loses_what_it_owned(workers: Workers) -> None:
    """It keeps its connection: the server alone would wait for a ping that is not answered."""
    await workers.join("one")
    await workers.join("two")
    await until(lambda: workers.counts() == [3, 3])
    await workers.freeze("two")
    await until(lambda: workers.counts() == [6])


async def test_a_worker_that_wakes_up_knows_what_it_has_lost(workers: Workers) -> None:
    await workers.join("one")
    await workers.join("two")
    await until(lambda: workers.counts() == [3, 3])
    frozen = await workers.freeze("two")
    mine = list(frozen.owned.values())
    await until(lambda: workers.counts() == [6])
    waking = asyncio.create_task(frozen.keep_share())
    await until(lambda: all(isinstance(each, Held) and each.drained == [False] for each in mine))
    assert all(isinstance(each, Held) and each.is_lost for each in mine)
    await cancel_and_wait(waking)
    await frozen.release()


async def test_a_partition_of_which_the_server_delivers_nothing_is_taken_anew(workers: Workers) -> None:
    await workers.join("one")
    await until(lambda: workers.counts() == [6])
    owned = workers.shares["one"].owned
    before = {number: each.consumer for number, each in owned.items()}
    for name in before.values():  # as after a cut between servers: they are there, and deliver nothing
        pause = b'{"pause_until": "2999-01-01T00:00:00Z"}'
        await workers.client.request(f"$JS.API.CONSUMER.PAUSE.{MESSAGES}.{name}", pause)
    stored = await streams_of(workers.client).publish("messages.1", b"{}")
    assert stored.stream == MESSAGES

    def taken_anew() -> int:
        return sum(number in owned and owned[number].consumer != name for number, name in before.items())

    await until(lambda: taken_anew() > 0)
    async with asyncio.timeout(15):
        while any(each.num_pending for each in await streams_of(workers.client).consumers_info(MESSAGES)):  # noqa: ASYNC110 (the server is asked)
            await asyncio.sleep(0.1)
    assert taken_anew() == 1


async def test_a_partition_that_is_lost_but_holds_its_lease_is_taken_anew(workers: Workers) -> None:
    await workers.join("one")
    await until(lambda: workers.counts() == [6])
    owned = workers.shares["one"].owned
    lost = owned[3]
    lost.lose()  # somebody has written to its log, and has no lease
    await until(lambda: 3 in owned and owned[3] is not lost)
