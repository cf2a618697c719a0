"""One partition in the hands of a worker: what it takes up, records, acknowledges and hands on."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from clock import cancel_and_wait, now
from model.outcomes import Ignored, Outcome, OutcomeKind, Reason, Removed, Result
from services.discord import Dispatch
from tests.loopback.nats_server import NatsServer
from tests.talk import ANN, Talk
from tests.transport.connected import begun_anew
from tests.waiting import wait_until
from transport import partition as partitions
from transport.connection import Address, FileConnection, streams_of
from transport.dispatches import PLACE_HEADER, encode_line, render_facts
from transport.fenced_log import Backlog, Fenced, FencedLog
from transport.lease import ACK_SECONDS, Lease
from transport.partition import MAX_OPEN, AckSender, MessageResult, Partition, ResultRecorder
from transport.streams import MESSAGES, TTL, Layout

pytestmark = pytest.mark.real_time

LAYOUT = Layout(partitions=1, lease_seconds=1.2)
CHANNEL = 7


@dataclass
class Graph:
    """Ends each message as ignored, at once or when it is told to."""

    told: Callable[[Result], None]
    at_once: bool = True
    fed: list[str] = field(default_factory=list[str])
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    ends: list[object] = field(default_factory=list[object])

    def feed(self, dispatch: Dispatch) -> None:
        self.fed.append(f"{dispatch.t} {dispatch.d.get('id')}")
        if self.at_once and dispatch.t == "MESSAGE_CREATE":
            self.end(int(str(dispatch.d["id"])))

    def end(self, *message_ids: int) -> None:
        self.told(Ignored(Reason.EMPTY, CHANNEL, message_ids))
        self.ended.set()

    async def drain(self, seconds: float | None = None) -> None:
        self.ends.append(seconds)
        if not self.at_once and self.fed:
            await self.ended.wait()

    async def cut(self) -> None:
        self.ends.append("cut")
        self.ended.set()


@dataclass
class Worker:
    """Partitions of one process; its graphs, newest last."""

    client: Client
    file_connection: FileConnection
    name: str = "one"
    at_once: bool = True
    graphs: list[Graph] = field(default_factory=list[Graph])
    interactions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])

    def partition(self, trial_lock: asyncio.Lock | None = None) -> Partition:
        async def work(number: int, log: FencedLog, told: Callable[[Result], None]) -> Graph:
            assert (number, log.scope) == (0, "p00")
            self.graphs.append(Graph(told, self.at_once))
            return self.graphs[-1]

        lock = trial_lock or asyncio.Lock()
        told = self.interactions.append
        return Partition(self.client, self.file_connection, LAYOUT, 0, self.name, work, told, trial_lock=lock)


ODD = ValueError("odd")


@pytest.fixture(autouse=True)
def nothing_fails_unseen(caplog: pytest.LogCaptureFixture) -> Generator[None]:
    """A partition goes on after an exception, which it logs."""
    yield
    failures = [each.exc_info[1] for each in caplog.get_records("call") if each.exc_info]
    assert [each for each in failures if each is not ODD] == []


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    async with begun_anew(nats_server, LAYOUT) as connected:
        yield connected


@pytest.fixture
async def file_connection(nats_server: NatsServer) -> AsyncGenerator[FileConnection]:
    async with FileConnection(Address((nats_server.url,)), "test-files") as there:
        yield there


async def publish(client: Client, type_: str, message_id: int, headers: dict[str, str] | None = None) -> None:
    line = encode_line(Dispatch(1.0, type_, {"id": str(message_id), "channel_id": str(CHANNEL)}))
    await streams_of(client).publish(f"messages.{CHANNEL}", line, stream=MESSAGES, headers=headers)


async def left(client: Client) -> int:
    return (await streams_of(client).stream_info(MESSAGES)).state.messages


async def until(true: Callable[[], object]) -> None:
    await wait_until(true, 10)


async def until_left(client: Client, count: int = 0) -> None:
    async with asyncio.timeout(10):
        while await left(client) != count:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)


async def records(client: Client, branch: str = "done") -> list[dict[str, Any]]:
    """What the log holds, in order."""
    return [json.loads(entry.data) async for entry in FencedLog(streams_of(client), "p00").entries(branch=branch)]


async def done(client: Client) -> list[int]:
    """All message ids that are recorded as done, in order."""
    return [each for record in await records(client) for _, ids, _ in record["ended"] for each in ids]


async def lose_owners(client: Client) -> None:
    """Two owners one after the other, with everything that waits in their windows."""
    found = await streams_of(client).get_msg(MESSAGES, 1, "messages.0.>", next=True)
    last = await streams_of(client).get_last_msg(MESSAGES, "messages.0.>")
    assert found.time is not None
    assert last.time is not None
    seen = Backlog(found.time.timestamp(), last.time.timestamp() + 0.001)
    for _ in range(2):
        await FencedLog(streams_of(client), "p00").open("gone", 1.0, seen)


async def test_what_has_ended_is_recorded_and_then_acknowledged(
    client: Client, file_connection: FileConnection
) -> None:
    worker = Worker(client, file_connection)
    partition = worker.partition()
    assert await partition.take()
    [epoch] = await records(client, "epoch")
    assert (epoch["owner"], epoch["at"]) == ("one", pytest.approx(now(), abs=60))
    for number in range(1, 301):
        await publish(client, "MESSAGE_CREATE", number)
    await until_left(client)
    assert await done(client) == list(range(1, 301))
    assert partition.in_flight == 0
    await partition.release(drain=True)
    [epoch] = await records(client, "epoch")
    assert (epoch["owner"], epoch["at"]) == ("", pytest.approx(now(), abs=60))


async def test_the_graph_is_told_of_threads_and_servers_and_not_of_interactions(
    client: Client, file_connection: FileConnection
) -> None:
    worker = Worker(client, file_connection)
    partition = worker.partition()
    server = Dispatch(1.0, "GUILD_CREATE", {"id": "9"})
    partition.feed(server)  # there is no graph yet
    assert await partition.take()
    await publish(client, "MESSAGE_CREATE", 1, {PLACE_HEADER: render_facts({"id": "8"})})
    await publish(client, "INTERACTION_CREATE", 2)
    await until_left(client)
    partition.feed(server)
    partition.lose()
    partition.feed(Dispatch(1.0, "GUILD_CREATE", {"id": "10"}))
    assert worker.graphs[0].fed == ["THREAD_CREATE 8", "MESSAGE_CREATE 1", "GUILD_CREATE 9"]
    assert worker.interactions == [{"id": "2", "channel_id": str(CHANNEL)}]
    await partition.release(drain=False)


async def test_what_stays_open_or_comes_too_late_does_not_hold_up_who_gives_back(
    client: Client, file_connection: FileConnection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "transport.partition")
    worker = Worker(client, file_connection, at_once=False)
    partition = worker.partition()
    assert await partition.take()
    for number in (1, 2):
        await publish(client, "MESSAGE_CREATE", number)
    await until(lambda: worker.graphs and len(worker.graphs[0].fed) == 2)
    releasing = asyncio.create_task(partition.release(drain=True, seconds=9.0))
    await asyncio.sleep(0)
    for number in (3, 4):
        await publish(client, "MESSAGE_CREATE", number)
    async with asyncio.timeout(10):
        while (await streams_of(client).consumer_info(MESSAGES, partition.consumer or "")).num_ack_pending != 4:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)
    worker.graphs[0].end(1)
    await releasing
    assert (await left(client), await done(client)) == (3, [1])
    assert (len(worker.graphs[0].fed), worker.graphs[0].ends) == (2, [9.0])
    assert caplog.messages == ["partition 0 is given back"]


async def test_a_graph_that_breaks_at_its_end_does_not_keep_the_partition(
    client: Client, file_connection: FileConnection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_down(_graph: Graph, _seconds: float | None = None) -> None:
        raise ODD

    monkeypatch.setattr(Graph, "drain", break_down)
    worker = Worker(client, file_connection)
    first, second = worker.partition(), worker.partition()
    assert await first.take()
    await first.release(drain=True)
    assert caplog.messages == ["partition 0 was not handed over in order; its messages come again"]
    assert await second.take()
    await second.release(drain=False)


async def test_who_is_lost_with_messages_open_counts_as_crashed(
    client: Client, file_connection: FileConnection
) -> None:
    await publish(client, "MESSAGE_CREATE", 1)
    first, second = (Worker(client, file_connection, name, at_once=False).partition() for name in ("one", "two"))
    assert await first.take()
    first.lose()
    await first.release(drain=False)
    assert await second.take()
    taken = (await streams_of(client).consumer_info(MESSAGES, second.consumer or "")).created.timestamp()
    [epoch] = await records(client, "epoch")
    # It received nothing for so long already when the server gave it up.
    assert (epoch["owner"], epoch["crashes"], epoch["seen"]) == ("two", 1, taken - LAYOUT.lease_seconds / 2)
    await second.release(drain=False)


async def test_each_end_is_recorded_with_its_place_and_kind_for_a_day(
    client: Client, file_connection: FileConnection
) -> None:
    log = FencedLog(file_connection.streams, "p00")
    await file_connection.do(log.open("one", 1.0))
    results, talk = ResultRecorder(file_connection, log, "one"), Talk()
    answered, cut, late = (talk.part(talk.says(ANN)) for _ in range(3))
    for each in (
        Outcome(answered, 1.0, OutcomeKind.REPLIED),
        Outcome(cut, 1.0, OutcomeKind.CANCELLED, Reason.SHUTDOWN),
        Outcome(late, 1.0, OutcomeKind.CANCELLED, Reason.TEAM_IS_ANSWERING),
        Ignored(Reason.EMPTY, CHANNEL, (1, 2)),
        Removed(CHANNEL, 3),
    ):
        results.record_result(each)
    await results.record()
    [entry] = [each async for each in FencedLog(streams_of(client), "p00").entries(branch="done")]
    told = json.loads(entry.data)
    assert (told["by"], told["at"]) == ("one", pytest.approx(now(), abs=60))
    assert told["ended"] == [
        [answered.place.id, list(answered.message_ids), "replied"],
        [late.place.id, list(late.message_ids), "cancelled"],
        [CHANNEL, [1, 2], "ignored"],
        [CHANNEL, [3], "removed"],
    ]
    assert (entry.headers or {})[TTL] == "86400s"


async def test_a_message_is_acknowledged_as_often_as_it_came_and_recorded_once(
    client: Client, file_connection: FileConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = FencedLog(file_connection.streams, "p00")
    await file_connection.do(log.open("one", 1.0))
    sent = list[str]()

    class Acks:
        async def send(self, replies: list[str]) -> None:
            sent.extend(replies)

    results = ResultRecorder(file_connection, log, "one")
    results.acks = cast("AckSender", Acks())
    assert [results.hold(1, reply) for reply in ("a", "b")] == [True, False]
    results.acknowledge_with((9, 1), "c")  # an edit of it
    results.acknowledge_with((9,), "d")
    assert (len(results), results.count_unacknowledged()) == (1, 4)
    await results.record()
    assert sent == ["d"]
    results.finish(MessageResult(CHANNEL, [1], "ignored"))
    assert not results.hold(1, "e")
    results.finish(MessageResult(CHANNEL, [1, 2], "ignored"))
    await results.record()
    assert (sent, await done(client)) == (["d", "a", "b", "c", "e"], [1, 2])
    assert (len(results), results.count_unacknowledged()) == (0, 0)
    monkeypatch.setattr(partitions, "MAX_REMEMBERED", 2)
    results.finish(MessageResult(CHANNEL, [3, 4], "ignored"))
    assert [results.is_done(each) for each in (1, 2, 3, 4)] == [False, False, True, True]


async def test_what_cannot_be_recorded_yet_is_recorded_later(
    client: Client, file_connection: FileConnection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = FencedLog(file_connection.streams, "p00")
    await file_connection.do(log.open("one", 1.0))
    append, errors = log.append, [OSError(5, "away")]

    async def append_later(*given: Any) -> int:
        if errors:
            raise errors.pop()
        return await append(*given)

    monkeypatch.setattr(log, "append", append_later)
    results = ResultRecorder(file_connection, log, "one")
    recording = asyncio.create_task(results.keep_recording())
    results.finish(MessageResult(CHANNEL, [1], "ignored"))
    async with asyncio.timeout(10):
        while await done(client) != [1]:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)
    assert caplog.messages == ["p00: results wait to be recorded: [Errno 5] away"]
    await cancel_and_wait(recording)


async def test_an_edit_stays_as_long_as_the_message_that_it_changes(
    client: Client, file_connection: FileConnection
) -> None:
    worker = Worker(client, file_connection, at_once=False)
    partition = worker.partition()
    assert await partition.take()
    await publish(client, "MESSAGE_CREATE", 1)
    await publish(client, "MESSAGE_UPDATE", 1)
    await publish(client, "MESSAGE_UPDATE", 2)
    await until(lambda: worker.graphs and len(worker.graphs[0].fed) == 3)
    await until_left(client, 2)
    worker.graphs[0].end(1)
    await until_left(client)
    await partition.release(drain=True)


async def test_the_next_owner_is_given_what_is_open_and_nothing_that_is_done(
    client: Client, file_connection: FileConnection
) -> None:
    first, second = Worker(client, file_connection, at_once=False), Worker(client, file_connection, name="two")
    partition = first.partition()
    assert await partition.take()
    assert not await second.partition().take()
    for number in (1, 2, 3):
        await publish(client, "MESSAGE_CREATE", number)
    await until(lambda: first.graphs and len(first.graphs[0].fed) == 3)
    first.graphs[0].end(2)
    await until_left(client, 2)
    await partition.release(drain=False)
    assert first.graphs[0].ends == ["cut"]
    after = second.partition()
    assert await after.take()
    await until_left(client)
    assert second.graphs[0].fed == ["MESSAGE_CREATE 1", "MESSAGE_CREATE 3"]
    assert sorted(await done(client)) == [1, 2, 3]
    await after.release(drain=True)


async def test_what_is_recorded_and_not_acknowledged_does_not_run_again(
    client: Client, file_connection: FileConnection
) -> None:
    await publish(client, "MESSAGE_CREATE", 1)
    log = FencedLog(streams_of(client), "p00")
    await log.open("gone", 1.0)
    await log.append("done", json.dumps({"by": "gone", "at": 1.0, "ended": [[CHANNEL, [1], "ignored"]]}).encode())
    worker = Worker(client, file_connection)
    partition = worker.partition()
    assert await partition.take()
    await until_left(client)
    assert worker.graphs[0].fed == []
    assert await done(client) == [1]
    await partition.release(drain=True)


async def test_nothing_of_a_partition_that_another_has_taken_is_recorded(
    client: Client, file_connection: FileConnection
) -> None:
    worker = Worker(client, file_connection, at_once=False)
    partition = worker.partition()
    assert await partition.take()
    await publish(client, "MESSAGE_CREATE", 1)
    await until(lambda: worker.graphs and worker.graphs[0].fed)
    await FencedLog(streams_of(client), "p00").open("another", 2.0)
    worker.graphs[0].end(1)
    await asyncio.sleep(0.2)
    assert await done(client) == []
    assert await left(client) == 1
    assert partition.is_lost
    await partition.release(drain=False)


async def test_a_message_that_ends_its_worker_again_and_again_is_given_up_alone(
    client: Client, file_connection: FileConnection, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, 2, 3):
        await publish(client, "MESSAGE_CREATE", number)
    await lose_owners(client)
    await publish(client, "MESSAGE_CREATE", 4)
    third = Worker(client, file_connection, at_once=False)
    dying = third.partition()
    assert await dying.take()
    await until(lambda: len(third.graphs) == 1 and third.graphs[0].fed)
    third.graphs[0].end(1)  # the first one is none of it; with the second one it ends
    await until(lambda: len(third.graphs) == 2 and third.graphs[1].fed)
    assert third.graphs[1].fed == ["MESSAGE_CREATE 2"]
    assert [each["trying"] for each in await records(client, "epoch")] == [2]
    dying.lose()
    await dying.release(drain=False)
    await give_back_untried(client, file_connection)
    fourth = Worker(client, file_connection, name="four")
    partition = fourth.partition()
    assert await partition.take()
    await until_left(client)
    ended = {ids[0]: (place_id, kind) for record in await records(client) for place_id, ids, kind in record["ended"]}
    assert ended == {1: (7, "ignored"), 2: (7, "failed"), 3: (7, "ignored"), 4: (7, "ignored")}
    assert "message 2 has ended its worker again and again: it is given up" in caplog.messages
    # What came after they were lost is none of it.
    assert [each.fed for each in fourth.graphs] == [["MESSAGE_CREATE 3"], ["MESSAGE_CREATE 4"]]
    await partition.release(drain=True)


async def give_back_untried(client: Client, file_connection: FileConnection) -> None:
    """Have an owner that comes and goes while another partition of its process tries something."""
    trial_lock = asyncio.Lock()
    await trial_lock.acquire()
    partition = Worker(client, file_connection, name="between").partition(trial_lock=trial_lock)
    assert await partition.take()
    await partition.release(drain=True)


async def test_who_gives_suspects_back_untried_leaves_them_suspect(
    client: Client, file_connection: FileConnection
) -> None:
    """Workers come and go while one message ends them one by one."""
    for number in (1, 2):
        await publish(client, "MESSAGE_CREATE", number)
    await lose_owners(client)
    await give_back_untried(client, file_connection)
    fourth = Worker(client, file_connection, name="four")
    partition = fourth.partition()
    assert await partition.take()
    await until_left(client)
    await until(lambda: len(fourth.graphs) == 3)
    assert [each.fed for each in fourth.graphs] == [["MESSAGE_CREATE 1"], ["MESSAGE_CREATE 2"], []]
    await partition.release(drain=True)


async def test_what_is_tried_alone_and_passes_is_followed_by_the_ordinary_work(
    client: Client, file_connection: FileConnection
) -> None:
    for number, type_ in enumerate(("CREATE", "UPDATE")):
        for message_id in (1, 5 + number):
            await publish(client, f"MESSAGE_{type_}", message_id)
    await publish(client, "INTERACTION_CREATE", 7)
    log = FencedLog(streams_of(client), "p00")
    await log.open("gone", 1.0)
    await log.append("done", json.dumps({"by": "gone", "at": 1.0, "ended": [[CHANNEL, [5], "ignored"]]}).encode())
    await lose_owners(client)
    worker = Worker(client, file_connection)
    partition = worker.partition()
    assert await partition.take()
    await until_left(client)
    await until(lambda: len(worker.graphs) == 2)
    await publish(client, "MESSAGE_CREATE", 2)
    await until_left(client)
    assert [each.fed for each in worker.graphs] == [["MESSAGE_CREATE 1"], ["MESSAGE_CREATE 2"]]
    assert [each["id"] for each in worker.interactions] == ["7"]
    [epoch] = await records(client, "epoch")
    assert (epoch["owner"], epoch["at"], epoch["crashes"]) == ("one", pytest.approx(now(), abs=60), 0)
    await partition.release(drain=True)


async def test_between_two_trials_no_message_is_said_to_be_tried(
    client: Client, file_connection: FileConnection
) -> None:
    for number in (1, 2):
        await publish(client, "MESSAGE_CREATE", number)
    await lose_owners(client)
    trial_lock, worker = asyncio.Lock(), Worker(client, file_connection, at_once=False)
    partition = worker.partition(trial_lock)
    assert await partition.take()
    await until(lambda: worker.graphs and worker.graphs[0].fed)
    between = asyncio.create_task(trial_lock.acquire())
    await asyncio.sleep(0)
    worker.graphs[0].end(1)
    await between
    [epoch] = await records(client, "epoch")
    assert (epoch["crashes"], epoch["trying"], await done(client)) == (2, 0, [1])
    trial_lock.release()
    await until(lambda: len(worker.graphs) == 2 and worker.graphs[1].fed)
    worker.graphs[1].end(2)
    await until_left(client)
    await partition.release(drain=True)


@pytest.mark.parametrize("count", [1, 2])
async def test_suspects_that_are_not_tried_any_more_do_not_hold_up_who_gives_back(
    client: Client, file_connection: FileConnection, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    for number in range(count):
        await publish(client, "MESSAGE_CREATE", number + 1)
    await lose_owners(client)
    trial_lock, worker = asyncio.Lock(), Worker(client, file_connection)
    await trial_lock.acquire()
    partition = worker.partition(trial_lock)
    assert await partition.take()
    releasing = asyncio.create_task(partition.release(drain=True))
    await asyncio.sleep(0)
    trial_lock.release()
    await releasing
    assert (worker.graphs, await left(client)) == ([], count)
    assert not any("will come again" in message or "handed over" in message for message in caplog.messages)


async def test_the_server_gives_up_who_is_gone_sooner_than_who_is_silent(
    client: Client, file_connection: FileConnection
) -> None:
    partition = Worker(client, file_connection).partition()
    assert await partition.take()
    kept = await streams_of(client).consumer_info(MESSAGES, partition.consumer or "")
    await partition.release(drain=False)
    assert kept.config.inactive_threshold == LAYOUT.lease_seconds / 2
    assert (kept.config.metadata or {})["process"] == "one"
    assert (kept.config.ack_wait, kept.config.max_ack_pending) == (ACK_SECONDS, MAX_OPEN)


def miss_one(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first message on its way to a partition is lost."""
    subscribe: Callable[..., Awaitable[object]] = client.subscribe  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    missed = list[Msg]()

    async def subscribe_and_miss_one(subject: str, *, cb: Callable[[Msg], Awaitable[None]], **more: Any) -> object:
        async def on_message(message: Msg) -> None:
            if message.subject.startswith("messages.") and not missed:
                missed.append(message)
            else:
                await cb(message)

        return await subscribe(subject, cb=on_message, **more)

    monkeypatch.setattr(client, "subscribe", subscribe_and_miss_one)


