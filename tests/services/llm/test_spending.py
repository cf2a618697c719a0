from __future__ import annotations

from clock import now
from services.llm.usage import Budget, BudgetLimits, Spending, Usage


async def test_every_call_of_every_part_counts_towards_the_day_and_is_told() -> None:
    budget = Budget(BudgetLimits(tokens_per_day=100))
    told: list[tuple[str, str, int]] = []

    def tell(step: str, kind: str, count: int) -> None:
        told.append((step, kind, count))

    run = Usage(Spending(budget, tell))
    first, second = Usage(run), Usage(run)
    first.add("gate", prompt_tokens=60, completion_tokens=9)
    assert budget.begin_chain(1, now()) is None
    second.add("generate", prompt_tokens=30, completion_tokens=1)
    assert budget.begin_chain(1, now()) == "limits.tokens_per_day"
    assert run.calls.total() == 2
    assert run.tokens.total() == budget.spent.tokens == 100
    assert told == [
        ("gate", "prompt", 60),
        ("gate", "completion", 9),
        ("generate", "prompt", 30),
        ("generate", "completion", 1),
    ]
