"""The judge of the scale drill catches what it is there for: each test has workers that get one thing wrong."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments untyped.

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field

import pytest
from nats.aio.client import Client

from benchmarks.scale import judge
from benchmarks.scale.faults import Loss, Story
from benchmarks.scale.findings import FAILOVER_SECONDS, failover, of_messages, of_poison
from benchmarks.scale.judge import Entry, Log, Posted, Sent
from benchmarks.scale.watch import Watch, connected, until
from tests.loopback.nats_server import NatsServer, delete_all_streams
from transport.streams import Layout, create_streams

SCOPE, CHANNEL, AUTHOR = "p07", 10, 3
SENT = [Sent(number, CHANNEL, AUTHOR, "question", float(number), f"case-{number}") for number in range(1, 5)]
POSTS = [Posted(number, number + 0.5, f"nonce-{number}", f"About case-{number}.") for number in range(1, 5)]
BLOCK = """\
--- QA ---
id: qa_20260201_0000{second:02}.000000
timestamp: 2026-02-01T00:00:{second:02}.000000Z
said_at: 2026-02-01T00:00:{second:02}.000000Z
conversation_id: thread_1
message_ids: {message}
author_ids: 3
Team: Run this.

"""


@dataclass
class Written:
    """A log as workers write it; each entry a second after the one before."""

    log: Log = field(default_factory=Log)
    at: float = 0.0

    def entry(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.at += 1
        self.log.add(Entry(f"log.{subject}", self.log.sequence + 1, self.at, data, headers or {}))

    def epoch(self, owner: str, scope: str = SCOPE) -> None:
        self.entry(f"{scope}.epoch", json.dumps({"owner": owner, "at": 0.0}).encode())

    def done(self, by: str, *ids: int, kind: str = "replied", scope: str = SCOPE) -> None:
        ended = [[CHANNEL, list(ids), kind]]
        self.entry(f"{scope}.done", json.dumps({"by": by, "at": 0.0, "ended": ended}).encode())

    def archive(self, change: str, text: str) -> None:
        path = b"team-knowledge/raw/2026-W05.txt"
        token = base64.urlsafe_b64encode(path).decode().rstrip("=")
        self.entry(f"team.file.{token}", text.encode(), {"Change": change})


@pytest.fixture
def written() -> Written:
    """One worker, which owns the partition, and no mistake so far."""
    written = Written()
    written.epoch("one")
    return written


def failed(written: Written, posts: list[Posted] = POSTS) -> list[str]:
    """The requirements that are not met, by their first words."""
    found = of_messages(SENT, posts, written.log)
    return [what.partition(":")[0] for met, what in found if not met]


def test_nothing_is_found_where_nothing_is_wrong(written: Written) -> None:
    for number in range(1, 4):
        written.done("one", number)
    written.epoch("two")
    written.done("two", 4, kind="captured")
    written.archive("append", BLOCK.format(second=1, message=4))
    assert failed(written) == []


def test_a_message_without_an_outcome_is_lost(written: Written) -> None:
    written.done("one", 1, 2, 4)
    assert judge.lost(SENT, written.log) == [3]
    assert "messages lost" in failed(written)


def test_a_message_in_two_records_is_found_and_one_that_comes_twice_in_a_record(written: Written) -> None:
    written.done("one", 1, 2)
    written.done("one", 2, 3)
    written.done("one", 4, 4)
    assert judge.in_two_batches(written.log) == [2, 4]
    assert "messages in two batches" in failed(written)


def test_an_earlier_message_of_the_same_author_after_a_later_one_is_out_of_order(written: Written) -> None:
    written.done("one", 2)
    written.done("one", 1)
    written.done("one", 3, 4)
    assert [ended.ids for ended in judge.out_of_order(SENT, written.log)] == [(1,)]
    assert "outcomes out of order within channel, author and kind" in failed(written)


def test_a_batch_in_the_middle_of_another_is_out_of_order(written: Written) -> None:
    written.done("one", 1, 3)
    written.done("one", 2, kind="skipped")
    assert [ended.ids for ended in judge.out_of_order(SENT, written.log)] == [(2,)]


def test_what_asks_nothing_may_be_settled_while_an_answer_is_written(written: Written) -> None:
    written.done("one", 2, kind="skipped")
    written.done("one", 1)
    assert judge.out_of_order(SENT, written.log) == []


def test_other_authors_and_places_have_an_order_of_their_own(written: Written) -> None:
    others = [Sent(5, CHANNEL, AUTHOR + 1, "talk", 5.0), Sent(6, CHANNEL + 1, AUTHOR, "talk", 6.0)]
    for number in (6, 5, 1):
        written.done("one", number)
    assert judge.out_of_order([*SENT, *others], written.log) == []


def test_what_a_former_owner_still_writes_is_late(written: Written) -> None:
    written.done("one", 1)
    written.epoch("two")
    written.done("one", 2)
    written.done("two", 3)
    assert [(ended.by, ended.ids) for ended in judge.late_writes(written.log)] == [("one", (2,))]
    assert "late writes accepted" in failed(written)


def test_a_scope_that_was_handed_back_is_nobodys(written: Written) -> None:
    written.epoch("")
    written.done("one", 1)
    assert [ended.by for ended in judge.late_writes(written.log)] == ["one"]


@pytest.mark.parametrize(
    "again",
    [
        Posted(2, 9.0, "nonce-2", "another text"),
        Posted(2, 9.0, "nonce-9", "a text"),
        Posted(8, 9.0, "nonce-9", "About case-2, again."),
    ],
    ids=["the same nonce", "the same text", "the same case elsewhere"],
)
def test_a_reply_that_is_posted_again_in_its_place_is_found(written: Written, again: Posted) -> None:
    fine = [*POSTS, Posted(2, 8.0, "nonce-8", "a text"), Posted(8, 8.5, "nonce-2", "a text")]
    assert judge.posted_twice(fine) == []
    assert judge.posted_twice([*fine, again]) == [again]
    assert "replies posted twice" in failed(written, [*fine, again])


def test_a_reply_that_nobody_posted_is_found(written: Written) -> None:
    written.done("one", 1)
    assert judge.unanswered(SENT, written.log, POSTS[1:]) == [1]
    assert "messages replied to without a post" in failed(written, POSTS[1:])


def test_a_case_that_was_handed_over_and_asked_again_is_found(written: Written) -> None:
    written.done("one", 1)
    case = next(each.case for each in SENT if each.id == 1)
    assert judge.asked_again(SENT, written.log, {SCOPE}, {case}, {case, "case-9"}) == [case]
    assert judge.asked_again(SENT, written.log, {SCOPE}, {case}, {"case-9"}) == []
    # It was another scope's: whoever had it before gave it up at another time.
    assert judge.asked_again(SENT, written.log, {"p99"}, {case}, {case}) == []


def test_the_archive_has_each_conversation_once_and_in_order(written: Written) -> None:
    for second in (1, 3, 3, 2, 4):
        written.archive("append", BLOCK.format(second=second, message=second))
    out_of_order = ["qa_20260201_000003.000000", "qa_20260201_000002.000000"]
    assert judge.disorder(judge.pairs(written.log)) == out_of_order
    assert "conversations out of order in the archive" in failed(written)


def test_the_archive_is_what_its_changes_make_it(written: Written) -> None:
    first, second = (BLOCK.format(second=number, message=number) for number in (1, 2))
    written.archive("append", first)
    written.archive("append", "--- QA")
    written.archive("truncate", str(len(first)))
    written.archive("append", second)
    assert [pair.message_ids for pair in judge.pairs(written.log)] == [(1,), (2,)]
    written.archive("replace", second)
    assert [pair.message_ids for pair in judge.pairs(written.log)] == [(2,)]
    written.archive("remove", "")
    assert judge.pairs(written.log) == []


def test_a_capture_that_is_not_in_the_archive_is_found(written: Written) -> None:
    written.done("one", 1, kind="captured")
    written.archive("append", BLOCK.format(second=2, message=2))
    assert judge.not_archived(written.log, judge.pairs(written.log)) == [1]
    assert "captured messages that are not in the archive" in failed(written)


def lost_worker(scopes: frozenset[str] = frozenset({SCOPE})) -> Loss:
    return Loss("one", scopes, 2.5)


def test_a_failover_ends_with_the_first_outcome_by_another(written: Written) -> None:
    written.done("one", 1)
    written.epoch("two")
    written.done("two", 2)
    met, what = failover("fail-over", lost_worker(), SENT, written.log, FAILOVER_SECONDS)
    assert met, what
    assert "1 of 1 scopes taken over in 0.50 to 0.50 s" in what
    assert "1.35 to 1.35 s (median 1.35 s), 0 never, 3.5 s at most wanted" in what
    written.at += 10
    written.done("two", 3)
    assert failover("fail-over", lost_worker(), SENT, written.log, FAILOVER_SECONDS)[0]


def test_a_failover_that_takes_too_long_or_never_comes_is_found(written: Written) -> None:
    written.done("one", 1)
    written.at += 10
    assert not failover("fail-over", lost_worker(), SENT, written.log, FAILOVER_SECONDS)[0]
    written.epoch("two")
    written.done("two", 2)
    assert not failover("fail-over", lost_worker(), SENT, written.log, FAILOVER_SECONDS)[0]
    assert failover("taking over", lost_worker(), SENT, written.log)[0]
    assert not failover("fail-over", lost_worker(frozenset()), SENT, written.log, FAILOVER_SECONDS)[0]
    assert not failover("fail-over", None, SENT, written.log)[0]


def test_a_scope_with_waiting_messages_that_only_its_former_owner_goes_on_with_is_never_taken_over(
    written: Written,
) -> None:
    written.done("one", 1)
    written.done("one", 2)
    assert judge.taken_over(SENT, written.log, "one", {SCOPE}, 2.5).never == 1


@pytest.mark.parametrize(
    ("ids", "kind", "deaths", "met"),
    [((4,), "failed", 3, True), ((3, 4), "failed", 3, False), ((4,), "replied", 3, False), ((4,), "failed", 2, False)],
    ids=["alone", "with another", "replied to", "too soon"],
)
def test_a_poison_message_ends_failed_and_alone_after_three_deaths(
    written: Written, ids: tuple[int, ...], kind: str, deaths: int, met: bool
) -> None:
    written.done("one", *ids, kind=kind)
    found = of_poison(Story(poison=4, deaths=deaths), written.log)
    assert [met for met, what in found if what.startswith("a poison message")] == [met]


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    async with connected(nats_server.url) as client:
        await delete_all_streams(client)
        await create_streams(client, Layout())
        yield client


@pytest.mark.real_time
async def test_the_watch_reads_every_entry_also_those_that_are_replaced_and_after_a_restart(
    nats_server: NatsServer, client: Client
) -> None:
    streams = client.jetstream()

    async def write(branch: str, fields: Mapping[str, object], headers: Mapping[str, str]) -> bool:
        stored = await streams.publish(f"log.p07.{branch}", json.dumps(fields).encode(), headers=dict(headers))
        return stored.seq > 0

    async def epoch(owner: str) -> None:
        await write("epoch", {"owner": owner}, {"Nats-Rollup": "sub"})

    async def done(by: str, message_id: int) -> bool:
        ended = [[CHANNEL, [message_id], "replied"]]
        return await write("done", {"by": by, "at": 0.0, "ended": ended}, {"Nats-Msg-Id": str(message_id)})

    async with Watch(client) as watch:
        await epoch("one")
        await watch.caught_up()
        await epoch("two")
        await done("two", 1)
        await watch.caught_up()
        nats_server.end()
        nats_server.start()
        assert await until(lambda: done("one", 2), 20) is not None
        await watch.caught_up()
    assert [each.owner for each in watch.log.epochs] == ["one", "two"]
    found = [(ended.by, ended.owner, ended.ids) for ended in watch.log.ended]
    assert found == [("two", "two", (1,)), ("one", "two", (2,))]


def test_the_longest_silence_is_while_a_message_waits() -> None:
    said = [judge.Sent(number, 1, 1, "talk", at) for number, at in enumerate((10.0, 11.0, 40.0), 1)]
    log = judge.Log()
    for number, at in enumerate((10.5, 15.0, 41.0), 1):
        log.ended.append(judge.Ended("p00", "a", "a", at, (number,), "ignored"))
    assert judge.longest_silence(said, log, 0.0, 100.0) == 4.0  # nobody waited from 15 to 40
    assert judge.longest_silence(said, log, 20.0, 100.0) == 1.0
    assert judge.longest_silence(said, log, 50.0, 100.0) == 0.0
