"""Whether the bot has left a server, as its gateway knows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from assembly.bot import has_left_server
from services.discord import LookupFailed


def client(*guilds: tuple[int, bool]) -> Any:
    return SimpleNamespace(guilds=[SimpleNamespace(id=each, unavailable=away) for each, away in guilds])


def test_a_server_that_is_not_among_its_own_was_left() -> None:
    left = has_left_server(client((1, False), (2, False)))
    assert [left(each) for each in (1, 2, 3)] == [False, False, True]


AWAY = ((1, False), (2, True))


@pytest.mark.parametrize(("guilds", "said"), [((), "no server has arrived"), (AWAY, r"\[2\] are away")])
def test_while_one_is_away_nobody_knows(guilds: tuple[tuple[int, bool], ...], said: str) -> None:
    with pytest.raises(LookupFailed, match=said):
        has_left_server(client(*guilds))(3)
