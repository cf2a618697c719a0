"""What is in hand, and what calls it off; the graph's own tests show the rest."""

from __future__ import annotations

from model.messages import AuthorType
from model.outcomes import Outcome, OutcomeKind, Reason
from services.conversations.in_flight import CalledOff, InFlight
from tests.talk import ANN, BEN, Talk


def test_a_part_that_begins_after_the_grace_period_is_called_off_at_birth() -> None:
    """Pitfall 8: it is left for catch-up, not half begun."""
    talk, in_flight = Talk(), InFlight()
    in_flight.stop()
    part = talk.part(talk.says(ANN))
    in_flight.begin(part)
    assert isinstance(part.token.error, CalledOff)
    assert part.token.error.reason is Reason.SHUTDOWN


def test_a_part_that_was_never_begun_may_end() -> None:
    talk, in_flight = Talk(), InFlight()
    in_flight.settle(Outcome(talk.part(talk.says(ANN)), 0.0, OutcomeKind.SKIPPED, Reason.BUDGET))
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
        assert isinstance(part.token.error, CalledOff)
        assert part.token.error.reason is Reason.DELETED
    assert untouched.token.error is None
