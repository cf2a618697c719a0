from __future__ import annotations

import io
import re
import threading

import pytest
from rich.console import Console

from commands import progress
from commands.progress import Count, Pace, Spending, explain_interruption, format_duration, show_progress
from reporting.cost import Price, Prices
from services.llm import Usage


def test_a_count_reads_as_a_line() -> None:
    assert str(Count(3, 10, "pair", "2 added")) == "3 of 10 pairs, 2 added"
    assert str(Count(3, None, "message")) == "3 messages"
    assert Count(3, 10, "pair", "2 added", "team library").line("5 a minute") == (
        "team library: 3 of 10 pairs, 5 a minute, 2 added"
    )


@pytest.mark.parametrize("terminal", [False, True])
def test_the_count_is_shown_again_and_again_while_the_work_goes_on(
    monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.001)
    monkeypatch.setattr(progress, "BAR_SECONDS", 0.001)
    out = io.StringIO()
    asked, often = 0, threading.Event()

    def count() -> Count:
        nonlocal asked
        asked += 1
        if asked == 3:
            often.set()
        return Count(asked, 3, "pair")

    with show_progress(count, Console(file=out, force_terminal=terminal, width=80)):
        assert often.wait(20)
    assert " of 3 pairs" in out.getvalue()
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]


def test_the_time_that_is_left_follows_from_the_pace_of_this_run() -> None:
    moment = [100.0]
    pace = Pace(lambda: moment[0])
    assert pace.seconds_left(Count(40, 100, "pair")) is None  # an earlier run did these
    moment[0] = 130.0
    assert pace.seconds_left(Count(40, 100, "pair")) is None
    assert pace.seconds_left(Count(50, 100, "pair")) == 150
    assert pace.seconds_left(Count(50, None, "message")) is None
    assert pace.seconds_left(Count(100, 100, "pair")) == 0


@pytest.mark.parametrize(
    ("done", "seconds", "rate"),
    [(0, 10, ""), (5, 10, "30 a minute"), (1, 600, "0.1 a minute"), (250, 10, "25 a second")],
)
def test_how_many_are_done_in_a_minute_is_told(done: int, seconds: float, rate: str) -> None:
    moment = [100.0]
    pace = Pace(lambda: moment[0])
    assert pace.rate(Count(40, 100, "pair")) == ""
    moment[0] += seconds
    assert pace.rate(Count(40 + done, None, "pair")) == rate


def test_what_was_spent_is_told_with_its_price_where_all_prices_are_known() -> None:
    usage = Usage()
    prices = Prices(answering=Price(2.0, 10.0))
    assert str(Spending(usage, prices)) == ""
    usage.add("gate", prompt_tokens=10_000, completion_tokens=100)
    assert str(Spending(usage, prices)) == "1 LLM call, 10,100 tokens, cost 0.0210"
    usage.add("summarise", prompt_tokens=1, completion_tokens=0)
    assert str(Spending(usage, prices)) == "2 LLM calls, 10,101 tokens"


def test_ctrl_c_says_what_is_kept() -> None:
    with pytest.raises(KeyboardInterrupt, match="3 of 5 pairs"), explain_interruption(lambda: "3 of 5 pairs"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "about 1 s"), (60, "about 60 s"), (61, "about 2 min"), (3600, "about 1 h 0 min"), (3901, "about 1 h 6 min")],
)
def test_it_is_told_in_words(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words


@pytest.mark.parametrize("terminal", [False, True])
def test_it_is_shown_beside_the_count(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.001)
    monkeypatch.setattr(progress, "BAR_SECONDS", 0.001)
    out, often, moments = io.StringIO(), threading.Event(), iter(range(1_000_000))
    asked = 0

    def count() -> Count:
        nonlocal asked
        asked += 1
        if asked == 4:
            often.set()
        return Count(min(asked, 10), 100, "pair", "7 LLM calls")

    monkeypatch.setattr(progress, "Pace", lambda: Pace(lambda: next(moments)))
    with show_progress(count, Console(file=out, force_terminal=terminal, width=120)):
        assert often.wait(20)
    assert re.search(r"\d of 100 pairs, [\d.]+ a minute, 7 LLM calls; about \d+ (?:s|min) left", out.getvalue())
