"""Times as conditions: points, spans, days, limits, and what belongs to them."""

from __future__ import annotations

import pytest

from services.documents.asking.plan import Position
from services.documents.asking.times import Period, window, without_year
from tests.services.documents.asking.planning import planned


@pytest.mark.parametrize(
    "question",
    [
        "What was logged at 14:32:15 in server.log?",
        "anything at 14:32:15?",
        "What happened at 14:32:15 in server.log?",
        "Show the entries of 14:32:15",
        "Which events does server.log have for 14:32:15?",
        "server.log around 14:32:15",
        "14:32:15 in server.log, what is that?",
    ],
)
def test_a_time_is_asked_for_in_many_ways(question: str) -> None:
    period = planned(question).period
    assert period is not None
    assert period.clocks == ("14:32:15.000000", "14:32:16.000000")


@pytest.mark.parametrize(
    ("question", "clocks"),
    [
        ("What happened between 14:30 and 14:35?", ("14:30:00", "14:36:00.000000")),
        ("from 14:30 to 14:35, what was going on?", ("14:30:00", "14:36:00.000000")),
        ("entries 14:30-14:35", ("14:30:00", "14:36:00.000000")),
        ("everything after 14:30", ("14:30:00", "24:00:00")),
        ("what came in before 9:05?", ("00:00:00", "09:05:00")),
        ("errors since 14:30:10", ("14:30:10.000000", "24:00:00")),
        ("at 2:32 pm", ("14:32:00", "14:33:00.000000")),
        ("what happened at 18:02:49,372?", ("18:02:49.372000", "18:02:49.373000")),
    ],
)
def test_spans_of_time_are_understood(question: str, clocks: tuple[str, str]) -> None:
    period = planned(question).period
    assert period is not None
    assert (period.clocks, period.text in question) == (clocks, True)


@pytest.mark.parametrize(
    ("question", "zone"),
    [
        ("What happened between 21:30 and 21:50 UTC?", 0),
        ("what happened at 21:30Z?", 0),
        ("at 9:30 pm GMT", 0),
        ("errors since 2031-03-04T23:30:00+02:00", 120),
        ("errors before 23:30:00 -0530 on 2031-03-04", -330),
        ("errors at 2031-03-04T16:45:00.5-05:00", -300),
        ("errors at 2031-03-04T16:45:00-0500", -300),
        ("entries 14:30-14:35", None),
        ("entries 04:30-05:00", None),
        ("entries 04:30:00-05:00:00", None),
        ("entries 04:30:10 - 05:00", None),
        ("What happened on 2031-03-04?", None),
    ],
)
def test_a_zone_behind_a_time_is_read(question: str, zone: int | None) -> None:
    period = planned(question).period
    assert period is not None
    assert period.zone == zone


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What was logged on 2031-03-04?", ("2031-03-04", "2031-03-04")),
        ("anything on Mar 4?", ("03-04", "03-04")),
        ("entries of 4 March", ("03-04", "03-04")),
        ("on March 4th at 10:15", ("03-04", "03-04")),
        ("at 310304 101500?", ("2031-03-04", "2031-03-04")),
        ("31/03/04 10:15:00", ("2031-03-04", "2031-03-04")),
    ],
)
def test_days_are_understood(question: str, days: tuple[str, str]) -> None:
    period = planned(question).period
    assert period is not None
    assert period.days == days


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("before 2026-03-05", ("0000-01-01", "2026-03-04")),
        ("after 2026-03-04", ("2026-03-05", "9999-12-31")),
        ("since 2026-03-04", ("2026-03-04", "9999-12-31")),
        ("until 2026-03-04", ("0000-01-01", "2026-03-04")),
        ("before Dec 11", ("01-01", "12-10")),
        ("before Mar 1", ("01-01", "02-29")),
        ("after Dec 11", ("12-12", "12-31")),
        ("before Jan 1", ("01-01", "00-00")),
        ("after Dec 31", ("13-00", "12-31")),
        ("after 2026-02-31", ("2026-02-31", "9999-12-31")),
    ],
)
def test_a_day_is_a_limit_that_before_and_after_leave_out(question: str, days: tuple[str, str]) -> None:
    period = planned(question).period
    assert period is not None
    assert period.days == days


