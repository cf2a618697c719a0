"""Adds up tokens and money by step, day and channel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from clock import DAY, rfc3339
from model.steps import STEPS, AskedModel
from reporting.reading import TimeSpan
from services.llm import StepTokens
from services.telemetry import PartOutcome

KNOWLEDGE_STEPS = frozenset(each.name for each in STEPS if each.model is AskedModel.KNOWLEDGE)
"""Steps that ask the model of `kb.llm`, if one is set there."""


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a million tokens in the operator's currency."""

    prompt: float
    completion: float


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of the answering model and of the one for knowledge work; None: unknown."""

    answering: Price | None = None
    knowledge: Price | None = None

    def of(self, step: str) -> Price | None:
        return self.knowledge if step in KNOWLEDGE_STEPS else self.answering


@dataclass(slots=True)
class Expense:
    """Calls to models, their tokens and what they cost.

    Attributes:
        prompt, completion: tokens.
        money: None where a price is unknown.
    """

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    money: float | None = 0.0

    @property
    def tokens(self) -> int:
        return self.prompt + self.completion

    def add(self, calls: int, prompt: int, completion: int, price: Price | None) -> None:
        self.calls += calls
        self.prompt += prompt
        self.completion += completion
        cost = None if price is None else (prompt * price.prompt + completion * price.completion) / 1_000_000
        known = self.money is not None and (cost is not None or not prompt + completion)
        self.money = (self.money or 0.0) + (cost or 0.0) if known else None


@dataclass(slots=True)
class Costs:
    """Tokens and cost of whole UTC days, by step, day and channel.

    Attributes:
        channels: the cost of answers, by channel; `names`: the names of channels, where they are known.
        elsewhere: the cost of all else, such as descriptions, topics and private questions.
    """

    total: Expense = field(default_factory=Expense)
    steps: dict[str, Expense] = field(default_factory=dict[str, Expense])
    days: dict[str, Expense] = field(default_factory=dict[str, Expense])
    channels: dict[int, Expense] = field(default_factory=dict[int, Expense])
    elsewhere: Expense = field(default_factory=Expense)
    names: dict[int, str] = field(default_factory=dict[int, str])


def whole_days(period: TimeSpan) -> Sequence[str]:
    """Return the UTC days that the period touches, as YYYY-MM-DD, oldest first."""
    days: list[str] = []
    at = period.since
    while at < period.until:
        days.append(rfc3339(at)[:10])
        at = (at // DAY + 1) * DAY
    return days


def costs(
    token_days: Mapping[str, Mapping[str, StepTokens]], entries: Iterable[PartOutcome], period: TimeSpan, prices: Prices
) -> Costs:
    """Add up tokens and cost of a period. `token_days`: by day and step. `entries`: the outcomes of its days."""
    found = Costs()
    unassigned: dict[str, StepTokens] = {}  # by step: what no channel has got yet
    for day in whole_days(period):
        for step, spent in token_days.get(day, {}).items():
            price = prices.of(step)
            for each in (
                found.total,
                found.steps.setdefault(step, Expense()),
                found.days.setdefault(day, Expense()),
            ):
                each.add(*spent, price)
            before = unassigned.get(step, StepTokens())
            unassigned[step] = StepTokens(*(one + other for one, other in zip(before, spent, strict=True)))
    channels: defaultdict[int, Expense] = defaultdict(Expense)
    for entry in entries:
        for step, tokens in entry.tokens.items():
            rest = unassigned.get(step, StepTokens())
            # A channel gets no more than was counted. A crash may lose some of the count, but not the outcome with its
            # tokens: without this bound the channels would add up to more than the total.
            prompt, completion = min(tokens[0], rest.prompt), min(tokens[1], rest.completion)
            channels[entry.channel_id].add(0, prompt, completion, prices.of(step))
            unassigned[step] = StepTokens(rest.calls, rest.prompt - prompt, rest.completion - completion)
        channels[entry.channel_id].calls += entry.llm_calls
        if entry.channel:
            found.names[entry.channel_id] = entry.channel
    used = ((channel, spent) for channel, spent in channels.items() if spent.calls or spent.tokens)
    found.channels = dict(sorted(used, key=lambda item: -item[1].tokens))
    for step, spent in unassigned.items():
        found.elsewhere.add(0, spent.prompt, spent.completion, prices.of(step))
    found.elsewhere.calls = max(found.total.calls - sum(spent.calls for spent in found.channels.values()), 0)
    return found
