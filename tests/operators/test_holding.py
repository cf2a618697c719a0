"""How long a finished answer waits for a team member who types."""

from __future__ import annotations

import asyncio
import logging

import pytest

from clock import now
from model.events import Typing
from model.messages import Author
from operators.answering import HOLD_SECONDS, hold
from services.assistant import Inquiry
from services.conversations.people import TYPING_SECONDS, TypingTracker
from services.llm import Usage
from tests.talk import ANN, BEN, CHANNEL, STAFF, THREAD, Talk

OPENED = 3000
"""The thread that the reply goes to."""


def asked(talk: Talk) -> tuple[Inquiry, TypingTracker]:
    inquiry = Inquiry(talk.part(talk.says(ANN)), True, Usage(), {}, reply_place_id=OPENED)
    return inquiry, TypingTracker(talk.people)


async def held_for(inquiry: Inquiry, typists: TypingTracker) -> float:
    began = now()
    assert await hold(typists)(inquiry) is inquiry
    return now() - began


@pytest.mark.parametrize(
    ("author", "place_id", "waits"),
    [
        (STAFF, CHANNEL.id, True),
        (STAFF, OPENED, True),
        (STAFF, None, True),  # a thread on the question
        (STAFF, THREAD.id, False),
        (BEN, CHANNEL.id, False),
    ],
    ids=["in the channel", "in the thread of the reply", "in a thread on it", "elsewhere", "not of the team"],
)
async def test_an_answer_waits_for_a_team_member_who_types_where_it_was_asked(
    author: Author, place_id: int | None, waits: bool
) -> None:
    inquiry, typists = asked(Talk())
    typists.note(Typing(now() - 3, inquiry.part.message_ids[0] if place_id is None else place_id, author))
    assert await held_for(inquiry, typists) == (TYPING_SECONDS - 3 if waits else 0)
    assert inquiry.decisions == ({"hold": {"seconds": TYPING_SECONDS - 3}} if waits else {})


async def test_the_wait_is_as_long_as_they_type_and_told_to_a_tenth(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "operators.answering")
    inquiry, typists = asked(Talk())
    typists.note(Typing(now() + 0.54 - TYPING_SECONDS, CHANNEL.id, STAFF))
    assert await held_for(inquiry, typists) == pytest.approx(0.54)
    assert inquiry.decisions == {"hold": {"seconds": 0.5}}
    assert caplog.messages == ["hold: 0.5 s while a team member was typing"]


async def test_who_goes_on_typing_is_waited_for_until_the_most_and_the_time_of_the_chain_stands_still() -> None:
    inquiry, typists = asked(Talk())
    inquiry.token.expire_in(5, TimeoutError("the chain took too long"))
    typists.note(Typing(now(), CHANNEL.id, STAFF))
    asyncio.get_running_loop().call_later(10, typists.note, Typing(now() + 10, CHANNEL.id, STAFF))
    assert await held_for(inquiry, typists) == HOLD_SECONDS
    assert inquiry.token.error is None
    await asyncio.sleep(6)
    assert inquiry.token.error is not None


async def test_nobody_waits_for_who_has_stopped() -> None:
    inquiry, typists = asked(Talk())
    typists.note(Typing(now() - TYPING_SECONDS, CHANNEL.id, STAFF))
    assert await held_for(inquiry, typists) == 0
    assert inquiry.decisions == {}
