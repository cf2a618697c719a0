"""Who is typing, and for how long that is remembered."""

from __future__ import annotations

import pytest

from model.events import Typing
from model.messages import Author, Key
from services.conversations import people as module
from services.conversations.people import REPORTS_SECONDS, TYPING_SECONDS, TypingTracker
from tests.talk import ANN, BEN, BOT, CHANNEL, STAFF, STAFF_TOO, THREAD, Talk

HERE, THERE = CHANNEL.id, THREAD.id


def typists(talk: Talk, *typing: tuple[float, Author, int]) -> TypingTracker:
    heard = TypingTracker(talk.people)
    for at, author, place_id in typing:
        heard.note(Typing(at, place_id, author))
    return heard


def test_whose_client_tells_is_known_for_each_place_and_for_a_while() -> None:
    heard = typists(Talk(), (100, ANN, HERE))
    assert heard.reports_typing(Key(HERE, ANN.id), 100 + REPORTS_SECONDS)
    assert heard.reports_typing(Key(HERE, ANN.id), 50)
    assert not heard.reports_typing(Key(HERE, ANN.id), 101 + REPORTS_SECONDS)
    assert not heard.reports_typing(Key(THERE, ANN.id), 100)
    assert not heard.reports_typing(Key(HERE, BEN.id), 100)


def test_a_team_member_types_until_a_while_after_the_last_word_of_it() -> None:
    heard = typists(Talk(), (100, STAFF, HERE), (104, STAFF, HERE), (102, STAFF_TOO, THERE), (109, BEN, HERE))
    assert heard.team_types_until({HERE}) == 104 + TYPING_SECONDS
    assert heard.team_types_until({THERE}) == 102 + TYPING_SECONDS
    assert heard.team_types_until({HERE, THERE}) == 104 + TYPING_SECONDS
    assert heard.team_types_until({5}) < 0


def test_the_team_is_told_by_the_roles_that_come_along() -> None:
    talk = Talk(team=frozenset(), team_roles=frozenset({7}))
    assert typists(talk, (100, Author(5, "", role_ids=(7,)), HERE)).team_types_until({HERE}) > 100
    assert typists(talk, (100, Author(5, "", is_bot=True, role_ids=(7,)), HERE)).team_types_until({HERE}) < 0
    assert typists(talk, (100, BOT, HERE)).team_types_until({HERE}) < 0


def test_a_team_member_who_has_posted_is_done_in_that_place() -> None:
    talk = Talk()
    heard = typists(talk, (100, STAFF, HERE), (100, STAFF, THERE))
    heard.note_message(talk.says(STAFF, place=CHANNEL))
    assert heard.team_types_until({HERE}) < 0
    assert heard.team_types_until({THERE}) > 100


def test_nothing_is_kept_longer_than_it_is_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = typists(Talk(), *((number * 10.0, STAFF, number) for number in range(1000)))
    assert len(heard._heard) == REPORTS_SECONDS // 10 + 1  # pyright: ignore[reportPrivateUsage]  # memory cannot be seen from outside
    assert len(heard._team) == 2  # pyright: ignore[reportPrivateUsage]  # likewise
    monkeypatch.setattr(module, "KNOWN_TYPISTS", 3)
    heard = typists(Talk(), *((100.0, ANN, number) for number in range(1000)))
    assert [number for number in range(1000) if heard.reports_typing(Key(number, ANN.id), 100)] == [997, 998, 999]
