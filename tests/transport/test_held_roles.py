"""The roles that one process plays at a time: who holds them, and what becomes of them when NATS fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable

import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NoAnswer
from nats.js.api import ConsumerInfo

from assembly.distributed.roles import keep_while_held
from tests.transport.connected import client
from tests.waiting import wait_until
from transport import lease as leases
from transport.connection import streams_of
from transport.fenced_log import Fenced
from transport.lease import Lease, evict, stand_by, wait_for_any
from transport.members import Member, Members
from transport.streams import ROLES

__all__ = ["client"]


async def test_a_role_that_could_not_be_taken_over_is_taken_over_anew(caplog: pytest.LogCaptureFixture) -> None:
    released: list[int] = []
    kept: list[int] = []

    async def held() -> AsyncGenerator[int]:
        for number in range(3):
            yield number
            released.append(number)

    async def keep(number: int) -> None:
        if number == 0:
            raise NoAnswer
        if number == 1:
            raise Fenced("team")
        kept.append(number)

    await keep_while_held(held(), keep, "the archive")
    assert (released, kept) == ([0, 1, 2], [2])
    assert [record.getMessage() for record in caplog.records] == [
        "the archive: the server does not answer (nats: timeout); it will be taken over anew",
        "the archive is kept by another process now",
    ]


async def test_a_bug_ends_the_role_and_the_lease_is_released() -> None:
    released: list[int] = []

    async def held() -> AsyncGenerator[int]:
        try:
            yield 1
        finally:
            released.append(1)

    async def keep(_number: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await keep_while_held(held(), keep, "the archive")
    assert released == [1]


class Process:
    """Stands by for a role, and keeps it until it is told to give it back."""

    def __init__(self, client: Client, name: str) -> None:
        self.client, self.name = client, name
        self.members = Members(streams_of(client), Member(name, ()))
        self.stopping, self.give_back = asyncio.Event(), asyncio.Event()
        self.held: Lease | None = None
        self.times = 0
        self.fails: list[Exception] = []

    def lease(self, subject: str = "roles.archive") -> Lease:
        if self.fails:
            raise self.fails.pop()
        return Lease(self.client, ROLES, subject, self.name, seconds=3.0, most_unacked=1)

    async def play(self) -> None:
        async for held in stand_by(self.client, ROLES, self.members, self.lease, self.stopping):
            self.held, self.times = held, self.times + 1
            await wait_for_any(None, self.give_back, held.lost)
            self.give_back.clear()
        self.held = None


async def holders(client: Client) -> list[ConsumerInfo]:
    return await streams_of(client).consumers_info(ROLES)


async def until(true: Callable[[], object]) -> None:
    await wait_until(true, 10)


@pytest.mark.real_time
async def test_a_role_goes_to_who_stands_by_when_it_is_given_back_or_taken(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "POLL_SECONDS", 60.0)  # they hear of it from the server
    one, two, three = (Process(client, name) for name in ("one", "two", "three"))
    for each in (one, two, three):
        await each.members.send_heartbeat()
    first = asyncio.create_task(one.play())
    await until(lambda: one.held)
    second, third = asyncio.create_task(two.play()), asyncio.create_task(three.play())
    await asyncio.sleep(0.2)
    assert (one.times, two.times, three.times) == (1, 0, 0)
    three.stopping.set()
    async with asyncio.timeout(10):
        await third
    [consumer] = await holders(client)
    assert one.held is not None
    assert consumer.name == one.held.consumer
    assert (consumer.config.metadata or {})["process"] == "one"
    lost = one.held.lost
    one.stopping.set()
    one.give_back.set()
    await first
    assert not lost.is_set()
    await until(lambda: two.times == 1)
    [consumer] = await holders(client)
    await streams_of(client).delete_consumer(ROLES, consumer.name)
    await until(lambda: two.times == 2)
    two.stopping.set()
    two.give_back.set()
    await second
    assert await holders(client) == []


@pytest.mark.real_time
async def test_a_role_of_which_nobody_hears_goes_to_who_stands_by(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(leases, "SILENT_SECONDS", 0.1)
    silent, two = Process(client, "silent"), Process(client, "two")
    assert await silent.lease().take()
    await two.members.send_heartbeat()
    playing = asyncio.create_task(two.play())
    await until(lambda: two.held)
    two.stopping.set()
    two.give_back.set()
    await playing


@pytest.mark.real_time
async def test_while_the_server_does_not_answer_a_role_is_asked_for_again(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "transport.lease")
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.01)
    process = Process(client, "one")
    process.fails = [NoAnswer(), TimeoutError()]
    playing = asyncio.create_task(process.play())
    await until(lambda: process.held)
    assert caplog.messages == [
        f"{ROLES}: the server does not answer ({why})" for why in ("TimeoutError", "nats: timeout")
    ]
    process.stopping.set()
    process.give_back.set()
    await playing


@pytest.mark.real_time
async def test_whoever_has_been_silent_for_long_enough_loses_its_role(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alive, silent = Process(client, "alive").lease(), Process(client, "silent").lease("roles.knowledge")
    for lease in (alive, silent):
        assert await lease.take()
    consumers, beating = await holders(client), {"me": 1, "alive": 1}
    assert await evict(client, ROLES, consumers, {"alive": 1}, "me", {}) == {}, "who has no heartbeat knows of none"
    suspects = await evict(client, ROLES, consumers, beating, "me", {})
    assert suspects.keys() == {silent.consumer}
    assert await evict(client, ROLES, consumers, beating, "me", suspects) == suspects
    assert await evict(client, ROLES, consumers, {**beating, "silent": 1}, "me", suspects) == {}
    assert len(await holders(client)) == 2
    monkeypatch.setattr(leases, "SILENT_SECONDS", 0.0)
    for _ in range(2):  # the second time, the server has deleted it already
        assert await evict(client, ROLES, consumers, beating, "me", suspects) == suspects
    assert [each.name for each in await holders(client)] == [alive.consumer]
    assert caplog.messages == [f"{ROLES}: the owner of {silent.consumer} is silent; another takes over"] * 2


async def test_waiting_ends_with_the_first_event_or_task_or_when_the_time_is_over() -> None:
    loop = asyncio.get_running_loop()
    event, other = asyncio.Event(), asyncio.Event()
    begun = loop.time()
    await wait_for_any(5.0, event, other)
    assert loop.time() == begun + 5
    loop.call_later(1.0, other.set)
    await wait_for_any(5.0, event, other)
    assert loop.time() == begun + 6
    ended = asyncio.create_task(asyncio.sleep(2.0))
    await wait_for_any(None, event, ended=[ended])
    assert loop.time() == begun + 8
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}
