from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import groupby

import pytest
from rich.console import Console

from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason
from reporting.document import document, markdown, page, show, summary
from reporting.reading import TimeSpan, VotedQuestion
from reporting.report import CapturedConversation, Knowledge, Report, build_report
from services.llm import StepTokens
from tests.reporting.asked import DAY, MONDAY, asked
from tests.services.team.pairs import captured

PERIOD = TimeSpan(MONDAY, MONDAY + 7 * DAY)
HOSTILE = "<script>alert(1)</script> | [x](javascript:alert(1)) `a` \x1b[31m <@42>\n# heading"


async def a_week() -> Report:
    entries = [
        asked("How do I install it?", reason=None, sources=("kb:setup.md",), level="answer"),
        asked("Where is the key?", at=MONDAY + DAY, reason=None, sources=("kb:faq.md",), level="point"),
        asked(HOSTILE, at=MONDAY + DAY),
        asked("Does it run on Solaris?", at=MONDAY + 2 * DAY, author_id=1),
        asked("does it run on solaris", at=MONDAY + 2 * DAY, author_id=2, guild_id=None),
        asked("?!", at=MONDAY + 2 * DAY, reason="Unavailable at gate", result=OutcomeKind.FAILED),
        asked("", result=OutcomeKind.CAPTURED, reason=None, qa_id="qa_1", author_type=AuthorType.TEAM_MEMBER),
        asked("", result=OutcomeKind.CAPTURED, reason=None, qa_id="qa_1", author_type=AuthorType.TEAM_MEMBER),
        asked("", result=OutcomeKind.CAPTURED, reason=None, qa_id="qa_gone", author_type=AuthorType.TEAM_MEMBER),
    ]
    known = [CapturedConversation("qa_1", "lanterns", HOSTILE), CapturedConversation("qa_old", "lanterns", "?")]
    return await build_report(
        entries,
        PERIOD,
        voted_down=[VotedQuestion(9, MONDAY, HOSTILE, ("kb:setup.md",), 1, 2)],
        knowledge=Knowledge(["kb:setup.md", "kb:faq.md", "kb:old.md"], {each.qa_id: each for each in known}),
        token_days={"2024-10-04": {"gate": StepTokens(3, 1200, 90)}},
    )


async def test_the_counts_add_up() -> None:
    found = await a_week()
    assert (found.asked, found.answered, found.pointed, found.no_reply_reasons.total()) == (6, 1, 1, 4)
    assert found.by_day == {"2024-10-04": (1, 1), "2024-10-05": (2, 0), "2024-10-06": (3, 0)}
    assert found.no_reply_reasons == {Reason.NO_SOURCES: 3, "failed: Unavailable at gate": 1}
    assert [gap.askers for gap in found.gaps] == [2, 1, 1]
    assert [each.qa_id for each in found.captured] == ["qa_1"]
    assert (found.unused, found.pages) == (["kb:old.md"], 3)
    assert summary(found) == (
        "6 questions: 1 answered, 1 pointed to a page, 4 without a reply. A reply took 2.0 s in the median."
    )


async def test_what_was_dismissed_is_left_out_and_counted() -> None:
    entries = [asked("Does it run on Solaris?", at=MONDAY + 1), asked("Where is the barn?", at=MONDAY + 2)]
    found = await build_report(entries, PERIOD, knowledge=Knowledge(dismissed={int(MONDAY + 1)}))
    assert ([gap.question for gap in found.gaps], found.dismissed) == (["Where is the barn?"], 1)
    text = markdown(document(found))
    assert "1 group of questions were dismissed" in text
    assert "Solaris" not in text


async def test_a_report_says_where_the_team_has_answered_since() -> None:
    entries = [
        asked("Does it run on Solaris?", at=MONDAY + 1),
        asked("does it run on solaris", at=MONDAY + 2, author_id=2),
        asked("Where is the barn?", at=MONDAY + 3),
    ]
    lanterns = CapturedConversation("qa_1", "lanterns", "?")
    answered = {int(MONDAY + 2): lanterns, 77: lanterns}
    text = markdown(document(await build_report(entries, PERIOD, knowledge=Knowledge(captured_by_message=answered))))
    assert "2 questions by 2 people (no sources 2); the team has answered 1 of them since" in text
    assert text.count("the team answered in") == 1  # no column without anything in it
    assert text.count("| lanterns |") == 1