@pytest.mark.parametrize(
    ("question", "instants"),
    [
        ("between Dec 10 23:58 and Dec 11 00:01", ("12-10T23:58:00", "12-11T00:02:00.000000")),
        ("between 2026-03-04 23:58 and 2026-03-05 00:01", ("2026-03-04T23:58:00", "2026-03-05T00:02:00.000000")),
        ("before Dec 4 05:00", ("01-01T00", "12-04T05:00:00")),
        ("after 2026-03-04 05:00", ("2026-03-04T05:00:00", "9999-12-31T24")),
    ],
)
def test_a_time_of_one_day_to_that_of_another_is_one_span(question: str, instants: tuple[str, str]) -> None:
    period = planned(question).period
    assert period is not None
    assert (period.instants, period.text in question) == (instants, True)


@pytest.mark.parametrize(
    ("since", "until", "period"),
    [
        (None, None, None),
        ("2026-03-04", None, Period("since 2026-03-04", days=("2026-03-04", "9999-12-31"))),
        (None, "Mar 4", Period("until Mar 4", days=("01-01", "03-04"))),
        ("2026-03-04", "2026-03-05", Period("since 2026-03-04 until 2026-03-05", days=("2026-03-04", "2026-03-05"))),
        ("10:00", "10:05", Period("since 10:00 until 10:05", clocks=("10:00:00", "10:06:00.000000"))),
        ("10:00", None, Period("since 10:00", clocks=("10:00:00", "24:00:00"))),
        (None, "10:00", Period("until 10:00", clocks=("00:00:00", "10:01:00.000000"))),
        (
            "2026-03-04",
            "10:05",
            Period("since 2026-03-04 until 10:05", instants=("2026-03-04T00:00:00", "2026-03-04T10:06:00.000000")),
        ),
        (
            "10:00",
            "2026-03-04",
            Period("since 10:00 until 2026-03-04", instants=("2026-03-04T10:00:00", "2026-03-04T24:00:00")),
        ),
    ],
)
def test_both_moments_of_a_window_are_in_it(since: str | None, until: str | None, period: Period | None) -> None:
    assert window(since, until) == period


@pytest.mark.parametrize(
    ("since", "until", "named"),
    [("soon", None, "soon"), ("10:00", "later", "later"), ("Mar 4", "2026-03-05", "2026-03-05")],
)
def test_what_is_no_moment_or_not_like_the_other_is_named(since: str, until: str | None, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}$"):
        window(since, until)


@pytest.mark.parametrize(
    "question",
    [
        "What was the last entry before 05:00 on Dec 4?",
        "On Dec 4, before 05:00, what came last?",
        "the last thing before 05:00, Dec 4",
    ],
)
def test_a_day_beside_a_time_of_day_counts(question: str) -> None:
    period = planned(question).period
    assert period is not None
    assert period.days == ("12-04", "12-04")
    assert period.clocks == ("00:00:00", "05:00:00")


def test_a_day_elsewhere_in_the_question_is_not_that_of_the_time() -> None:
    period = planned("What did the entry before 05:00 say about the release of Dec 4?").period
    assert period is not None
    assert period.days is None


def test_what_happened_then_is_no_question_for_the_next_line_when_a_time_is_named() -> None:
    assert planned("10:15:03 - what was going on then?").position is None


def test_and_then_asks_for_the_next_line_even_beside_a_time() -> None:
    assert planned("What was logged at 10:15:03? And then?").position is Position.NEXT


@pytest.mark.parametrize("close", ["right", "just", "immediately", "directly"])
def test_right_after_a_time_is_the_next_line_and_not_all_that_follow(close: str) -> None:
    understood = planned(f"What was logged {close} after 10:15:03?")
    assert understood.position is Position.NEXT
    assert understood.period is not None
    assert understood.period.clocks == ("10:15:03.000000", "10:15:04.000000")


def test_for_a_log_without_years_a_period_has_none() -> None:
    instants = ("2026-03-04T10:00:00", "2026-03-05T11:00:00")
    period = Period("then", days=("2026-03-04", "2026-03-05"), instants=instants)
    bare = Period("then", days=("03-04", "03-05"), instants=("03-04T10:00:00", "03-05T11:00:00"))
    assert without_year(period) == without_year(bare) == bare
