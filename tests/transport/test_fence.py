"""One writer at a time, by the server's own rule."""

from __future__ import annotations

import asyncio
import errno
import json
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js.errors import APIError, NotFoundError

from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client
from transport.address import ServersUnusable
from transport.connection import Address, connect, streams_of
from transport.fenced_log import Backlog, Epoch, Fenced, FencedLog, erase_entry, erase_subject
from transport.streams import LOG, Layout, create_streams

__all__ = ["client"]

pytestmark = pytest.mark.real_time


async def test_entries_come_back_in_order(client: Client) -> None:
    log = FencedLog(streams_of(client), "p07")
    await log.open("a", 1.0)
    for number in range(5):
        await log.append("done", str(number).encode())
    entries = [entry async for entry in log.entries(branch="done")]
    assert [entry.data for entry in entries] == [b"0", b"1", b"2", b"3", b"4"]
    between = sum(each.metadata.timestamp.timestamp() for each in entries[2:4]) / 2
    assert [entry.data async for entry in log.entries(between, "done")] == [b"3", b"4"]


async def test_nothing_of_a_former_owner_is_accepted(client: Client) -> None:
    former, owner = FencedLog(streams_of(client), "p07"), FencedLog(streams_of(client), "p07")
    told: list[str] = []
    former.on_lost = lambda: told.append("lost")
    await former.open("a", 1.0)
    await former.append("done", b"early")
    await owner.open("b", 2.0)
    for _ in range(2):
        with pytest.raises(Fenced, match=r"^p07 belongs to another process now$"):
            await former.append("done", b"late")
    await owner.append("done", b"later")
    assert [entry.data async for entry in owner.entries(branch="done")] == [b"early", b"later"]
    assert told == ["lost"]


async def test_scopes_do_not_touch_each_other(client: Client) -> None:
    one, other = FencedLog(streams_of(client), "p01"), FencedLog(streams_of(client), "p10")
    await one.open("a", 1.0)
    await other.open("b", 1.0)
    await asyncio.gather(*(log.append("done", b"x") for log in (one, other, one, other)))


async def test_lost_owners_that_have_seen_the_same_message_are_counted(client: Client) -> None:
    async def opened(oldest: float, lost: float) -> tuple[int, float]:
        epoch = await FencedLog(streams_of(client), "p01").open("a", lost, Backlog(oldest, lost))
        assert (epoch.owner, epoch.at) == ("a", lost)
        return epoch.crashes, epoch.seen

    assert await opened(9.0, 10.0) == (0, 0.0)
    assert await opened(9.0, 20.0) == (1, 20.0)
    # The oldest is done now; a later one is not that the first of them has seen as well.
    assert await opened(19.0, 30.0) == (2, 20.0)
    # All that the first has seen is done: the last was lost with something else.
    assert await opened(21.0, 40.0) == (1, 40.0)
    # Handing it back in order is no loss, and clears nobody who has not been tried.
    log = FencedLog(streams_of(client), "p01")
    assert (await log.open("a", 1.0, Backlog(21.0, 50.0))).crashes == 2
    await log.hand_back(2.0)
    assert await opened(21.0, 60.0) == (2, 40.0)
    # The next is lost as well, but with something else.
    assert (await log.open("a", 1.0, Backlog(41.0, 70.0))).crashes == 1
    await log.hand_back(2.0)
    assert await opened(71.0, 80.0) == (0, 0.0)


