"""The first page: is it well, what to do next, what was done; and the charts of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import overview, views
from dashboard.overview import (
    FAILING_SOURCES,
    HEIGHT,
    WIDTH,
    Series,
    activity_view,
    draw_columns,
    first_steps,
    health_view,
    next_steps,
    period_of,
    with_troubles,
)
from model.health import TOPICS, Condition, HealthTopic, Trouble
from model.outcomes import OutcomeKind
from reporting.reading import VotedQuestion
from tests.dashboard.made import AT, CAPTURED, REPLIED, UNANSWERED, showing

DAY = 86_400.0
NOW = AT + 3600


def condition(
    topic: HealthTopic, *subjects: str, since: float = NOW - 240, detail: str = "", seen: float = 0
) -> Condition:
    """In trouble with these subjects; well without any."""
    troubles = {subject: Trouble(since, NOW) for subject in subjects}
    return Condition(topic=topic, troubles=troubles, well={"": seen} if seen else {}, detail=detail)


ALL_WELL = [condition(topic) for topic in HealthTopic]


def test_where_nothing_is_wrong_all_is_well() -> None:
    view = health_view([condition(HealthTopic.MODEL, seen=NOW - 120), *ALL_WELL], showing(), NOW)
    assert (view.state, view.verdict) == ("well", "All is well")
    assert [row.says for row in view.rows] == [TOPICS[topic].well for topic in HealthTopic]
    assert {row.remedy for row in view.rows} == {""}


def test_a_model_that_answered_says_when() -> None:
    (row,) = health_view([condition(HealthTopic.MODEL, seen=NOW - 120)], showing(), NOW).rows
    assert (row.state, row.says, row.since) == ("well", "The model answers", "seen 2 min ago")


def test_trouble_comes_first_with_since_when_and_what_to_do() -> None:
    view = health_view([*ALL_WELL[1:], condition(HealthTopic.DISCORD, "")], showing(), NOW)
    first = view.rows[0]
    assert (view.state, first.topic, first.state) == ("ill", "discord", "ill")
    assert first.since == "since 2026-02-02 03:36 (4\N{NO-BREAK SPACE}min\N{NO-BREAK SPACE}ago)"
    assert view.verdict == f"Discord is not connected {first.since}"
    assert first.remedy.startswith("Look at https://discordstatus.com")


@pytest.mark.parametrize("topic", HealthTopic)
def test_every_trouble_is_named_in_the_verdict(topic: HealthTopic) -> None:
    others = [each for each in ALL_WELL if each.topic is not topic]
    view = health_view([*others, condition(topic, "it")], showing(), NOW)
    assert TOPICS[topic].title.lower() in view.verdict.lower() or TOPICS[topic].trouble in view.verdict
    assert view.state == ("look" if topic in overview.MINOR else "ill")
    assert "`" not in view.rows[0].remedy
    assert view.rows[0].remedy


def test_where_nothing_is_known_nothing_counts_as_well() -> None:
    """Over NATS, while its servers do not answer."""
    view = health_view([], showing(), NOW)
    assert (view.state, view.rows) == ("unknown", [])
    assert "cannot be found out" in view.verdict
    assert [step.link for step in with_troubles(view, ())] == ["/processes"]


def test_several_troubles_are_counted_and_minor_ones_are_no_alarm() -> None:
    both = [condition(HealthTopic.DISCORD, ""), condition(HealthTopic.DISK, ""), condition(HealthTopic.SOURCES, "a")]
    assert health_view(both, showing(), NOW).verdict.endswith("ago); 1 more thing is wrong")
    three = health_view([*both, condition(HealthTopic.BUDGET, "a day")], showing(), NOW)
    assert three.verdict.endswith("ago); 2 more things are wrong")
    minor = [condition(HealthTopic.SOURCES, "a"), condition(HealthTopic.ERRORS, "")]
    assert health_view(minor, showing(), NOW).verdict == "It works; worth a look: sources and last error"


def test_of_many_subjects_some_are_named() -> None:
    (row,) = health_view(
        [condition(HealthTopic.SOURCES, "a", "b", "c", "d", "e", detail="5 fail")], showing(), NOW
    ).rows
    assert row.detail == "a, b and 3 more: 5 fail"


def test_an_error_may_name_a_file_so_its_text_is_a_text() -> None:
    failed = condition(HealthTopic.ERRORS, "", detail="streams.captures: OSError: anna-private.log")
    assert health_view([failed], showing(), NOW).rows[0].detail == "streams.captures"
    assert health_view([failed], showing(texts=True), NOW).rows[0].detail == failed.detail


def test_a_model_that_nobody_has_asked_is_neither_well_nor_ill() -> None:
    view = health_view([condition(HealthTopic.DISCORD)], showing(), NOW)
    assert [(row.topic, row.state) for row in view.rows] == [("discord", "well"), ("model", "unknown")]
    assert (view.state, view.verdict) == ("well", "Nothing is wrong so far; no model has been asked since the start")
    without = health_view([condition(HealthTopic.DISCORD)], showing(), NOW, has_model=False)
    assert ([row.topic for row in without.rows], without.verdict) == (["discord"], "All is well")


def test_each_trouble_is_something_to_do_and_the_alarms_come_first() -> None:
    ill = [
        condition(topic, "it")
        for topic in (HealthTopic.ERRORS, HealthTopic.SOURCES, HealthTopic.DISK, HealthTopic.DISCORD)
    ]
    view = health_view([*ill, condition(HealthTopic.BUDGET)], showing(), NOW)
    drafts = steps(drafts=[NOW - 60])
    found = with_troubles(view, drafts)
    assert [(step.text, step.link) for step in found] == [
        ("Discord is not connected", "#well"),
        ("The disk is nearly full, or cannot be written", "#well"),
        ("Post or discard 1 draft", "/drafts"),
        ("Sources cannot be read", FAILING_SOURCES),
        ("An error was logged", "#well"),
    ]
    assert found[0].more.startswith("Look at https://discordstatus.com")
    sources = [overview.NextStep("See to 3 sources that cannot be read", FAILING_SOURCES, "a: HTTP 404")]
    assert [step.text for step in with_troubles(view, sources)].count("Sources cannot be read") == 0
    assert with_troubles(None, drafts) == drafts


def test_a_new_bot_needs_knowledge_and_a_question() -> None:
    assert [step.link for step in first_steps(has_knowledge=False, was_asked=False)] == [
        "/knowledge#sources",
        "/answers",
    ]
    assert first_steps(has_knowledge=True, was_asked=True) == []


def vote(downs: int, ups: int = 0, *, asked_id: int | None = None, at: float = AT) -> VotedQuestion:
    return VotedQuestion(77, at, "Hi! Where is it? I looked.", ("kb:a",), ups, downs, asked_id)


def gap(title: str, count: int) -> views.GapView:
    return views.GapView("b1", title, count, count, 2, "unsure", "", ())


def steps(
    gaps: Sequence[views.GapView] = (),
    sources: Sequence[views.KnownSource] = (),
    votes: Sequence[VotedQuestion] = (),
    drafts: Sequence[float] = (),
    *,
    texts: bool = True,
) -> list[overview.NextStep]:
    return next_steps(gaps, sources, votes, [REPLIED, UNANSWERED], showing(texts=texts), NOW, drafts)


def test_what_waits_for_a_person_comes_before_what_can_be_written() -> None:
    broken = views.KnownSource("kb:https://example.org/a", "url", "not fetched: HTTP 404", True, None, None, "")
    found = steps([gap("How much?", 7)], [broken], [vote(2, asked_id=REPLIED.message_ids[-1])], [NOW - 60, NOW - 7200])
    assert [(step.text, step.link, step.more) for step in found] == [
        ("Post or discard 2 drafts", "/drafts", "the oldest was made 2 h ago"),
        ("Check an answer voted down: Where is it?", "/answers/a1", "votes: 2 down; 1 h ago"),
        ("Write what is missing: How much?", "/gaps#gap-b1", "asked 7 times by 2 people"),
        (
            "See to 1 source that cannot be read",
            "/knowledge?state=failing#sources",
            "https://example.org/a: not fetched: HTTP 404",
        ),
    ]


def test_the_most_voted_and_the_largest_are_named_and_no_more_than_three_of_each() -> None:
    found = steps([gap(str(at), at) for at in range(9)], votes=[vote(at) for at in range(1, 6)])
    assert len(found) == 6
    assert found[0].more.startswith("votes: 5 down")
    assert found[0].link == "/answers"  # nothing tells which one


def test_where_nothing_waits_there_is_nothing_to_do() -> None:
    good = views.KnownSource("kb:a.md", "file", "indexed", False, 1, AT, "")
    assert steps([], [good], [vote(1, ups=1), vote(0, ups=4)], []) == []


def test_questions_are_texts() -> None:
    assert [step.text for step in steps(votes=[vote(1)], texts=False)] == ["Check an answer voted down"]


def test_days_are_counted_apart_and_those_without_anything_are_there() -> None:
    entries = [
        REPLIED,
        replace(REPLIED, level="point"),
        UNANSWERED,
        replace(UNANSWERED, result=OutcomeKind.FAILED, at=AT - DAY),
        replace(UNANSWERED, question=""),
        CAPTURED,
        replace(REPLIED, at=AT - 20 * DAY),
    ]
    period = period_of(NOW)
    view = activity_view(entries, [vote(2, ups=1), vote(9, at=AT - 40 * DAY)], period)
    assert len(view.days) == overview.DAYS
    assert view.days[-1] == ("2026-02-02", 3, 1, 1, 1, 1, 2)
    assert view.days[-2] == ("2026-02-01", 1, 0, 0, 1, 0, 0)
    assert view.total == ("", 4, 1, 1, 2, 1, 2)
    assert view.answered_share == "25%"
    assert view.questions.says == "1 answered, 1 pointed to a page, 2 without a reply; in 14 days."
    assert activity_view([], [], period).answered_share == ""


COUNTS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 50)), min_size=1, max_size=31)


@given(COUNTS)
def test_columns_stand_on_each_other_within_the_picture(counts: list[tuple[int, int]]) -> None:
    days = [f"2026-01-{at + 1:02}" for at in range(len(counts))]
    chart = draw_columns(
        "t", days, [Series("a", "one", [a for a, _ in counts]), Series("b", "two", [b for _, b in counts])]
    )
    assert len(chart.columns) == sum(value > 0 for pair in counts for value in pair)
    by_day: dict[str, float] = {}
    for each in chart.columns:
        assert 0 <= each.x <= each.x + each.width <= WIDTH
        assert 0 <= each.y <= each.y + each.height <= HEIGHT
        day = each.says[:10]
        assert day not in by_day or each.y + each.height == pytest.approx(by_day[day], abs=0.1)
        by_day[day] = each.y
    assert 2 <= len(chart.lines) <= 5
    assert {label.text for label in chart.days} >= {str(at + 1) for at in range(len(counts))}


def test_months_are_named_where_they_begin() -> None:
    chart = draw_columns("t", ["2026-01-30", "2026-01-31", "2026-02-01"], [Series("a", "one", [0, 0, 0])])
    assert [label.text for label in chart.days] == ["30", "Jan", "31", "1", "Feb"]
    assert [line.text for line in chart.lines] == ["0", "1"]
