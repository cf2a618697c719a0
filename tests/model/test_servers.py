"""Values of servers, and the default of all others."""

from __future__ import annotations

import pytest

from model.servers import Servers

SERVERS = Servers({None: "shared", 7: "own"})


@pytest.mark.parametrize(("guild_id", "value"), [(7, "own"), (8, "shared"), (None, "shared")])
def test_every_server_has_a_value(guild_id: int | None, value: str) -> None:
    assert SERVERS[guild_id] == value


def test_only_servers_with_a_value_of_their_own_are_listed() -> None:
    assert list(SERVERS) == [None, 7]
    assert len(SERVERS) == 2
    assert 7 in SERVERS
    assert 8 not in SERVERS
    assert SERVERS.own == {7: "own"}


def test_servers_without_a_value_of_their_own_have_that_of_none() -> None:
    assert [SERVERS.owner_of(guild_id) for guild_id in (7, 8, None)] == [7, None, None]


def test_a_function_is_applied_to_each() -> None:
    assert dict(SERVERS.map(str.upper)) == {None: "SHARED", 7: "OWN"}