async def test_who_misses_a_delivery_takes_nothing_behind_it_and_gives_the_partition_back(
    client: Client, file_connection: FileConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    miss_one(client, monkeypatch)
    worker = Worker(client, file_connection)
    partition = worker.partition()
    assert await partition.take()
    for number in (1, 2):
        await publish(client, "MESSAGE_CREATE", number)
    await until(lambda: partition.is_lost)
    assert worker.graphs[0].fed == []
    monkeypatch.undo()
    await partition.release(drain=False)
    after = worker.partition()
    assert await after.take()
    await until_left(client)
    assert await done(client) == [1, 2]
    await after.release(drain=True)


def lease_of(client: Client) -> Lease:
    return Lease(client, MESSAGES, "messages.0.>", "one", seconds=LAYOUT.lease_seconds, most_unacked=10)


async def test_behind_a_delivery_that_is_missed_nothing_is_delivered(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    miss_one(client, monkeypatch)
    lease, delivered = lease_of(client), list[bytes]()

    async def deliver(message: Msg) -> None:
        delivered.append(message.data)

    assert await lease.take(deliver)
    for number in (1, 2, 3):
        await publish(client, "MESSAGE_CREATE", number)
    async with asyncio.timeout(10):
        await lease.lost.wait()
        while await lease.count_unacknowledged() != 3:  # noqa: ASYNC110 (the server tells nobody)
            await asyncio.sleep(0.01)
    await until(lambda: not lease.unread)
    assert delivered == []
    assert caplog.messages == ["messages.0.>: a delivery did not arrive; all that waits is asked for anew"]
    await lease.release()


async def test_what_fails_at_one_message_keeps_no_other_from_its_delivery(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "transport.lease")
    lease, errors = lease_of(client), [ODD, Fenced("p00")]
    delivered = asyncio.Event()

    async def deliver(_message: Msg) -> None:
        if errors:
            raise errors.pop()
        delivered.set()

    assert await lease.take(deliver)
    for number in (1, 2, 3):
        await publish(client, "MESSAGE_CREATE", number)
    async with asyncio.timeout(10):
        await delivered.wait()
    assert caplog.messages == [
        "messages.0.>: belongs to another process now",
        "messages.0.>: a message was not taken up; it comes again later",
    ]
    await lease.release()


async def test_a_lease_may_be_given_back_again_or_when_the_server_has_ended_it(client: Client) -> None:
    lease = lease_of(client)
    await lease.release()
    assert await lease.take()
    await streams_of(client).delete_consumer(MESSAGES, lease.consumer or "")
    for _ in range(2):
        await lease.release()
        assert (lease.consumer, lease.unread) == (None, 0)
    assert await lease.take()
    await lease.release()
    assert await streams_of(client).consumers_info(MESSAGES) == []