async def test_of_two_who_open_a_scope_at_once_the_later_follows_the_other(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = FencedLog(streams_of(client), "p01"), FencedLog(streams_of(client), "p01")
    await first.open("gone", 1.0)
    read, others = second.streams.get_last_msg, [first]

    async def read_before_another_writes(*given: Any) -> Any:
        found = await read(*given)
        if given[1].endswith(".epoch") and others:
            await others.pop().open("a", 2.0)
        return found

    monkeypatch.setattr(second.streams, "get_last_msg", read_before_another_writes)
    assert await second.open("b", 3.0, Backlog(9.0, 20.0)) == Epoch("b", 3.0, crashes=1, seen=20.0)
    assert [json.loads(each.data)["owner"] async for each in second.entries(branch="epoch")] == ["b"]


async def test_of_all_epochs_the_last_is_kept(client: Client) -> None:
    log = FencedLog(streams_of(client), "p01")
    await log.open("a", 1.0)
    await log.open("b", 2.0, Backlog(9.0, 20.0))
    await log.hand_back(3.0)
    [epoch] = [json.loads(entry.data) async for entry in log.entries(branch="epoch")]
    assert epoch == {"owner": "", "at": 3.0, "crashes": 1, "seen": 20.0, "trying": 0}


async def test_an_epoch_of_another_version_is_read_as_far_as_it_is_known(client: Client) -> None:
    told = b'{"owner": "a", "at": 1.0, "first": 9, "crashes": 1, "seen": 20.0}'
    await streams_of(client).publish("log.p01.epoch", told)
    epoch = await FencedLog(streams_of(client), "p01").open("b", 2.0, Backlog(19.0, 30.0))
    assert (epoch.owner, epoch.crashes, epoch.seen) == ("b", 2, 20.0)


async def test_who_was_lost_with_nothing_open_is_not_counted(client: Client) -> None:
    for at in (1.0, 2.0, 3.0):
        assert await FencedLog(streams_of(client), "p01").open("a", at) == Epoch("a", at)


async def test_an_entry_whose_answer_is_lost_counts_once(client: Client, nats_server: NatsServer) -> None:
    log = FencedLog(streams_of(client), "p01")
    await log.open("a", 1.0)
    nats_server.end()
    writing = asyncio.create_task(log.append("done", b"x"))
    nats_server.start()
    await writing
    await log.append("done", b"y")
    assert [entry.data async for entry in log.entries(branch="done")] == [b"x", b"y"]


async def test_an_entry_that_was_stored_counts_once_although_the_next_try_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer was lost, and the server knows no longer that it is the same entry."""
    log = FencedLog(streams_of(client), "p01")
    await log.open("a", 1.0)
    publish, errors = log.streams.publish, [TimeoutError(), APIError(400, "wrong last sequence", 10071)]

    async def publish_and_lose(*given: Any) -> Any:
        answer = await publish(*given)
        if errors:
            raise errors.pop(0)
        return answer

    monkeypatch.setattr(log.streams, "publish", publish_and_lose)
    number = await log.append("done", b"x")
    assert await log.append("done", b"y") == number + 1
    assert [entry.data async for entry in log.entries(branch="done")] == [b"x", b"y"]


@pytest.mark.parametrize(("code", "err_code"), [(409, 10158), (503, 10008)])
async def test_an_entry_that_the_server_cannot_take_yet_is_written_later(
    client: Client, monkeypatch: pytest.MonkeyPatch, code: int, err_code: int
) -> None:
    """10158: of three servers, the first try is not stored on a second one yet. 10008: they have no leader."""
    log = FencedLog(streams_of(client), "p01")
    await log.open("a", 1.0)
    publish, errors = log.streams.publish, [APIError(code, "not now", err_code)]

    async def publish_later(*given: Any) -> Any:
        if errors:
            raise errors.pop()
        return await publish(*given)

    monkeypatch.setattr(log.streams, "publish", publish_later)
    await log.append("done", b"x")
    assert [entry.data async for entry in log.entries(branch="done")] == [b"x"]


async def test_an_entry_that_the_server_refuses_for_good_is_an_error_that_says_why(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FencedLog(streams_of(client), "p01")

    async def refuse(*_given: Any) -> Any:
        raise APIError(400, "message size exceeds maximum allowed", 10054)

    monkeypatch.setattr(log.streams, "publish", refuse)
    with pytest.raises(OSError, match=r"NATS refuses it \(message size exceeds maximum allowed\)") as refused:
        await log.append("done", b"x")
    assert refused.value.errno == errno.EIO


async def test_the_last_entry_may_run_out(client: Client) -> None:
    """Some are kept for a day only; a scope may be quiet for longer."""
    log = FencedLog(streams_of(client), "p01")
    await log.open("a", 1.0)
    await log.append("done", b"x")
    for _ in range(2):
        await streams_of(client).delete_msg(LOG, await log.append("done", b"short-lived"))
    await log.append("done", b"y")
    assert [entry.data async for entry in log.entries(branch="done")] == [b"x", b"y"]


async def test_what_is_erased_is_gone_alone(client: Client) -> None:
    log = FencedLog(streams_of(client), "p01")
    await log.open("a", 1.0)
    numbers = [await log.append(branch, b"x") for branch in ("done", "other", "done")]
    await erase_subject(log.streams, LOG, "log.p01.done")
    assert [entry.metadata.sequence.stream async for entry in log.entries()] == [1, numbers[1]]
    await erase_entry(log.streams, LOG, numbers[0])  # it is gone already
    with pytest.raises(NotFoundError):
        await erase_entry(log.streams, "NO_STREAM", 1)


async def test_other_partitions_than_the_server_has_are_refused(client: Client) -> None:
    with pytest.raises(ServersUnusable, match=r"nats.partitions: .*partition\(32,1\)"):
        await create_streams(client, Layout(partitions=16))
    await create_streams(client, Layout())


async def test_another_lease_than_the_bucket_of_members_was_made_for_is_refused(client: Client) -> None:
    with pytest.raises(
        ServersUnusable, match=r"nats.lease_seconds: the bucket members was made for 3 s, wanted are 9 s; .* or"
    ):
        await create_streams(client, Layout(lease_seconds=9.0))
    await create_streams(client, Layout())


async def test_no_server_is_one_line() -> None:
    with pytest.raises(
        ServersUnusable, match=r"^transport: nats://127\.0\.0\.1:9 cannot be reached: .*that the server runs$"
    ):
        await connect(Address(("nats://127.0.0.1:9",)), "test")