async def test_a_report_says_what_the_team_has_taught_since() -> None:
    entries = [asked("Does it run on Solaris?", at=MONDAY + 1), asked("does it run on solaris", at=MONDAY + 2)]
    lesson = replace(captured(50_000, "Does it run on Solaris?", "No."), conversation_id="taught_9")
    filed = {lesson.id: CapturedConversation(lesson.id, "solaris-runs", "?")}
    text = markdown(
        document(await build_report(entries, PERIOD, knowledge=Knowledge(captured=filed, lessons={None: [lesson]})))
    )
    assert "the team has answered 2 of them since" in text
    assert text.count("| solaris-runs |") == 2


async def test_what_people_write_is_inert_in_markdown() -> None:
    text = markdown(document(await a_week()))
    assert "<script>" not in text
    assert "<@42>" not in text
    assert "\x1b" not in text
    assert re.search(r"(?<!\\)\]\(javascript", text) is None
    assert "\n# heading" not in text
    # A table keeps its columns whatever people write.
    tables = [list(rows) for is_row, rows in groupby(text.splitlines(), lambda line: line.startswith("|")) if is_row]
    assert sum("alert" in row for rows in tables for row in rows) >= 1
    for rows in tables:
        assert len({row.replace("\\|", "").count("|") for row in rows}) == 1


async def test_what_people_write_is_inert_in_the_page() -> None:
    text = page(document(await a_week()))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "default-src 'none'" in text
    assert 'href="https://discord.com/channels/1/7/' in text


async def test_what_people_write_is_inert_on_a_terminal() -> None:
    out = io.StringIO()
    show(document(await a_week()), Console(file=out, width=120, force_terminal=True, color_system=None))
    assert "\x1b[31m" not in out.getvalue()
    assert "Does it run on Solaris?" in out.getvalue()


async def test_a_quiet_week_is_told_in_a_few_lines() -> None:
    text = markdown(document(await build_report([], PERIOD)))
    assert "Nobody asked anything." in text
    assert "Asked, and not answered" not in text
    assert "every question had an answer" not in text
    assert "No model was asked." in text


async def test_that_every_question_had_an_answer_is_told_only_where_it_is_so() -> None:
    answered = asked("How do I install it?", reason=None)
    text = markdown(document(await build_report([answered], PERIOD)))
    assert "Nothing: every question had an answer." in text
    failed = asked("Where is the key?", reason="Unavailable at gate", result=OutcomeKind.FAILED)
    text = markdown(document(await build_report([answered, failed], PERIOD)))
    assert "every question had an answer" not in text
    assert "Nothing that better pages would answer." in text
    assert "| failed: Unavailable at gate | 1 |" in text


@pytest.mark.parametrize("count", [30, 60])
async def test_long_lists_are_cut_and_say_so(count: int) -> None:
    entries = [asked(f"word{at}?", at=MONDAY + at) for at in range(count)]
    pages = [f"kb:{at}.md" for at in range(count)]
    text = markdown(document(await build_report(entries, PERIOD, knowledge=Knowledge(pages))))
    assert f"And {count - 20} more." in text
    assert f"And {count - 15} more." in text


async def test_rows_that_do_not_fit_are_counted() -> None:
    pages = [f"kb:{at}.md" for at in range(22)]
    used = [asked(f"word{at}?", reason=None, sources=(each,), level="answer") for at, each in enumerate(pages)]
    same = [asked("Does it run on Solaris?", author_id=at) for at in range(7)]
    taught = {f"qa_{at}": CapturedConversation(f"qa_{at}", "lanterns", "?") for at in range(21)}
    captured = [
        asked("", result=OutcomeKind.CAPTURED, reason=None, qa_id=each, author_type=AuthorType.TEAM_MEMBER)
        for each in taught
    ]
    votes = [VotedQuestion(at, MONDAY, f"word{at}?", ("kb:0.md",), 0, 2) for at in range(20)]
    found = await build_report([*used, *same, *captured], PERIOD, voted_down=votes, knowledge=Knowledge(pages, taught))
    text = markdown(document(found))
    counted = {section.partition("\n")[0]: re.findall(r"And \d+ more", section) for section in text.split("\n## ")}
    assert counted["Asked, and not answered"] == ["And 4 more"]  # of seven questions three
    assert counted["Answered, and voted down"] == ["And 5 more"]
    assert counted["What the team taught"] == ["And 6 more"]
    assert counted["Pages"] == ["And 7 more"]
