"""Counts of chains, answers, calls and tokens; the budget that limits them; and the tokens by UTC day and step."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol

from pydantic import Field, FiniteFloat, NonNegativeInt, TypeAdapter, ValidationError

import clock
from clock import DAY, HOUR, rfc3339
from services.storage import read_object, render_object

log = logging.getLogger(__name__)

KEPT_DAYS = 400
"""A year, and the month to compare it with."""


class StepTokens(NamedTuple):
    """The calls and tokens of one step on one day."""

    calls: NonNegativeInt = 0
    prompt: NonNegativeInt = 0
    completion: NonNegativeInt = 0


_DAYS = TypeAdapter(dict[str, dict[str, StepTokens]])


class TokenDays:
    """Counts answered calls and their tokens, for reports."""

    def __init__(self, days: Mapping[str, Mapping[str, StepTokens]] | None = None) -> None:
        self._days = {day: dict(steps) for day, steps in (days or {}).items()}

    @property
    def days(self) -> Mapping[str, Mapping[str, StepTokens]]:
        """The counts by day, such as `2026-11-22`, then by step."""
        return self._days

    def add(self, step: str, at: float, *, prompt_tokens: int, completion_tokens: int) -> None:
        day = _day_of(int(at // DAY))
        steps = self._days.setdefault(day, {})
        before = steps.get(step, StepTokens())
        steps[step] = StepTokens(before.calls + 1, before.prompt + prompt_tokens, before.completion + completion_tokens)


@lru_cache(maxsize=4)
def _day_of(number: int) -> str:
    """Return the date of a number of days since 1970. Cached, as nearly all calls are of the same day."""
    return rfc3339(number * DAY)[:10]


def read_token_days(path: Path) -> TokenDays:
    """Read `{"2026-11-22": {"gate": [calls, prompt, completion], …}, …}`; empty if damaged or missing."""
    try:
        return TokenDays(_DAYS.validate_python(read_object(path)))
    except ValidationError:
        log.warning("%s is damaged: what was spent before today is missing in reports", path)
        return TokenDays()


def parse_token_days(data: bytes) -> TokenDays:
    """Read such a file from its bytes; empty if it is damaged."""
    try:
        return TokenDays(_DAYS.validate_json(data))
    except ValidationError:
        return TokenDays()


def summed_token_days(parts: Iterable[TokenDays]) -> TokenDays:
    """Add the counts of several processes."""
    total: dict[str, dict[str, StepTokens]] = defaultdict(dict)
    for part in parts:
        for day, steps in part.days.items():
            for step, tokens in steps.items():
                before = total[day].get(step, StepTokens())
                total[day][step] = StepTokens(*map(sum, zip(before, tokens, strict=True)))
    return TokenDays(total)


def render_token_days(kept: TokenDays) -> bytes:
    newest = sorted(kept.days.items())[-KEPT_DAYS:]
    days = {day: {step: list(steps[step]) for step in sorted(steps)} for day, steps in newest}
    return render_object(days)


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """0 means unlimited."""

    chains_per_user_per_hour: int = 20
    answers_per_day: int = 0
    tokens_per_day: int = 0

    def reached(self, key: str, answers: int, tokens: int) -> str | None:
        """Return the name of the limit that a day with these counts has reached, in the section `key`; None: none. Of
        both, that of tokens is named, which also stops what answers nobody.
        """
        for name, count in (("tokens_per_day", tokens), ("answers_per_day", answers)):
            limit: int = getattr(self, name)
            if limit and count >= limit:
                return f"{key}.{name}"
        return None


@dataclass(slots=True)
class Spent:
    """The counts of a budget, kept over a restart. `day`: days since 1970, UTC; `chains`: the start times of each
    person's chains in the last hour, by a name that does not tell who.
    """

    day: int = 0
    answers: Annotated[int, Field(ge=0)] = 0
    tokens: Annotated[int, Field(ge=0)] = 0
    chains: dict[str, deque[FiniteFloat]] = field(default_factory=dict[str, "deque[FiniteFloat]"])

    def keep_recent(self, now: float) -> None:
        """Keep the start times of the last hour, and those up to an hour ahead, as the clock may have been set back; of
        others the clock was wrong. `now`: seconds since 1970.
        """
        for name, begun in [*self.chains.items()]:
            kept = deque(each for each in begun if now - HOUR < each <= now + HOUR)
            if kept:
                self.chains[name] = kept
            else:
                del self.chains[name]


class Limiter(Protocol):
    """Counts answers, and refuses at a limit: for this process or for several. `now`: seconds since 1970."""

    async def begin_chain(self, user_id: int, now: float) -> str | None:
        """Count a chain that begins now, or return the limit that forbids it. May wait for other processes."""
        ...

    async def used_up(self, now: float) -> str | None:
        """Return the name of the limit of the day that is reached; None: none is. May wait like `begin_chain`."""
        ...

    def answered(self, now: float) -> None: ...

    def used(self, tokens: int, now: float) -> None: ...

    def first_time(self, limit: str, user_id: int, now: float) -> bool:
        """Return True for the user's first refusal by `limit` in the current hour or day, in this process."""
        ...


