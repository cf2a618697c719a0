"""The judge of the hour with faults catches what it is there for: each test has a bot that gets one thing wrong."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from benchmarks.live_hour import UNHANDLED, requirements
from benchmarks.live_hour_faults import AT_ONCE, ENDING, LASTING, LEAST_SECONDS, MAX_SECONDS, dice_of, schedule
from benchmarks.live_hour_judge import Asked, Judged, Posted, judge
from model.messages import AuthorType
from model.outcomes import OutcomeKind, Reason
from services.telemetry import PartOutcome

CHANNEL, TAUGHT = 10, 21
ASKED = [Asked(1, CHANNEL, 1, 1), Asked(2, CHANNEL, 2, 2), Asked(3, 1, 1, 3), Asked(4, CHANNEL, 4, None)]
"""The third is asked in the thread of the first; of the fourth the team is the one that answers."""
POSTS = [Posted(1, "About case-1."), Posted(2, "About case-2."), Posted(1, "About case-1 and case-3.")]


def ended(message_id: int, result: OutcomeKind, reason: str | None = None, at: float = 100.0) -> PartOutcome:
    return PartOutcome(
        at=at,
        result=result,
        reason=reason,
        channel_id=CHANNEL,
        place_id=CHANNEL,
        message_ids=(message_id,),
        author_id=3,
        author_type=AuthorType.COMMUNITY_USER,
    )


REPLIED = [ended(message_id, OutcomeKind.REPLIED) for message_id in (1, 2, 3)]
ENDED = [
    *REPLIED,
    ended(4, OutcomeKind.CANCELLED, Reason.TEAM_ANSWERED),
    ended(TAUGHT, OutcomeKind.CAPTURED),
]


def judged(
    posts: list[Posted] = POSTS,
    outcomes: list[PartOutcome] = ENDED,
    archived: tuple[int, ...] = (4, TAUGHT),
    **more: Any,
) -> Judged:
    return judge(ASKED, [TAUGHT], posts, outcomes, archived, **more)


def failed(found: Judged, log: list[str] | None = None, wrong_ends: tuple[str, ...] = ()) -> list[str]:
    """The requirements that are not met."""
    return [what for met, what in requirements(found, log or [], wrong_ends) if not met]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    found = judged()
    assert failed(found) == []
    assert (found.answered, found.captured) == ({1, 2, 3}, {TAUGHT})
    assert found.without == {"cancelled (team answered)": 1}


def test_a_question_without_post_and_end_is_lost() -> None:
    assert failed(judged(POSTS[1:], ENDED[1:])) == ["questions lost: 1 (1)"]


def test_a_question_said_to_be_replied_to_and_without_a_post_is_lost() -> None:
    assert failed(judged(POSTS[1:])) == ["questions lost: 1 (1)"]


def test_a_question_that_a_stop_cut_off_is_lost_unless_it_is_taken_up_again() -> None:
    cut_off = ended(2, OutcomeKind.CANCELLED, Reason.SHUTDOWN, at=50.0)
    assert failed(judged(outcomes=[cut_off, *ENDED])) == []
    assert failed(judged([POSTS[0], POSTS[2]], [cut_off, ENDED[0], *ENDED[2:]])) == ["questions lost: 1 (2)"]


def test_a_question_with_an_end_and_no_post_is_counted_by_the_reason() -> None:
    found = judged(POSTS[1:], [ended(1, OutcomeKind.FAILED, "Unavailable at gate"), *ENDED[1:]])
    assert failed(found) == []
    assert found.without["failed (Unavailable at gate)"] == 1


def test_a_second_answer_is_found() -> None:
    assert failed(judged([*POSTS, Posted(2, "About case-2.")])) == ["answered twice: 1 (2)"]


@pytest.mark.parametrize(
    "post", [Posted(2, "About case-1."), Posted(2, "About case-1 and case-2."), Posted(4, "About case-2.")]
)
def test_an_answer_with_or_beside_another_question_is_crossed(post: Posted) -> None:
    posts = [each for each in POSTS if each.content not in {"About case-2.", post.content}]
    assert f"crossed: 1 ({post.content})" in failed(judged([*posts, post]))


def test_a_deleted_question_may_have_no_end() -> None:
    deleted = [Asked(5, CHANNEL, 5, 5, deleted=True)]
    assert failed(judge(deleted, [], [], [], [])) == []
    assert failed(judge(deleted, [], [Posted(5, "About case-5.")] * 2, [], [])) == ["answered twice: 1 (5)"]


def test_a_capture_is_archived_once() -> None:
    assert failed(judged(archived=())) == [f"captures lost: 1 ({TAUGHT})"]
    gave_up = [*ENDED[:-1], ended(TAUGHT, OutcomeKind.FAILED, "LookupFailed at extract")]
    assert failed(judged(outcomes=gave_up, archived=())) == [f"captures lost: 1 ({TAUGHT})"]
    taught_nothing = [*ENDED[:-1], ended(TAUGHT, OutcomeKind.SKIPPED, Reason.NOTHING_TO_LEARN)]
    assert failed(judged(outcomes=taught_nothing, archived=())) == []
    assert failed(judged(archived=(TAUGHT, TAUGHT))) == [f"captures twice: 1 ({TAUGHT})"]


def test_two_ends_of_a_message_need_a_kill_between_them() -> None:
    again = [*ENDED, ended(1, OutcomeKind.REPLIED, at=120.0)]
    assert failed(judged(outcomes=again)) == ["two ends written down: 1 (1)"]
    assert failed(judged(outcomes=again, kills=[110.0])) == []


def test_an_unhandled_error_and_a_wrong_end_of_the_process_are_found() -> None:
    assert failed(judged(), ["ERROR a bug", *UNHANDLED, "  File"]) == ["unhandled errors in the log: 4"]
    assert failed(judged(), wrong_ends=("exit code 1",)) == ["wrong ends of the process: 1 (exit code 1)"]


def test_an_hour_has_every_fault_one_at_a_time_and_the_same_for_the_same_seed() -> None:
    faults = schedule(dice_of("a"), 3600.0)
    assert faults == schedule(dice_of("a"), 3600.0) != schedule(dice_of("b"), 3600.0)
    assert {fault.kind for fault in faults} == {*LASTING, *ENDING}
    assert all(LEAST_SECONDS <= fault.seconds <= MAX_SECONDS for fault in faults if fault.kind not in AT_ONCE)
    assert all(before.at + before.seconds < after.at for before, after in pairwise(faults))
    assert not ENDING.keys() & {fault.kind for fault in schedule(dice_of("a"), 180.0)}
