"""Days and times as limits: what belongs to them, and what does not any more."""

from __future__ import annotations

import pytest

from services.documents.asking import times


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
    period = times.find(question)
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
    period = times.find(question)
    assert period is not None
    assert period.instants == instants
