"""What models were asked for: tokens by step, day and channel, and what they cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.showing import Showing
from services.llm import StepTokens
from services.telemetry import Ended

DAYS = 30
MILLION = 1_000_000
_PENNIES = 0.01


class CostRow(NamedTuple):
    """`share`: of the largest of its table, in per cent."""

    name: str
    calls: int
    prompt: int
    completion: int
    money: str
    share: int


@dataclass(frozen=True, slots=True)
class CostView:
    """`by_channel` holds what was spent on questions and captures alone: describing sources belongs to no channel."""

    total: CostRow
    by_day: Sequence[CostRow]
    by_step: Sequence[CostRow]
    by_channel: Sequence[CostRow]
    priced: bool


def view(
    days: Mapping[str, Mapping[str, StepTokens]],
    entries: Iterable[Ended],
    price: tuple[float, float] | None,
    showing: Showing,
) -> CostView:
    """`days`: of all time, of which the last `DAYS` are shown; `entries`: of as many days."""
    last = dict(sorted(days.items())[-DAYS:])
    by_day = {day: _sum(steps.values()) for day, steps in reversed(last.items())}
    by_step: defaultdict[str, list[StepTokens]] = defaultdict(list)
    for steps in last.values():
        for step, tokens in steps.items():
            by_step[step].append(tokens)
    by_channel: defaultdict[int, list[StepTokens]] = defaultdict(list)
    for entry in entries:
        if entry.tokens:
            spent = [StepTokens(0, prompt, completion) for prompt, completion in entry.tokens.values()]
            by_channel[entry.channel_id].append(_sum(spent)._replace(calls=entry.llm_calls))
    steps = {step: _sum(each) for step, each in by_step.items()}
    channels = {showing.place(channel): _sum(each) for channel, each in by_channel.items()}
    return CostView(
        _rows({"all": _sum(by_day.values())}, price)[0],
        _rows(by_day, price),
        _rows(_by_size(steps), price),
        _rows(_by_size(channels), price),
        price is not None,
    )


def _sum(each: Iterable[StepTokens]) -> StepTokens:
    known = list(each)
    return StepTokens(
        sum(one.calls for one in known), sum(one.prompt for one in known), sum(one.completion for one in known)
    )


def _by_size(known: Mapping[str, StepTokens]) -> dict[str, StepTokens]:
    return dict(sorted(known.items(), key=lambda item: (-(item[1].prompt + item[1].completion), item[0])))


def _rows(known: Mapping[str, StepTokens], price: tuple[float, float] | None) -> list[CostRow]:
    largest = max((each.prompt + each.completion for each in known.values()), default=0)
    return [
        CostRow(
            name,
            each.calls,
            each.prompt,
            each.completion,
            "" if price is None else money(each, price),
            round(100 * (each.prompt + each.completion) / largest) if largest else 0,
        )
        for name, each in known.items()
    ]


def money(tokens: StepTokens, price: tuple[float, float]) -> str:
    """In the currency that the price is in."""
    cost = (tokens.prompt * price[0] + tokens.completion * price[1]) / MILLION
    return f"{cost:.4f}" if 0 < cost < _PENNIES else f"{cost:,.2f}"
