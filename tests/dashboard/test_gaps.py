"""Pitfall 74: everybody can see what was asked and not answered."""

from __future__ import annotations

from dataclasses import replace

from dashboard.gaps import gaps, is_unanswered, view
from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason
from services.telemetry import Ended
from tests.dashboard.made import CAPTURED, REPLIED, UNANSWERED, showing


def asked(number: int, question: str, author_id: int = 5) -> Ended:
    return replace(UNANSWERED, at=float(number), message_ids=(number,), question=question, author_id=author_id)


def test_only_questions_of_people_without_an_answer_are_gaps() -> None:
    assert is_unanswered(UNANSWERED)
    assert is_unanswered(replace(REPLIED, level="point"))
    assert not is_unanswered(REPLIED)
    assert not is_unanswered(CAPTURED)
    assert not is_unanswered(replace(UNANSWERED, question=""))
    assert not is_unanswered(replace(UNANSWERED, reason=Reason.BUDGET))
    assert not is_unanswered(replace(UNANSWERED, author_type=AuthorType.TEAM_MEMBER))
    assert not is_unanswered(replace(UNANSWERED, result=OutcomeKind.FAILED))


def test_questions_that_are_alike_are_one_gap_and_the_largest_comes_first() -> None:
    entries = [
        asked(1, "Is there a dark mode?"),
        asked(2, "Do quotas count deleted snapshots?"),
        asked(3, "Does the quota count deleted snapshots", author_id=6),
    ]
    assert [[entry.at for entry in gap.entries] for gap in gaps(entries)] == [[3.0, 2.0], [1.0]]


def test_questions_without_words_are_alike() -> None:
    assert [len(gap.entries) for gap in gaps([asked(1, "?"), asked(2, "??")])] == [2]


def test_a_gap_tells_how_many_people_asked_why_there_was_no_answer_and_what_came_nearest() -> None:
    entries = [asked(1, "quota?"), replace(asked(2, "quota?", 6), reason=Reason.UNSURE)]
    (gap,) = gaps(entries)
    shown = view(gap, showing(texts=True))
    assert (shown.id, shown.title, shown.count, shown.people) == ("2", "quota?", 2, 2)
    assert shown.reasons == "unsure (1), no answer in sources (1)"
    assert shown.nearest == "kb:restore.md"
    assert shown.asked[0].link == "https://discord.com/channels/1/20/2"
    assert "quota" not in str(view(gap, showing()))


def test_a_gap_whose_search_found_nothing_names_no_page() -> None:
    (gap,) = gaps([replace(REPLIED, level="point", path={"select": {}})])
    assert (view(gap, showing()).nearest, view(gap, showing()).reasons) == ("", "only pointed to pages")
    (other,) = gaps([replace(UNANSWERED, path={"select": 3})])
    assert view(other, showing()).nearest == ""
