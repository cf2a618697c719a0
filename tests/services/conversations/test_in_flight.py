"""What is in hand, and what calls it off; the graph's own tests show the rest."""

from __future__ import annotations

from model.messages import AuthorType
from model.outcomes import Outcome, OutcomeKind, Reason
from services.conversations.in_flight import InFlight, WorkCancelled
from tests.talk import ANN, BEN, STAFF, THREAD, Talk


def test_a_part_that_begins_after_the_grace_period_is_called_off_at_birth() -> None:
    """Pitfall 8: it is left for catch-up, not half begun."""
    talk, in_flight = Talk(), InFlight()
    in_flight.stop()
    part = talk.part(talk.says(ANN))
    in_flight.begin(part)
    assert isinstance(part.token.error, WorkCancelled)
    assert part.token.error.reason is Reason.SHUTDOWN


def test_a_part_that_was_never_begun_may_end() -> None:
    talk, in_flight = Talk(), InFlight()
    in_flight.release(Outcome(talk.part(talk.says(ANN)), 0.0, OutcomeKind.SKIPPED, Reason.BUDGET))
    assert len(in_flight) == 0


def test_what_a_person_withdraws_is_called_off_whether_or_not_its_window_has_closed() -> None:
    talk, in_flight = Talk(), InFlight()
    first, second, others = talk.says(ANN), talk.says(ANN), talk.says(BEN)
    for message in (first, second, others):
        in_flight.hold(message, AuthorType.COMMUNITY_USER, in_thread=False)
    begun, waiting, untouched = (talk.part(message) for message in (first, second, others))
    in_flight.begin(begun)
    in_flight.withdraw(ANN.id)
    in_flight.begin(waiting)
    in_flight.begin(untouched)
    for part in (begun, waiting):
        assert isinstance(part.token.error, WorkCancelled)
        assert part.token.error.reason is Reason.DELETED
    assert untouched.token.error is None


def test_a_team_member_who_goes_on_with_a_conversation_calls_off_what_users_asked_in_it_before() -> None:
    talk, in_flight = Talk(), InFlight()
    begun, waiting, others = talk.says(ANN), talk.says(ANN), talk.says(BEN)
    staffs = talk.says(STAFF)
    later = talk.says(ANN)
    for message in (begun, waiting, others, later):
        in_flight.hold(message, AuthorType.COMMUNITY_USER, in_thread=False)
    in_flight.hold(staffs, AuthorType.TEAM_MEMBER, in_thread=False)
    parts = {message.id: talk.part(message) for message in (begun, waiting, others, staffs, later)}
    in_flight.begin(parts[begun.id])
    post = talk.says(STAFF, second=4.5)
    in_flight.cancel_answered(post, (begun.id, waiting.id, staffs.id, post.id, later.id, 7))
    for message in (waiting, others, staffs, later):
        in_flight.begin(parts[message.id])
    errors = {message_id: part.token.error for message_id, part in parts.items() if part.token.error}
    assert sorted(errors) == [begun.id, waiting.id]
    assert {str(error) for error in errors.values()} == {Reason.TEAM_ANSWERED}


def test_what_is_asked_in_a_thread_after_the_team_posted_is_not_called_off() -> None:
    """Catch-up may bring the two in any order."""
    talk, in_flight = Talk(), InFlight()
    before, later = talk.says(ANN, place=THREAD, second=1), talk.says(ANN, place=THREAD, second=3)
    for message in (before, later):
        in_flight.hold(message, AuthorType.COMMUNITY_USER, in_thread=True)
    in_flight.cancel_answered(talk.says(STAFF, place=THREAD, second=2), ())
    first, second = talk.part(before), talk.part(later)
    for part in (first, second):
        in_flight.begin(part)
    assert isinstance(first.token.error, WorkCancelled)
    assert second.token.error is None
