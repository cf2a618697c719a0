"""How long the screen remembers what it has seen."""

from __future__ import annotations

import pytest
from reactivex.subject import Subject

from model.events import Event, Posted
from model.outcomes import Ignored, Reason
from operators import screen as module
from operators.screen import Screened, ScreenRules, screen
from services.conversations.in_flight import InFlight
from tests.talk import ANN, Talk

RULES = ScreenRules(withheld=lambda _message: False, allowed=frozenset(), denied=frozenset())


def test_duplicates_are_told_among_the_newest_messages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 25, in bounded memory."""
    monkeypatch.setattr(module, "DEDUPLICATED", 1)
    talk = Talk()
    seen: list[Screened] = []
    events: Subject[Event] = Subject()
    events.pipe(screen(talk.people, talk.history, talk.team, InFlight(), RULES)).subscribe(seen.append)
    first, second = talk.says(ANN), talk.says(ANN)
    for message in (first, second, second, first):
        events.on_next(Posted(message.at, message))
    assert [type(item) for item in seen] == [Posted, Posted, Ignored, Posted]
    assert isinstance(seen[2], Ignored)
    assert seen[2].reason is Reason.DUPLICATE
