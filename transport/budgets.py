"""Budgets that several processes share, counted exactly in the bucket `budgets`.

Each process has an entry of its own in the counts of the day, and each chain an id among those of its asker, who has a
pseudonym here:

    shared.day            {"day": 20780, "spent": {"5f2c…": [12, 34567], "91ab…": [3, 8120]}}   answers and tokens
    shared.chains.c0f…    {"5f2c…-1": 1795415000.5, "91ab…-7": 1795415060.0}                    seconds since 1970

A write names the revision that it was made from, and is refused if another one was faster, so none is overwritten. If
the answer to a write is lost, the next read recognises it by its entry or id, so none counts twice. The entry of a
process takes some forty bytes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, NamedTuple, Self

from nats.js import JetStreamContext
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from clock import DAY, HOUR, cancel_and_wait
from services.llm import BudgetLimits, Refusals, Spent, budget_day
from transport.key_value import KeyBucket, read_values
from transport.streams import BUDGETS

REPORT_SECONDS = 0.2
"""How long answers and tokens are added up in this process before they are written to the bucket."""
CLOSING_SECONDS = 5.0
CHAINS_TTL_SECONDS = HOUR + 600
"""How long the server keeps an asker's chains after the last one: an hour, and some minutes as clocks may differ."""

EARLIER_PROCESS = "earlier"
"""The entry of the day, and the prefix of chain ids, for what was counted before an installation was moved."""

SNOWFLAKE = re.compile(r"[0-9]{17,20}")
"""The id by which an earlier version counted a person's chains. Its keys expire within the hour."""

log = logging.getLogger(__name__)

Count = Annotated[int, Field(ge=0)]


@dataclass(slots=True)
class _Day:
    """The counts of one day. `spent`: answers and tokens by process."""

    day: int = 0
    spent: dict[str, tuple[Count, Count]] = field(default_factory=dict[str, tuple[Count, Count]])


_DAY, _CHAINS = TypeAdapter(_Day), TypeAdapter(dict[str, FiniteFloat])


class _OwnCounts(NamedTuple):
    """The counts of this process for one day."""

    day: int = 0
    answers: int = 0
    tokens: int = 0


