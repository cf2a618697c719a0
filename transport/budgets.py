"""Budgets that several processes share, counted exactly in the bucket `budgets`.

Each process has a place of its own in what a day has cost, and each chain an id among those of its asker:

    shared.day         {"day": 20780, "spent": {"5f2c…": [12, 34567], "91ab…": [3, 8120]}}      answers and tokens
    shared.chains.42   {"5f2c…-1": 1795415000.5, "91ab…-7": 1795415060.0}                       seconds since 1970

A write names the revision that it was made from and is refused if another one was faster, so none is overwritten. One
whose answer was lost is recognised at the next look by its place or id, so none counts twice. A process that has
counted something takes some forty bytes of the day.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, NamedTuple, Self

from nats.js import JetStreamContext
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from clock import cancelled
from services.llm import DAY, HOUR, BudgetLimits, Refusals, Spent, budget_day
from transport.connection import PATIENCE_SECONDS
from transport.key_value import KeyBucket, read_values
from transport.streams import BUDGETS

REPORT_SECONDS = 0.2
"""How long answers and tokens are added up here before the others hear of them."""
CLOSING_SECONDS = 5.0
KEPT_SECONDS = HOUR + 600
"""How long the server keeps an asker's chains after the last one: an hour by clocks that differ a little."""

EARLIER = "earlier"
"""The place, and the beginning of the ids, of what was counted before an installation was moved."""

log = logging.getLogger(__name__)

Whole = Annotated[int, Field(ge=0)]


@dataclass(slots=True)
class _Day:
    """`spent`: answers and tokens by process."""

    day: int = 0
    spent: dict[str, tuple[Whole, Whole]] = field(default_factory=dict[str, tuple[Whole, Whole]])


_DAY, _CHAINS = TypeAdapter(_Day), TypeAdapter(dict[str, FiniteFloat])


class _Counted(NamedTuple):
    """What this process has counted on a day."""

    day: int = 0
    answers: int = 0
    tokens: int = 0


class SharedBudgets:
    """The budgets that this process counts together with others, by group: `shared`, or the id of a server with limits
    of its own. At the end of the block the others have heard of everything, or the log says what they have not.
    """

    def __init__(self, streams: JetStreamContext, bucket: str = BUDGETS) -> None:
        """`bucket`: is there, with a history of 1, and lets single keys expire."""
        self._bucket = KeyBucket(streams, bucket, math.inf)
        self._budgets: dict[str, SharedBudget] = {}

    def of(self, group: str, limits: BudgetLimits, key: str = "limits") -> SharedBudget:
        """`key`: of the section that sets the limits."""
        if group not in self._budgets:
            self._budgets[group] = SharedBudget(self._bucket, group, limits, key)
        return self._budgets[group]

    async def flush(self) -> None:
        """As `SharedBudget`."""
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
                    said = "budgets: the NATS server was not told of %d answers and %d tokens of %s"
                    log.error(said, *lost, group)  # noqa: TRY400 (one line for the operator)
        finally:
            for budget in self._budgets.values():
                await budget.stop()


