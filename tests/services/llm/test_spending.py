from __future__ import annotations

from pathlib import Path

import pytest

from clock import now, rfc3339
from services.llm.usage import (
    DAY,
    KEPT_DAYS,
    Budget,
    BudgetLimits,
    Spending,
    StepTokens,
    TokenDays,
    Usage,
    read_token_days,
    render_token_days,
)


async def test_every_call_of_every_part_counts_towards_the_day_and_is_told() -> None:
    budget = Budget(BudgetLimits(tokens_per_day=100))
    told: list[tuple[str, str, int]] = []

    def tell(step: str, kind: str, count: int) -> None:
        told.append((step, kind, count))

    run = Usage(Spending(budget, tell))
    first, second = Usage(run), Usage(run)
    first.add("gate", prompt_tokens=60, completion_tokens=9)
    assert await budget.begin_chain(1, now()) is None
    second.add("generate", prompt_tokens=30, completion_tokens=1)
    assert await budget.begin_chain(1, now()) == "limits.tokens_per_day"
    assert run.calls.total() == 2
    assert run.tokens.total() == budget.spent.tokens == 100
    assert told == [
        ("gate", "prompt", 60),
        ("gate", "completion", 9),
        ("generate", "prompt", 30),
        ("generate", "completion", 1),
    ]


async def test_tokens_are_counted_by_day_and_step() -> None:
    days = TokenDays()
    run = Usage(Spending(Budget(BudgetLimits()), days=days))
    for _ in range(2):
        Usage(run).add("gate", prompt_tokens=60, completion_tokens=9)
    assert days.days == {rfc3339(now())[:10]: {"gate": StepTokens(2, 120, 18)}}


def test_days_are_read_as_they_were_written(tmp_path: Path) -> None:
    path, days = tmp_path / "tokens.json", TokenDays()
    for day in range(KEPT_DAYS + 3):
        days.add("gate", day * DAY, prompt_tokens=day, completion_tokens=1)
    path.write_bytes(render_token_days(days))
    read = read_token_days(path).days
    assert len(read) == KEPT_DAYS
    assert read == {day: steps for day, steps in days.days.items() if day >= "1970-01-04"}


@pytest.mark.parametrize("text", ["[1]", '{"2026-09-21": {"gate": [-1, 2, 3]}}', '{"2026-09-21": 4}', "{torn"])
def test_damaged_days_are_reported_and_taken_for_none(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(text)
    assert (read_token_days(path).days, "is damaged" in caplog.text) == ({}, True)
