"""What a budget promises, wherever its counts are kept; and what only those promise that several processes share."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import nats
import pytest
from nats.errors import TimeoutError as NoAnswer
from nats.js import JetStreamContext, api
from nats.js.api import PubAck
from nats.js.errors import NoStreamResponseError

from services.llm import Budget, BudgetLimits, Limiter, Spent, render_spent
from tests.loopback.nats_server import NatsServer
from transport import budgets, key_value
from transport.budgets import SharedBudget, SharedBudgets, read_budgets, write_budget

NAME, NUMBERS = "budgets-tried", itertools.count(1)
DAY, HOUR = 86_400.0, 3600.0
NOW = 20_780 * DAY + 40_000.0
HOURLY, ANSWERS, TOKENS = (
    f"limits.{name}" for name in ("chains_per_user_per_hour", "answers_per_day", "tokens_per_day")
)

real_time = pytest.mark.real_time


def named(user_id: int) -> str:
    """A pseudonym."""
    return f"p{user_id}"


class Installation(Protocol):
    """Where workers count together."""

    async def workers(self, limits: BudgetLimits, spent: Spent | None = None, count: int = 3) -> list[Limiter]: ...

    async def spent(self) -> Spent:
        """By all of them, until now."""
        ...


@dataclass
class OneProcess:
    budget: Budget = field(default_factory=lambda: Budget(BudgetLimits()))

    async def workers(self, limits: BudgetLimits, spent: Spent | None = None, count: int = 3) -> list[Limiter]:
        self.budget = Budget(limits, spent, name_of=named)
        return [self.budget] * count

    async def spent(self) -> Spent:
        return self.budget.spent


@dataclass
class Processes:
    """Each with a connection of its own. `streams`: another one, to look."""

    url: str
    stack: AsyncExitStack
    streams: JetStreamContext
    name: str
    shared: list[SharedBudgets] = field(default_factory=list[SharedBudgets])

    async def workers(self, limits: BudgetLimits, spent: Spent | None = None, count: int = 3) -> list[Limiter]:
        if spent is not None:
            await write_budget(self.streams, "shared", spent, self.name)
        return [(await self.process()).of("shared", limits) for _ in range(count)]

    async def process(self, change: Callable[[JetStreamContext], Any] | None = None) -> SharedBudgets:
        streams = await connected(self.stack, self.url)
        process = SharedBudgets(streams if change is None else change(streams), self.name, named)
        self.shared.append(await self.stack.enter_async_context(process))
        return process

    async def spent(self) -> Spent:
        for each in self.shared:
            await each.flush()
        return (await read_budgets(self.streams, self.name)).get("shared", Spent())


async def connected(stack: AsyncExitStack, url: str) -> JetStreamContext:
    client = await nats.connect(url, max_reconnect_attempts=-1, reconnect_time_wait=0.05, error_cb=unheard)
    stack.push_async_callback(client.close)
    return client.jetstream()


async def unheard(error: Exception) -> None:
    pass


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Processes]:
    # Of its own for each test: a server that restarts must not find what an earlier bucket of that name held.
    name = f"{NAME}-{next(NUMBERS)}"
    async with AsyncExitStack() as stack:
        streams = await connected(stack, url)
        await streams.create_key_value(api.KeyValueConfig(name))
        stack.push_async_callback(streams.delete_key_value, name)
        yield Processes(url, stack, streams, name)


@pytest.fixture
async def processes(nats_server: NatsServer) -> AsyncGenerator[Processes]:
    async with opened(nats_server.url) as there:
        yield there


class Promises:
    """Wherever counts are kept."""

    async def test_of_the_last_chains_of_an_hour_exactly_those_are_given_that_there_are(
        self, installation: Installation
    ) -> None:
        workers = await installation.workers(BudgetLimits(20), Spent(20_780, chains={"p7": deque([NOW - 60.0] * 15)}))
        asked = [worker.begin_chain(7, NOW + number) for number in range(10) for worker in workers]
        refused = await asyncio.gather(*asked)
        assert sorted(refused, key=str) == [None] * 5 + [HOURLY] * 25
        assert len((await installation.spent()).chains["p7"]) == 20

    async def test_an_hour_ends_for_each_chain_by_itself_and_each_asker_has_their_own(
        self, installation: Installation
    ) -> None:
        first, second, _ = await installation.workers(BudgetLimits(2))
        begun = [await each.begin_chain(7, NOW + at) for each, at in ((first, 0.0), (second, 60.0), (first, HOUR - 1))]
        assert begun == [None, None, HOURLY]
        assert await second.begin_chain(8, NOW + HOUR - 1) is None
        assert await second.begin_chain(7, NOW + HOUR) is None
        assert await first.begin_chain(7, NOW + HOUR + 59) == HOURLY
        assert await first.begin_chain(7, NOW + HOUR + 60) is None

    async def test_chains_of_a_clock_that_was_a_year_ahead_do_not_count_once_it_is_right(
        self, installation: Installation
    ) -> None:
        first, second, _ = await installation.workers(BudgetLimits(1))
        assert await first.begin_chain(7, NOW + 365 * DAY) is None
        assert await second.begin_chain(7, NOW) is None
        assert await first.begin_chain(7, NOW) == HOURLY

    async def test_answers_and_tokens_of_all_add_up_exactly(self, installation: Installation) -> None:
        workers = await installation.workers(BudgetLimits(0), Spent(20_780, answers=5, tokens=1000))

        async def works(worker: Limiter) -> None:
            for number in range(200):
                worker.used(number, NOW)
                worker.answered(NOW)
                if number % 40 == 0:
                    await installation.spent()

        await asyncio.gather(*map(works, workers))
        spent = await installation.spent()
        assert (spent.day, spent.answers, spent.tokens) == (20_780, 605, 1000 + 3 * 19_900)

    async def test_a_day_has_as_many_answers_and_tokens_as_are_allowed(self, installation: Installation) -> None:
        first, second, _ = await installation.workers(BudgetLimits(0, answers_per_day=2, tokens_per_day=100))
        first.answered(NOW)
        second.used(99, NOW)
        await installation.spent()
        assert [await each.begin_chain(7, NOW) for each in (first, second)] == [None, None]
        assert [await each.used_up(NOW) for each in (first, second)] == [None, None]
        second.answered(NOW)
        await installation.spent()
        assert [await each.begin_chain(7, NOW) for each in (first, second)] == [ANSWERS, ANSWERS]
        assert [await each.used_up(NOW) for each in (first, second)] == [ANSWERS, ANSWERS]
        assert await first.used_up(NOW + DAY) is None

    async def test_what_a_process_has_counted_itself_it_knows_at_once(self, installation: Installation) -> None:
        (worker,) = await installation.workers(BudgetLimits(0, tokens_per_day=10), count=1)
        worker.used(10, NOW)
        assert await worker.begin_chain(7, NOW) == TOKENS

    async def test_days_turn_at_midnight_utc(self, installation: Installation) -> None:
        first, second, _ = await installation.workers(
            BudgetLimits(5, answers_per_day=1, tokens_per_day=10), Spent(day=0)
        )
        assert await first.begin_chain(1, 86_000.0) is None
        first.answered(86_399.0)
        await installation.spent()
        assert await second.begin_chain(1, 86_399.9) == ANSWERS
        assert await second.begin_chain(2, 86_400.0) is None
        first.used(10, 86_401.0)
        await installation.spent()
        assert await second.begin_chain(2, 86_402.0) == TOKENS
        assert await second.begin_chain(3, 2 * DAY) is None

    async def test_what_was_counted_before_midnight_does_not_count_after_it(self, installation: Installation) -> None:
        first, second, _ = await installation.workers(BudgetLimits(0, answers_per_day=1))
        first.answered(DAY - 1)
        second.answered(DAY - 1)
        assert await first.begin_chain(1, DAY) is None
        await installation.spent()
        assert await second.begin_chain(1, DAY) is None
        second.answered(DAY)
        spent = await installation.spent()
        assert (spent.day, spent.answers) == (1, 1)

    async def test_a_clock_set_back_over_midnight_gives_no_budget_a_second_time(
        self, installation: Installation
    ) -> None:
        first, second, _ = await installation.workers(
            BudgetLimits(0, answers_per_day=1, tokens_per_day=10), Spent(day=3)
        )
        midnight = 3 * DAY
        first.answered(midnight + 1800)
        await installation.spent()
        for each in (first, second):
            assert await each.begin_chain(1, midnight - 1800) == ANSWERS
            assert await each.begin_chain(1, midnight + 3600) == ANSWERS
        for each in (first, second):
            assert await each.begin_chain(1, midnight + DAY) is None

    async def test_a_day_that_was_far_ahead_does_not_hold_budgets_up(self, installation: Installation) -> None:
        first, second, _ = await installation.workers(BudgetLimits(0, answers_per_day=1), Spent(day=40_000, answers=1))
        assert await first.begin_chain(1, NOW) is None
        second.answered(NOW)
        assert ((await installation.spent()).day, (await installation.spent()).answers) == (20_780, 1)
        assert await first.begin_chain(1, NOW) == ANSWERS

    async def test_a_refusal_is_told_once_per_user_and_window(self, installation: Installation) -> None:
        (worker,) = await installation.workers(BudgetLimits(), count=1)
        told = [worker.first_time(HOURLY, user, at) for user, at in ((1, 0.0), (1, 3599.0), (2, 0.0), (1, 3600.0))]
        assert told == [True, False, True, True]
        assert [worker.first_time(ANSWERS, 1, at) for at in (0.0, 86_399.0, 86_400.0)] == [True, False, True]

    async def test_without_limits_nobody_is_refused_and_everything_is_counted(self, installation: Installation) -> None:
        first, second, _ = await installation.workers(BudgetLimits(0))
        for _ in range(30):
            assert await first.begin_chain(7, NOW) is None
        second.answered(NOW)
        assert ((await installation.spent()).answers, (await installation.spent()).chains) == (1, {})


class TestOneProcess(Promises):
    @pytest.fixture
    def installation(self) -> OneProcess:
        return OneProcess()


@real_time
class TestProcesses(Promises):
    @pytest.fixture
    async def installation(self, nats_server: NatsServer) -> AsyncGenerator[Processes]:
        async with opened(nats_server.url) as there:
            yield there


# Shared


class Worse:
    """Streams whose answers to writes are lost, after the write or instead of it."""

    def __init__(self, streams: JetStreamContext, lost: list[str]) -> None:
        """`lost`: `answer` or `write`, for one write after another; later ones go well."""
        self._streams, self._lost = streams, lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._streams, name)

    async def publish(self, *args: Any, **kwargs: Any) -> PubAck:
        lost = self._lost.pop(0) if self._lost else ""
        if lost == "write":
            raise NoStreamResponseError
        stored = await self._streams.publish(*args, **kwargs)
        if lost == "answer":
            raise NoAnswer
        return stored


@real_time
async def test_a_chain_whose_answer_is_lost_counts_once(processes: Processes) -> None:
    lost = ["answer", "write", "answer"]
    worse = (await processes.process(lambda streams: Worse(streams, lost))).of("shared", BudgetLimits(3))
    assert await worse.begin_chain(7, NOW) is None
    assert lost == []
    assert len((await processes.spent()).chains["p7"]) == 1
    assert [await worse.begin_chain(7, NOW) for _ in range(3)] == [None, None, HOURLY]


@real_time
async def test_what_others_write_between_a_lost_answer_and_the_next_look_changes_nothing(processes: Processes) -> None:
    (other,) = await processes.workers(BudgetLimits(0), count=1)
    others = 0

    class Overtaken(Worse):
        async def publish(self, *args: Any, **kwargs: Any) -> PubAck:
            try:
                return await super().publish(*args, **kwargs)
            finally:
                nonlocal others
                others += 1
                other.used(1, NOW)
                await cast("SharedBudget", other).flush()

    worse = await processes.process(lambda streams: Overtaken(streams, ["answer", "write", "answer", "answer"]))
    worse.of("shared", BudgetLimits(0)).answered(NOW)
    worse.of("shared", BudgetLimits(0)).used(50, NOW)
    await worse.flush()
    spent = await processes.spent()
    assert (spent.answers, spent.tokens) == (1, 50 + others)


@real_time
async def test_others_hear_of_answers_without_being_asked_to_wait(processes: Processes) -> None:
    first, second = await processes.workers(BudgetLimits(0, answers_per_day=1), count=2)
    first.answered(NOW)
    async with asyncio.timeout(20):
        while await second.begin_chain(7, NOW) is None:
            pass
    assert await second.begin_chain(7, NOW) == ANSWERS


@real_time
async def test_groups_are_counted_by_themselves_and_named_by_their_section(processes: Processes) -> None:
    process = await processes.process()
    shared, own = process.of("shared", BudgetLimits(1)), process.of("41", BudgetLimits(1), "guilds.41")
    assert process.of("41", BudgetLimits(1), "guilds.41") is own
    assert [await each.begin_chain(7, NOW) for each in (shared, own)] == [None, None]
    assert await own.begin_chain(7, NOW) == "guilds.41.chains_per_user_per_hour"
    assert set(await read_budgets(processes.streams, processes.name)) == {"shared", "41"}


@real_time
async def test_a_process_whose_clock_is_behind_takes_the_day_of_the_others(processes: Processes) -> None:
    ahead, behind = await processes.workers(BudgetLimits(0, answers_per_day=2), count=2)
    midnight = 20_781 * DAY
    behind.answered(midnight - 30)
    ahead.answered(midnight + 1)
    await processes.shared[0].flush()
    assert await behind.begin_chain(7, midnight - 20) is None
    behind.answered(midnight - 10)
    spent = await processes.spent()
    assert (spent.day, spent.answers) == (20_781, 2)
    assert await ahead.begin_chain(7, midnight + 20) == ANSWERS


@real_time
async def test_the_server_forgets_an_askers_chains_itself(processes: Processes) -> None:
    """Pitfall 67: nothing else would know that they are there."""
    (worker,) = await processes.workers(BudgetLimits(5), count=1)
    await worker.begin_chain(7, NOW)
    kept = await processes.streams.get_last_msg(f"KV_{processes.name}", f"$KV.{processes.name}.shared.chains.p7")
    assert (kept.headers or {})["Nats-TTL"] == "4200"


@real_time
async def test_nothing_names_who_has_begun_a_chain(processes: Processes) -> None:
    """Pitfalls 49 and 67."""
    (worker,) = await processes.workers(BudgetLimits(5), count=1)
    await worker.begin_chain(123_456_789_012_345_678, NOW)
    stream, name = f"KV_{processes.name}", named(123_456_789_012_345_678)
    state = (await processes.streams.stream_info(stream, f"$KV.{processes.name}.>")).state
    assert state.subjects == {f"$KV.{processes.name}.shared.chains.{name}": 1}
    await processes.streams.publish(f"$KV.{processes.name}.shared.chains.{name[1:]}", b'{"a-1": 5}')
    assert set((await processes.spent()).chains) == {name}, "an earlier version counted by ids"


@real_time
async def test_an_installation_moves_with_what_it_has_spent(processes: Processes) -> None:
    spent = Spent(20_780, answers=3, tokens=400, chains={"p7": deque([NOW - 5, NOW - 4]), "p8": deque([NOW])})
    own = Spent(20_779, answers=1, tokens=2)
    await write_budget(
        processes.streams, "shared", Spent(20_780, answers=900, chains={"p9": deque([NOW])}), processes.name
    )
    await write_budget(processes.streams, "shared", spent, processes.name)
    await write_budget(processes.streams, "41", own, processes.name)
    assert await read_budgets(processes.streams, processes.name) == {"shared": spent, "41": own}
    (worker,) = await processes.workers(BudgetLimits(3), count=1)
    assert [await worker.begin_chain(7, NOW) for _ in range(2)] == [None, HOURLY]
    worker.answered(NOW)
    await processes.spent()
    moved = (await read_budgets(processes.streams, processes.name))["shared"]
    assert (moved.answers, moved.tokens) == (4, 400)
    assert json.loads(render_spent(moved))["day"] == 20_780


@real_time
@pytest.mark.parametrize("value", [b"{torn", b"[1]", b'{"day": 20780, "spent": {"a": [-5, "x"]}}', b'{"1": "nan"}'])
async def test_damaged_counts_are_told_and_begin_at_zero(
    processes: Processes, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 66."""
    for key in ("shared.day", "shared.chains.p7"):
        await processes.streams.publish(f"$KV.{processes.name}.{key}", value)
    (worker,) = await processes.workers(BudgetLimits(1, answers_per_day=1, tokens_per_day=1), count=1)
    assert [await worker.begin_chain(7, NOW) for _ in range(2)] == [None, HOURLY]
    assert "is damaged" in caplog.text
    worker.answered(NOW)
    assert (await processes.spent()).answers == 1


