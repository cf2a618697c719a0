"""Pitfall 74: everybody can see what was asked and not answered."""

from __future__ import annotations

from dataclasses import replace

from dashboard.views import gap_view
from model.outcomes import Reason
from reporting.report import find_gaps
from services.telemetry import PartOutcome
from tests.dashboard.made import REPLIED, UNANSWERED, showing


def asked(number: int, question: str, author_id: int = 5) -> PartOutcome:
    return replace(UNANSWERED, at=float(number), message_ids=(number,), question=question, author_id=author_id)


async def test_a_gap_tells_how_many_people_asked_why_there_was_no_answer_and_what_came_nearest() -> None:
    entries = [asked(1, "quota?"), replace(asked(2, "quota?", 6), reason=Reason.UNSURE)]
    (gap,) = await find_gaps(entries, None)
    shown = gap_view(gap, showing(texts=True))
    assert (shown.id, shown.title, shown.count, shown.people) == ("2", "Quota?", 2, 2)
    assert shown.reasons == "unsure (1), no answer in sources (1)"
    assert shown.nearest == "kb:restore.md"
    assert shown.asked[0].link == "https://discord.com/channels/1/20/2"
    assert [each.text for each in shown.asked] == ["", ""]  # the title says it
    hidden = gap_view(gap, showing())
    assert "quota" not in str(hidden).lower()
    assert hidden.title == "Something near restore.md"


async def test_a_gap_says_what_the_team_has_answered_since() -> None:
    (gap,) = await find_gaps([asked(1, "the quota?"), asked(2, "quota?", 6), asked(3, "quota, please?")], None)
    shown = gap_view(gap, showing(texts=True), {2: "quotas", 9: "else"})
    assert (shown.count, shown.open) == (3, 2)
    assert [(each.id, each.topic) for each in shown.asked] == [("3", ""), ("2", "quotas"), ("1", "")]


async def test_a_gap_whose_search_found_nothing_names_no_page() -> None:
    (gap,) = await find_gaps([replace(REPLIED, level="point", path={"select": {}})], None)
    assert (gap_view(gap, showing()).nearest, gap_view(gap, showing()).reasons) == ("", "pointed to a page")
    assert gap_view(gap, showing()).title == "Something in #channel-20"
    (other,) = await find_gaps([replace(UNANSWERED, path={"select": 3})], None)
    assert gap_view(other, showing()).nearest == ""


async def test_equal_questions_are_shown_once_and_addresses_are_no_titles() -> None:
    words = "why is https://docs.example.org/a/b?c=1 empty, as it was <@171>?"
    (gap,) = await find_gaps(
        [asked(number, words if number < 3 else f"{words} Please!") for number in range(1, 5)], None
    )
    shown = gap_view(gap, showing(texts=True))
    assert shown.title == "Why is docs.example.org empty, as it was @abababab?"
    assert [bool(each.text) for each in shown.asked] == [True, False, True, False]