class SharedBudgets:
    """The budgets that this process shares with others, by group: `shared`, or the id of a server with limits of its
    own. On leaving, all counts are written to the bucket, or the log says which are not.
    """

    def __init__(self, streams: JetStreamContext, bucket: str = BUDGETS, name_of: Callable[[int], str] = str) -> None:
        """`bucket`: has a history of 1 and a TTL for single keys. `name_of`: as for `Budget`, everywhere the same."""
        self._bucket = KeyBucket(streams, bucket, math.inf)
        self._name_of = name_of
        self._budgets: dict[str, SharedBudget] = {}

    def of(self, group: str, limits: BudgetLimits, key: str = "limits") -> SharedBudget:
        """`key`: of the configuration section that sets the limits."""
        if group not in self._budgets:
            self._budgets[group] = SharedBudget(self._bucket, group, limits, key, self._name_of)
        return self._budgets[group]

    async def flush(self) -> None:
        await asyncio.gather(*(budget.flush() for budget in self._budgets.values()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            async with asyncio.timeout(CLOSING_SECONDS):
                await self.flush()
        except TimeoutError:
            for group, budget in self._budgets.items():
                lost = budget.unreported
                if lost != (0, 0):
                    line = "budgets: the NATS server was not told of %d answers and %d tokens of %s"
                    log.error(line, *lost, group)  # noqa: TRY400 (one line for the operator)
        finally:
            for budget in self._budgets.values():
                await budget.stop()


class SharedBudget:
    """A `Limiter` whose limits hold for all processes together. Made by `SharedBudgets`.

    An asker's chains are counted when they begin, one after another, so no more begin than are allowed. Answers and
    tokens of a day are compared with their limits when a chain begins, as in a single process: chains that are under
    way are not ended, and counts of other processes within the last 200 ms may be missing.
    """

    def __init__(
        self, bucket: KeyBucket, group: str, limits: BudgetLimits, key: str, name_of: Callable[[int], str]
    ) -> None:
        self._bucket, self._group, self._limits, self._key = bucket, group, limits, key
        self._name_of = name_of
        self._process_id = uuid.uuid4().hex
        self._numbers = count(1)
        self._refusals = Refusals()
        self._own = self._reported = _OwnCounts()
        self._reporting: asyncio.Task[None] | None = None
        self._flushing = asyncio.Lock()

    async def begin_chain(self, user_id: int, now: float) -> str | None:
        """Begin a chain, as `Limiter`. While the server is away, it is asked again until the caller is cancelled."""
        if (reached := await self.used_up(now)) is not None:
            return reached
        if self._limits.chains_per_user_per_hour and not await self._try_begin_chain(user_id, now):
            return f"{self._key}.chains_per_user_per_hour"
        return None

    async def used_up(self, now: float) -> str | None:
        """Return the limit that is used up, as `Limiter`; waits like `begin_chain`."""
        self._end_day_if_over(now)
        limits = self._limits
        if not (limits.answers_per_day or limits.tokens_per_day):
            return None
        day, _ = await self._read_day()
        answers, tokens = map(sum, zip(*{**day.spent, self._process_id: self._own[1:]}.values(), strict=True))
        return limits.reached(self._key, answers, tokens)

    def answered(self, now: float) -> None:
        self._count(1, 0, now)

    def used(self, tokens: int, now: float) -> None:
        self._count(0, tokens, now)

    def first_time(self, limit: str, user_id: int, now: float) -> bool:
        return self._refusals.first_time(limit, user_id, now)

    @property
    def unreported(self) -> tuple[int, int]:
        """Answers and tokens of today that the server has not confirmed."""
        reported = self._reported if self._reported.day == self._own.day else _OwnCounts()
        return self._own.answers - reported.answers, self._own.tokens - reported.tokens

    async def flush(self) -> None:
        """Write all counts so far to the bucket. Waits for the server without limit."""
        async with self._flushing:
            while self.unreported != (0, 0):
                day, revision = await self._read_day()
                own = self._own
                day.spent[self._process_id] = own.answers, own.tokens
                if await self._bucket.put(f"{self._group}.day", _DAY.dump_json(day), revision):
                    self._reported = own

    async def stop(self) -> None:
        """Stop writing to the bucket; counts that are not written are lost."""
        if self._reporting is not None:
            await cancel_and_wait(self._reporting)

    def _count(self, answers: int, tokens: int, now: float) -> None:
        self._end_day_if_over(now)
        day, counted, used = self._own
        self._own = _OwnCounts(day, counted + answers, used + tokens)
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.create_task(self._keep_reporting())

    async def _keep_reporting(self) -> None:
        while self.unreported != (0, 0):
            await asyncio.sleep(REPORT_SECONDS)
            await self.flush()

    async def _try_begin_chain(self, user_id: int, now: float) -> bool:
        """Count a chain, if the asker may begin one; returns whether that is so."""
        key, chain = self._chains_key(user_id), f"{self._process_id}-{next(self._numbers)}"
        while True:
            value, revision = await self._bucket.get(key)
            begun = {each: at for each, at in _parse_chains(key, value).items() if now - HOUR < at <= now + HOUR}
            if chain in begun:  # the answer to the write was lost
                return True
            if len(begun) >= self._limits.chains_per_user_per_hour:
                return False
            if await self._bucket.put(key, _CHAINS.dump_json({**begun, chain: now}), revision, CHAINS_TTL_SECONDS):
                return True

    def _chains_key(self, user_id: int) -> str:
        return f"{self._group}.chains.{self._name_of(user_id)}"

    async def _read_day(self) -> tuple[_Day, int]:
        """Return the counts of the current day, and their revision."""
        value, revision = await self._bucket.get(f"{self._group}.day")
        day = _parse_day(self._group, value)
        if budget_day(day.day, self._own.day) != day.day:
            return _Day(self._own.day), revision
        if day.day != self._own.day:
            # Another process is past midnight already; unreported counts here belong to the day before.
            self._begin_day(day.day)
        return day, revision

    def _end_day_if_over(self, now: float) -> None:
        day = budget_day(self._own.day, int(now // DAY))
        if day != self._own.day:
            self._begin_day(day)

    def _begin_day(self, day: int) -> None:
        self._own = _OwnCounts(day)
        self._refusals.clear()


async def read_budgets(streams: JetStreamContext, bucket: str = BUDGETS) -> dict[str, Spent]:
    """Return what each group has spent. Raises as the client."""
    found = defaultdict[str, Spent](Spent)
    for key, value in (await read_values(streams, bucket)).items():
        group, _, rest = key.partition(".")
        kind, _, name = rest.partition(".")
        if kind == "day":
            day = _parse_day(group, value)
            found[group].day = day.day
            found[group].answers = sum(answers for answers, _ in day.spent.values())
            found[group].tokens = sum(tokens for _, tokens in day.spent.values())
        elif kind == "chains" and not SNOWFLAKE.fullmatch(name):
            found[group].chains[name] = deque(sorted(_parse_chains(key, value).values()))
    return dict(found)


async def write_budget(streams: JetStreamContext, group: str, spent: Spent, bucket: str = BUDGETS) -> None:
    """Replace the counts of a group. To be called while no process counts. Raises ServerAway."""
    to = KeyBucket(streams, bucket)
    await to.remove(f"{group}.>")
    day = _Day(spent.day, {EARLIER_PROCESS: (spent.answers, spent.tokens)})
    await to.put(f"{group}.day", _DAY.dump_json(day))
    for name, begun in spent.chains.items():
        chains = {f"{EARLIER_PROCESS}-{number}": at for number, at in enumerate(begun)}
        await to.put(f"{group}.chains.{name}", _CHAINS.dump_json(chains), seconds=CHAINS_TTL_SECONDS)


def _parse_day(group: str, value: bytes) -> _Day:
    try:
        return _DAY.validate_json(value or b"{}")
    except ValidationError:
        log.warning("budgets: %s.day is damaged: the day starts at zero", group)
        return _Day()


def _parse_chains(key: str, value: bytes) -> Mapping[str, float]:
    try:
        return _CHAINS.validate_json(value or b"{}")
    except ValidationError:
        log.warning("budgets: %s is damaged: the hour starts at zero", key)
        return {}