@real_time
async def test_a_restart_of_the_server_loses_no_count(
    processes: Processes, nats_server: NatsServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_value, "TRY_SECONDS", 0.3)
    caplog.set_level(logging.INFO, "transport")
    (worker,) = await processes.workers(BudgetLimits(2), count=1)
    assert await worker.begin_chain(7, NOW) is None
    nats_server.end()
    try:
        worker.answered(NOW)
        begins = asyncio.gather(*(worker.begin_chain(7, NOW + 1) for _ in range(2)))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(begins), 1)
    finally:
        nats_server.start()
    async with asyncio.timeout(20):
        assert sorted(await begins, key=str) == [None, HOURLY]
        spent = await processes.spent()
    assert (spent.answers, len(spent.chains["p7"])) == (1, 2)
    lines = [message for message in caplog.messages if message.startswith(NAME)]
    assert [" no answer " in line for line in lines] == [True, False]


# Without an answer, on virtual time


@dataclass
class Silent:
    """Streams that never answer; `asked`: when they were."""

    asked: list[float] = field(default_factory=list[float])

    async def get_last_msg(self, *args: Any) -> Any:
        self.asked.append(asyncio.get_running_loop().time())
        await asyncio.Event().wait()

    purge_stream = publish = get_last_msg


def silent() -> tuple[Silent, SharedBudgets]:
    streams = Silent()
    return streams, SharedBudgets(cast("JetStreamContext", streams))


async def test_a_server_that_does_not_answer_is_asked_until_the_chain_is_called_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    streams, shared = silent()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(shared.of("shared", BudgetLimits(1)).begin_chain(7, NOW), 60)
    assert streams.asked[:4] == pytest.approx([0, 2.1, 4.3, 6.7])
    assert streams.asked[-1] > 54
    assert caplog.messages == ["budgets: no answer from the NATS server, which is asked again: timed out"]


async def test_at_the_end_the_log_says_what_the_server_was_not_told(caplog: pytest.LogCaptureFixture) -> None:
    _, shared = silent()
    async with shared:
        shared.of("shared", BudgetLimits()).answered(NOW)
        shared.of("41", BudgetLimits()).used(0, NOW)
        shared.of("42", BudgetLimits())
        shared.of("shared", BudgetLimits()).used(30, NOW)
    assert asyncio.get_running_loop().time() == budgets.CLOSING_SECONDS
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "budgets: the NATS server was not told of 1 answers and 30 tokens of shared"
    ]
