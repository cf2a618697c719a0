from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporting.cost import Price, Prices, costs, whole_days
from reporting.reading import TimeSpan
from services.llm import StepTokens
from tests.reporting.asked import DAY, MONDAY, asked

TODAY, TOMORROW = "2024-10-04", "2024-10-05"
PERIOD = TimeSpan(MONDAY, MONDAY + 2 * DAY)
CHEAP = Price(prompt=1.0, completion=2.0)


def test_channels_and_all_else_add_up_to_the_total() -> None:
    days = {
        TODAY: {"gate": StepTokens(3, 3_000_000, 100), "summarise": StepTokens(1, 500, 50)},
        TOMORROW: {"gate": StepTokens(1, 1_000_000, 0)},
        "2024-10-06": {"gate": StepTokens(9, 9, 9)},
    }
    entries = [asked("?", tokens={"gate": (1_000_000, 50)}, llm_calls=1) for _ in range(2)]
    entries.append(asked("?", channel_id=8, channel="", tokens={"gate": (2_000_000, 0)}, llm_calls=1))
    found = costs(days, entries, PERIOD, Prices(CHEAP, Price(10.0, 0.0)))
    assert (found.total.calls, found.total.prompt, found.total.completion) == (5, 4_000_500, 150)
    assert found.total.money == pytest.approx(4.0 + 0.0002 + 0.005)
    assert [(day, spent.prompt) for day, spent in found.days.items()] == [(TODAY, 3_000_500), (TOMORROW, 1_000_000)]
    assert {channel: spent.prompt for channel, spent in found.channels.items()} == {7: 2_000_000, 8: 2_000_000}
    assert (found.elsewhere.calls, found.elsewhere.prompt, found.elsewhere.completion) == (2, 500, 50)
    assert found.names == {7: "help"}


def test_without_a_price_there_is_no_sum_of_money() -> None:
    days = {TODAY: {"gate": StepTokens(1, 100, 10), "summarise": StepTokens(1, 100, 10)}}
    found = costs(days, [], PERIOD, Prices(CHEAP))
    assert found.steps["gate"].money == pytest.approx(0.00012)
    assert (found.steps["summarise"].money, found.total.money) == (None, None)


COUNTS = st.integers(0, 1000)
TOKENS = st.dictionaries(st.sampled_from(["gate", "select", "summarise"]), st.tuples(COUNTS, COUNTS))


@given(
    steps=st.dictionaries(
        st.sampled_from(["gate", "select", "summarise"]), st.builds(StepTokens, COUNTS, COUNTS, COUNTS)
    ),
    answers=st.lists(st.tuples(st.integers(1, 3), TOKENS), max_size=6),
)
def test_tokens_always_add_up(
    steps: dict[str, StepTokens], answers: list[tuple[int, dict[str, tuple[int, int]]]]
) -> None:
    """Also where a crash has lost a count."""
    entries = [asked("?", channel_id=channel, tokens=tokens) for channel, tokens in answers]
    found = costs({TODAY: steps}, entries, PERIOD, Prices())
    parts = [*found.channels.values(), found.elsewhere]
    assert sum(spent.prompt for spent in parts) == found.total.prompt
    assert sum(spent.completion for spent in parts) == found.total.completion
    assert sum(spent.prompt for spent in found.steps.values()) == found.total.prompt


def test_a_period_touches_whole_days() -> None:
    assert whole_days(TimeSpan(MONDAY + 5, MONDAY + DAY)) == [TODAY]
    assert whole_days(TimeSpan(MONDAY + 5, MONDAY + DAY + 1)) == [TODAY, TOMORROW]
    assert whole_days(TimeSpan(MONDAY, MONDAY)) == []
