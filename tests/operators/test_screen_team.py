"""The screen tells what is in flight of the conversation that a team member goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from reactivex.subject import Subject

from model.events import Event, Posted
from model.messages import Author, Message, Part
from model.outcomes import Reason
from operators.screen import ScreenRules, follow, screen
from services.conversations.in_flight import InFlight, WorkCancelled
from services.conversations.tracking import ConversationTracker
from tests.talk import ANN, BEN, STAFF, Talk

CARA = Author(3, "cara")


@dataclass
class Entrance:
    """A tracker and a screen behind it."""

    withheld: Author | None = None
    talk: Talk = field(default_factory=Talk)
    in_flight: InFlight = field(default_factory=InFlight)

    def __post_init__(self) -> None:
        talk, tracker = self.talk, ConversationTracker()
        rules = ScreenRules(lambda message: message.author == self.withheld)
        self.events: Subject[Event] = Subject()
        self.events.pipe(
            follow(tracker, talk.people, talk.history, rules.withheld),
            screen(talk.people, talk.history, tracker, talk.team, self.in_flight, rules),
        ).subscribe()

    def hears(self, author: Author, text: str, *, second: float, mentions: Sequence[Author] = ()) -> Message:
        message = self.talk.says(author, text, second=second, mentions=mentions)
        self.events.on_next(Posted(message.at, message))
        return message

    def asks(self, author: Author, text: str, *, second: float) -> Part:
        part = self.talk.part(self.hears(author, text, second=second))
        self.in_flight.begin(part)
        return part


def reason(part: Part) -> Reason | None:
    return part.token.error.reason if isinstance(part.token.error, WorkCancelled) else None


@pytest.mark.parametrize("withheld", [None, STAFF])
async def test_a_team_member_who_goes_on_without_a_reply_calls_the_answer_off(withheld: Author | None) -> None:
    """Also one who wants nothing read of what they say: whom they mention is seen."""
    entrance = Entrance(withheld)
    part = entrance.asks(ANN, "How do I start it?", second=1)
    entrance.hears(STAFF, "press start", second=10, mentions=[ANN])
    assert reason(part) is Reason.TEAM_ANSWERED


async def test_other_conversations_and_other_peoples_words_call_nothing_off() -> None:
    entrance = Entrance()
    anns = entrance.asks(ANN, "How do I start it?", second=1)
    bens = entrance.asks(BEN, "And the lunch menu, where is that?", second=2)
    entrance.hears(CARA, "ann: no idea", second=5)
    assert (reason(anns), reason(bens)) == (None, None)
    entrance.hears(STAFF, "ben: downstairs", second=10)
    assert (reason(anns), reason(bens)) == (None, Reason.TEAM_ANSWERED)
