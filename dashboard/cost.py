"""What models were asked for: tokens by step, day and channel, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dashboard.showing import DisplayRules
from reporting.cost import Costs, Expense

DAYS = 30
ELSEWHERE = "all else"
_PENNIES = 0.01


class CostRow(NamedTuple):
    """`money`: empty where a price is unknown; `share`: of the largest of its table, in per cent."""

    name: str
    calls: int
    prompt: int
    completion: int
    money: str
    share: int


@dataclass(frozen=True, slots=True)
class CostView:
    """`priced`: whether all prices are known."""

    total: CostRow
    by_day: Sequence[CostRow]
    by_step: Sequence[CostRow]
    by_channel: Sequence[CostRow]
    priced: bool


def view(costs: Costs, showing: DisplayRules) -> CostView:
    """Days the newest first; steps and channels the largest first, then what belongs to no channel."""
    channels = [(showing.place(channel), spent) for channel, spent in costs.channels.items()]
    if costs.elsewhere.calls or costs.elsewhere.tokens:
        channels.append((ELSEWHERE, costs.elsewhere))
    return CostView(
        _rows([("all", costs.total)])[0],
        _rows(sorted(costs.days.items(), reverse=True)),
        _rows(sorted(costs.steps.items(), key=lambda item: (-item[1].tokens, item[0]))),
        _rows(channels),
        costs.total.money is not None,
    )


def _rows(known: Sequence[tuple[str, Expense]]) -> list[CostRow]:
    """Make rows of names and expenses; names may occur twice."""
    largest = max((each.tokens for _, each in known), default=0)
    return [
        CostRow(
            name,
            each.calls,
            each.prompt,
            each.completion,
            money(each.money),
            round(100 * each.tokens / largest) if largest else 0,
        )
        for name, each in known
    ]


def money(amount: float | None) -> str:
    """Format an amount in the currency of the prices; empty where unknown."""
    if amount is None:
        return ""
    return f"{amount:.4f}" if 0 < amount < _PENNIES else f"{amount:,.2f}"
