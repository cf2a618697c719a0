"""Who can view a thread, when something of it is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.messages import Place, PlaceKind
from services.conversations.history import History
from services.conversations.people import ThreadAccess
from tests.services.conversations.places import FullList

ANNA, BEN, GUILD, HELP, PUBLIC, HIDDEN, INVITED = 101, 102, 9, 11, 20, 21, 22

OPEN = Place(PUBLIC, PlaceKind.THREAD, guild_id=GUILD, parent_id=HELP)
BELOW_HIDDEN = replace(OPEN, id=HIDDEN, public=False)
PRIVATE = replace(OPEN, id=INVITED, public=False, invited_only=True)


def live() -> tuple[ThreadAccess, FullList]:
    server = FullList({}, {place.id: place for place in (OPEN, BELOW_HIDDEN, PRIVATE)}, members={INVITED: (ANNA,)})
    return ThreadAccess(History(server), server), server


async def test_what_everybody_can_view_nobody_is_looked_up_for() -> None:
    viewing, server = live()
    assert await viewing.can_view(BEN, PUBLIC, seen_in=None)
    assert server.calls == [f"place {PUBLIC}"]


async def test_below_a_hidden_channel_it_takes_that_discord_shows_somebody_there() -> None:
    viewing, _ = live()
    assert await viewing.can_view(BEN, HIDDEN, seen_in=HIDDEN)
    assert await viewing.can_view(BEN, HIDDEN, seen_in=HELP), "who views the channel views its threads"
    assert not await viewing.can_view(BEN, HIDDEN, seen_in=PUBLIC)
    assert not await viewing.can_view(BEN, HIDDEN, seen_in=None)


async def test_a_private_thread_is_for_its_members_as_they_are_now() -> None:
    viewing, server = live()
    assert await viewing.can_view(ANNA, INVITED, seen_in=None)
    assert not await viewing.can_view(BEN, INVITED, seen_in=INVITED)
    server.members[INVITED] = (BEN,)
    assert not await viewing.can_view(ANNA, INVITED, seen_in=INVITED), "who wrote there may have been removed"
    assert await viewing.can_view(BEN, INVITED, seen_in=INVITED)


async def test_what_cannot_be_found_out_is_not_allowed(caplog: pytest.LogCaptureFixture) -> None:
    viewing, server = live()
    assert not await viewing.can_view(ANNA, 99, seen_in=99), "there is no such thread"
    assert await viewing.can_view(ANNA, INVITED, seen_in=INVITED)
    server.broken = True
    assert not await viewing.can_view(ANNA, INVITED, seen_in=INVITED)
    assert not await viewing.can_view(ANNA, PUBLIC, seen_in=PUBLIC), "it may be private"
    assert "is not known, so they cannot" in caplog.text


async def test_in_a_replay_who_writes_in_a_private_thread_is_a_member() -> None:
    history = History(None)
    history.add_place(PRIVATE)
    viewing = ThreadAccess(history, None)
    assert await viewing.can_view(ANNA, INVITED, seen_in=INVITED)
    assert not await viewing.can_view(ANNA, INVITED, seen_in=HELP)
    assert not await viewing.can_view(ANNA, INVITED, seen_in=None)
