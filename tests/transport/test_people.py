"""What processes know of people together: who is left alone, who is to be forgotten, and the key of pseudonyms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from nats.aio.client import Client

from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client, until
from transport.connection import Address, connect, streams_of
from transport.key_value import KeyBucket
from transport.people import ForgetReport, ForgetRequest, SharedPeople, has_people_bucket, open_people
from transport.streams import PEOPLE

__all__ = ["client"]

pytestmark = pytest.mark.real_time

ADA, BEN = 42, 43


@pytest.fixture
async def people(client: Client) -> AsyncGenerator[SharedPeople]:
    async with open_people(client) as opened:
        yield opened


@pytest.fixture
async def others(nats_server: NatsServer, people: SharedPeople) -> AsyncGenerator[SharedPeople]:
    """The same in another process."""
    assert people
    connected = await connect(Address((nats_server.url,)), "other")
    async with open_people(connected) as opened:
        yield opened
    await connected.close()


async def test_who_opts_out_in_one_process_is_left_alone_in_all(people: SharedPeople, others: SharedPeople) -> None:
    heard: list[int] = []
    others.opt_outs.on_added = heard.append
    await people.opt_outs.add(ADA)
    await until(lambda: ADA in others.opt_outs, 1)
    await others.opt_outs.add(BEN)
    await until(lambda: BEN in people.opt_outs, 1)
    assert heard == [ADA, BEN]
    await others.opt_outs.discard(ADA)
    await until(lambda: ADA not in people.opt_outs, 1)
    assert BEN in people.opt_outs


async def test_who_starts_later_knows_who_opted_out(client: Client, people: SharedPeople) -> None:
    await people.opt_outs.add(ADA)
    await people.opt_outs.add(BEN)
    await people.opt_outs.discard(BEN)
    async with open_people(client) as later:
        assert ADA in later.opt_outs
        assert BEN not in later.opt_outs


async def test_a_change_is_heard_after_a_restart_of_the_server(
    people: SharedPeople, others: SharedPeople, nats_server: NatsServer
) -> None:
    await people.opt_outs.add(ADA)
    await until(lambda: ADA in others.opt_outs)
    nats_server.end()
    changes = asyncio.gather(people.opt_outs.add(BEN), people.opt_outs.discard(ADA))
    nats_server.start()
    await changes
    await until(lambda: BEN in others.opt_outs and ADA not in others.opt_outs, 5)


async def test_what_goes_while_nobody_listens_is_gone(
    client: Client, people: SharedPeople, nats_server: NatsServer
) -> None:
    """A key that has run out meanwhile is told of nowhere: what is not there any more is compared."""
    await people.opt_outs.add(ADA)
    await until(lambda: people.opt_outs._ids == {ADA})  # pyright: ignore[reportPrivateUsage]
    await until(lambda: client.stats["in_msgs"])
    await streams_of(client).purge_stream(f"KV_{PEOPLE}")
    assert ADA in people.opt_outs
    nats_server.end()
    nats_server.start()
    await until(lambda: ADA not in people.opt_outs, 10)


async def test_a_server_that_is_away_is_an_error_of_the_system_and_the_change_holds_here(
    people: SharedPeople, nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transport.connection.PATIENCE_SECONDS", 0.2)
    nats_server.end()
    try:
        with pytest.raises(OSError, match="does not serve"):
            await people.opt_outs.add(ADA)
    finally:
        nats_server.start()
    assert ADA in people.opt_outs


async def test_all_use_the_key_that_was_first(people: SharedPeople, others: SharedPeople) -> None:
    keys = await asyncio.gather(people.feedback_key(b"one"), others.feedback_key(b"two"))
    assert len({*keys, await people.feedback_key(b"three")}) == 1


async def test_a_wish_is_carried_out_by_those_who_have_its_scopes(people: SharedPeople, others: SharedPeople) -> None:
    def do_part(request: ForgetRequest) -> None:
        if request.left and not doing:
            doing.append(
                asyncio.create_task(
                    others.forget_requests.complete(request, ForgetReport("b", ("p00", "team"), {"posts": 2}))
                )
            )

    doing: list[asyncio.Task[None]] = []
    others.forget_requests.on_change = do_part
    scopes = ["p00", "p01", "team"]
    answered = await people.forget_requests.request_and_wait(ADA, scopes, 0.5, owned=scopes, processes=["b"])
    assert [part.found for part in answered.parts] == [{"posts": 2}]
    assert answered.left == ("p01",)
    assert people.forget_requests.by_user[ADA].left == ("p01",)


async def test_a_wish_that_is_carried_out_is_waited_for_no_longer(people: SharedPeople, others: SharedPeople) -> None:
    tasks: set[asyncio.Task[None]] = set()

    def do_all(request: ForgetRequest) -> None:
        if request.left:
            tasks.add(
                asyncio.create_task(others.forget_requests.complete(request, ForgetReport("b", request.left, {})))
            )

    others.forget_requests.on_change = do_all
    scopes = ["p00", "team"]
    async with asyncio.timeout(5):
        answered = await people.forget_requests.request_and_wait(ADA, scopes, 60, owned=scopes, processes=["b"])
    assert answered.left == ()
    await until(lambda: not people.forget_requests.by_user[ADA].left)


async def test_nobody_waits_for_a_scope_without_an_owner(people: SharedPeople) -> None:
    async with asyncio.timeout(5):
        answered = await people.forget_requests.request_and_wait(ADA, ["p00", "team"], 60, owned=[], processes=[])
    assert answered.left == ("p00", "team")


async def test_of_two_who_do_their_part_at_once_none_undoes_the_other(
    people: SharedPeople, others: SharedPeople
) -> None:
    request = await people.forget_requests.make(ADA, ["p00", "p01", "p02"])
    await asyncio.gather(
        people.forget_requests.complete(request, ForgetReport("a", ("p00",), {})),
        others.forget_requests.complete(request, ForgetReport("b", ("p01",), {})),
    )
    await until(lambda: people.forget_requests.scopes_left(request) == ("p02",))


async def test_a_part_of_an_earlier_wish_is_none_of_a_later_one(people: SharedPeople) -> None:
    """What was kept of the person between the two is not forgotten yet."""
    early = await people.forget_requests.make(ADA, ["p00"])
    late = await people.forget_requests.make(ADA, ["p00"])
    await people.forget_requests.complete(early, ForgetReport("a", ("p00",), {}))
    await until(lambda: people.forget_requests.scopes_left(late) == ("p00",))
    assert people.forget_requests.scopes_left(early) == ()


async def test_a_damaged_wish_is_named(client: Client, people: SharedPeople, caplog: pytest.LogCaptureFixture) -> None:
    await KeyBucket(streams_of(client), PEOPLE).put(f"forget.{ADA}", b"{")
    await until(lambda: "forget.42 is damaged" in caplog.text)
    assert not people.forget_requests.by_user


async def test_who_ends_while_a_change_comes_ends(client: Client) -> None:
    """The wait of the client may take the message, and forget that it was cancelled."""
    async with asyncio.timeout(20):
        for user_id in range(50):
            async with open_people(client) as opened:
                await opened.opt_outs.add(user_id)


async def test_a_server_without_the_program_is_known(client: Client) -> None:
    assert await has_people_bucket(client)
    await streams_of(client).delete_key_value(PEOPLE)
    assert not await has_people_bucket(client)