class Refusals:
    """Remembers refusals, so that each user is told once an hour or day."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], float] = {}

    def first_time(self, limit: str, user_id: int, now: float) -> bool:
        """See `Limiter.first_time`."""
        window = now // (HOUR if limit.endswith("chains_per_user_per_hour") else DAY)
        known = self._known.get((limit, user_id))
        self._known[limit, user_id] = window
        return known != window

    def clear(self) -> None:
        self._known.clear()


def budget_day(seen: int, day: int) -> int:
    """Return the day of a budget, in days since 1970, UTC: `day`, or `seen` if the clock was set back over midnight
    since. One that is set back by more than a day was wrong before.
    """
    return day if day > seen or day < seen - 1 else seen


SHARED_GROUP = "shared"
"""The name of the group of budgets of all servers without limits of their own. Those of another are named by its id."""


class Budget:
    """The `Limiter` of a single process."""

    def __init__(
        self,
        limits: BudgetLimits,
        spent: Spent | None = None,
        key: str = "limits",
        name_of: Callable[[int], str] = str,
    ) -> None:
        """`key`: of the section that sets the limits. `name_of`: gives the name that a person's chains are counted by.
        Counts outlast a request to be forgotten, which would else give an hour's chains anew, so it is a pseudonym.
        """
        self._limits = limits
        self._key = key
        self._name_of = name_of
        self.spent = spent or Spent()
        self._refusals = Refusals()

    async def begin_chain(self, user_id: int, now: float) -> str | None:
        """See `Limiter.begin_chain`; returns without waiting."""
        if (reached := await self.used_up(now)) is not None:
            return reached
        limits, spent = self._limits, self.spent
        if limits.chains_per_user_per_hour:
            spent.keep_recent(now)
            begun = spent.chains.setdefault(self._name_of(user_id), deque())
            if len(begun) >= limits.chains_per_user_per_hour:
                return f"{self._key}.chains_per_user_per_hour"
            begun.append(now)
        return None

    async def used_up(self, now: float) -> str | None:
        """See `Limiter.used_up`; returns without waiting."""
        self._turn_day(now)
        return self._limits.reached(self._key, self.spent.answers, self.spent.tokens)

    def answered(self, now: float) -> None:
        self._turn_day(now)
        self.spent.answers += 1

    def used(self, tokens: int, now: float) -> None:
        self._turn_day(now)
        self.spent.tokens += tokens

    def first_time(self, limit: str, user_id: int, now: float) -> bool:
        return self._refusals.first_time(limit, user_id, now)

    def _turn_day(self, now: float) -> None:
        day = budget_day(self.spent.day, int(now // DAY))
        if day != self.spent.day:
            self.spent.keep_recent(now)
            self.spent.day, self.spent.answers, self.spent.tokens = day, 0, 0
            self._refusals.clear()


def read_spent(path: Path) -> Spent:
    """Read `{"day": …, "answers": …, "tokens": …, "begun": {"<pseudonym>": [seconds, …]}}`; zeros if unreadable. An
    earlier program wrote `chains`, by the ids of people: these are left out.
    """
    try:
        kept = read_object(path)
        return TypeAdapter(Spent).validate_python({**kept, "chains": kept.get("begun", {})})
    except ValidationError:
        log.warning("%s is damaged: budgets start at zero", path)
        return Spent()


def render_spent(spent: Spent) -> bytes:
    begun = {name: list(times) for name, times in sorted(spent.chains.items()) if times}
    counts = {"day": spent.day, "answers": spent.answers, "tokens": spent.tokens, "begun": begun}
    return render_object(counts)


ObserveTokens = Callable[[str, str, int], object]
"""Called with the step, the kind (`prompt`, `completion`) and the number of tokens of each answered call."""


@dataclass(slots=True)
class Usage:
    """Counts the answered calls of one part by step, and tokens by step and kind (`prompt`, `completion`); also in
    `parent`, such as the usage of the run.
    """

    parent: Usage | Spending | None = None
    calls: Counter[str] = field(default_factory=Counter[str])
    tokens: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        calls, tokens = self.calls, self.tokens
        prompt, completion = (step, "prompt"), (step, "completion")
        # A part mostly meets each step once: `get` is faster than a Counter's own default.
        calls[step] = calls.get(step, 0) + 1
        tokens[prompt] = tokens.get(prompt, 0) + prompt_tokens
        tokens[completion] = tokens.get(completion, 0) + completion_tokens
        if self.parent is not None:
            self.parent.add(step, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)


@dataclass(frozen=True, slots=True)
class Spending:
    """The outermost parent: charges the budget, and counts for reports, as soon as a call was answered."""

    budget: Limiter
    observe: ObserveTokens | None = None
    days: TokenDays | None = None

    def add(self, step: str, *, prompt_tokens: int, completion_tokens: int) -> None:
        at = clock.now()
        self.budget.used(prompt_tokens + completion_tokens, at)
        if self.days is not None:
            self.days.add(step, at, prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
        if self.observe is not None:
            self.observe(step, "prompt", prompt_tokens)
            self.observe(step, "completion", completion_tokens)
