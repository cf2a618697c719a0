"""What happens where the bot cannot post."""

from __future__ import annotations

import logging

import pytest

from model.outcomes import Outcome, OutcomeKind, Reason
from operators.answering import permit
from services.assistant import Inquiry
from services.llm import Usage
from tests.talk import ANN, Talk


class Lacking:
    def __init__(self) -> None:
        self.why: str | None = None
        self.asked: list[tuple[int, int | None]] = []

    def why_not_allowed(self, channel_id: int, thread_id: int | None) -> str | None:
        self.asked.append((channel_id, thread_id))
        return self.why


@pytest.fixture
def inquiry() -> Inquiry:
    talk = Talk()
    return Inquiry(talk.part(talk.says(ANN)), addressed=False, usage=Usage(), decisions={})


async def test_what_could_be_answered_passes(inquiry: Inquiry) -> None:
    access = Lacking()
    assert await permit(access)(inquiry) is inquiry
    assert access.asked == [(inquiry.part.place.id, None)]
    assert await permit(None)(inquiry) is inquiry


async def test_what_could_not_ends_and_its_channel_is_told_once(
    inquiry: Inquiry, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 76."""
    caplog.set_level(logging.WARNING)
    access = Lacking()
    permitted = permit(access)
    for why in ("the bot lacks a key", "the bot lacks a key", None, "the bot lacks a door"):
        access.why = why
        result = await permitted(inquiry)
        if why is not None:
            assert isinstance(result, Outcome)
            assert (result.result, result.reason) == (OutcomeKind.SKIPPED, Reason.CANNOT_POST)
    channel = inquiry.part.place.id
    assert caplog.messages == [
        f"questions in channel {channel} stay unanswered: the bot lacks a key",
        f"questions in channel {channel} stay unanswered: the bot lacks a door",
    ]