class SharedBudget:
    """A `Limiter` whose limits hold for all processes together. Made by `SharedBudgets`.

    An asker's chains are counted when they begin, one after another, so never more begin than are allowed. Answers and
    tokens of a day are compared with their limits when a chain begins, as in a single process: chains that are under
    way then, anywhere, still end, and what others have counted within the last 200 ms may not be known yet. All of them
    are in the sum that the next chain finds.
    """

    def __init__(self, bucket: KeyBucket, group: str, limits: BudgetLimits, key: str) -> None:
        self._bucket, self._group, self._limits, self._key = bucket, group, limits, key
        self._place = uuid.uuid4().hex
        self._numbers = count(1)
        self._refusals = Refusals()
        self._own = self._reported = _Counted()
        self._reporting: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()

    async def begin_chain(self, user_id: int, now: float) -> str | None:
        """As `Limiter`. Where the server does not answer, it is asked again until the caller is cancelled."""
        self._turn_day(now)
        limits = self._limits
        if limits.answers_per_day or limits.tokens_per_day:
            day, _ = await self._today()
            places = {**day.spent, self._place: self._own[1:]}.values()
            if limits.answers_per_day and sum(answers for answers, _ in places) >= limits.answers_per_day:
                return f"{self._key}.answers_per_day"
            if limits.tokens_per_day and sum(tokens for _, tokens in places) >= limits.tokens_per_day:
                return f"{self._key}.tokens_per_day"
        if limits.chains_per_user_per_hour and not await self._has_begun(user_id, now):
            return f"{self._key}.chains_per_user_per_hour"
        return None

    def answered(self, now: float) -> None:
        self._count(1, 0, now)

    def used(self, tokens: int, now: float) -> None:
        self._count(0, tokens, now)

    def first_time(self, limit: str, user_id: int, now: float) -> bool:
        return self._refusals.first_time(limit, user_id, now)

    async def forget(self, user_id: int) -> bool:
        """As `Limiter`; also when they began in other processes."""
        key, bucket = self._chains_of(user_id), self._bucket.with_patience(PATIENCE_SECONDS)
        value, _ = await bucket.get(key)
        await bucket.remove(key)
        return bool(value)

    @property
    def unreported(self) -> tuple[int, int]:
        """Answers and tokens of today that the server has not confirmed."""
        told = self._reported if self._reported.day == self._own.day else _Counted()
        return self._own.answers - told.answers, self._own.tokens - told.tokens

    async def flush(self) -> None:
        """Write everything counted so far to the bucket. Waits for the server as long as it takes."""
        async with self._turn:
            while self.unreported != (0, 0):
                day, revision = await self._today()
                own = self._own
                day.spent[self._place] = own.answers, own.tokens
                if await self._bucket.put(f"{self._group}.day", _DAY.dump_json(day), revision):
                    self._reported = own

    async def stop(self) -> None:
        """Stop writing to the bucket; what is not written is lost."""
        if self._reporting is not None:
            await cancelled(self._reporting)

    def _count(self, answers: int, tokens: int, now: float) -> None:
        self._turn_day(now)
        day, counted, used = self._own
        self._own = _Counted(day, counted + answers, used + tokens)
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.create_task(self._keep_reporting())

    async def _keep_reporting(self) -> None:
        while self.unreported != (0, 0):
            await asyncio.sleep(REPORT_SECONDS)
            await self.flush()

    async def _has_begun(self, user_id: int, now: float) -> bool:
        """Count a chain that begins now, if it may."""
        key, chain = self._chains_of(user_id), f"{self._place}-{next(self._numbers)}"
        while True:
            value, revision = await self._bucket.get(key)
            begun = {each: at for each, at in _chains(key, value).items() if at > now - HOUR}
            if chain in begun:  # the answer to the write was lost
                return True
            if len(begun) >= self._limits.chains_per_user_per_hour:
                return False
            if await self._bucket.put(key, _CHAINS.dump_json({**begun, chain: now}), revision, KEPT_SECONDS):
                return True

    def _chains_of(self, user_id: int) -> str:
        return f"{self._group}.chains.{user_id}"

    async def _today(self) -> tuple[_Day, int]:
        """What the day that counts has cost, and the revision of that."""
        value, revision = await self._bucket.get(f"{self._group}.day")
        day = _day(self._group, value)
        if budget_day(day.day, self._own.day) != day.day:
            return _Day(self._own.day), revision
        if day.day != self._own.day:
            # Another process is past midnight already; what is not told belongs to the day before.
            self._begin_day(day.day)
        return day, revision

    def _turn_day(self, now: float) -> None:
        day = budget_day(self._own.day, int(now // DAY))
        if day != self._own.day:
            self._begin_day(day)

    def _begin_day(self, day: int) -> None:
        self._own = _Counted(day)
        self._refusals.clear()


async def read(streams: JetStreamContext, bucket: str = BUDGETS) -> dict[str, Spent]:
    """Return what each group has spent. Raises as the client."""
    found = defaultdict[str, Spent](Spent)
    for key, value in (await read_values(streams, bucket)).items():
        group, _, rest = key.partition(".")
        kind, _, user = rest.partition(".")
        if kind == "day":
            day = _day(group, value)
            found[group].day = day.day
            found[group].answers = sum(answers for answers, _ in day.spent.values())
            found[group].tokens = sum(tokens for _, tokens in day.spent.values())
        elif kind == "chains" and user.isdecimal():
            found[group].chains[int(user)] = deque(sorted(_chains(key, value).values()))
    return dict(found)


async def write(streams: JetStreamContext, group: str, spent: Spent, bucket: str = BUDGETS) -> None:
    """Replace what a group has spent, while no process counts: its counts would be lost. Raises ServerAway."""
    to = KeyBucket(streams, bucket)
    await to.remove(f"{group}.>")
    day = _Day(spent.day, {EARLIER: (spent.answers, spent.tokens)})
    await to.put(f"{group}.day", _DAY.dump_json(day))
    for user_id, begun in spent.chains.items():
        chains = {f"{EARLIER}-{number}": at for number, at in enumerate(begun)}
        await to.put(f"{group}.chains.{user_id}", _CHAINS.dump_json(chains), seconds=KEPT_SECONDS)


def _day(group: str, value: bytes) -> _Day:
    try:
        return _DAY.validate_json(value or b"{}")
    except ValidationError:
        log.warning("budgets: %s.day is damaged: the day starts at zero", group)
        return _Day()


def _chains(key: str, value: bytes) -> Mapping[str, float]:
    try:
        return _CHAINS.validate_json(value or b"{}")
    except ValidationError:
        log.warning("budgets: %s is damaged: the hour starts at zero", key)
        return {}
