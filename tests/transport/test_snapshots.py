"""A server told whole again is the server with its changes, to the decoder and to discord.py."""

from __future__ import annotations

from typing import Any

import discord
import pytest

from services.discord import Dispatch
from services.discord.live import Client
from services.discord.wire import Decoder
from transport.gateway_publisher import GuildSnapshot

GUILD = "700"


def channel(id_: int, **more: Any) -> dict[str, Any]:
    return {"id": str(id_), "guild_id": GUILD, "type": 0, "name": f"c{id_}", "position": 0, "parent_id": None, **more}


def thread(id_: int, parent: int, *, archived: bool = False, **more: Any) -> dict[str, Any]:
    state = {
        "archived": archived,
        "locked": False,
        "auto_archive_duration": 60,
        "archive_timestamp": "2026-01-01T00:00:00Z",
    }
    fields = {
        "id": str(id_),
        "guild_id": GUILD,
        "type": 11,
        "name": f"t{id_}",
        "parent_id": str(parent),
        "owner_id": "1",
    }
    return {**fields, "thread_metadata": state, "message_count": 0, "member_count": 0, **more}


def role(id_: int, permissions: int = 1024) -> dict[str, Any]:
    colors = {"primary_color": 0, "secondary_color": None, "tertiary_color": None}
    fields = {"id": str(id_), "name": "r", "color": 0, "colors": colors, "hoist": False, "position": 0}
    return {**fields, "permissions": str(permissions), "managed": False, "mentionable": False, "flags": 0}


def me(*roles: int) -> dict[str, Any]:
    user = {"id": "42", "username": "bot", "discriminator": "0", "avatar": None, "global_name": None}
    return {"user": user, "roles": [str(each) for each in roles], "joined_at": "2026-01-01T00:00:00Z", "flags": 0}


CREATED = {
    "id": GUILD,
    "name": "Harbour",
    "owner_id": "1",
    "unavailable": False,
    "roles": [role(700), role(701), role(702)],
    "channels": [channel(10), channel(11), channel(12)],
    "threads": [thread(20, 10), thread(21, 11), thread(22, 12), thread(23, 12)],
    "members": [me(701)],
}
NOW = [role(700, 0), role(701), role(703, 8)]
CHANGES: list[tuple[str, dict[str, Any]]] = [
    (
        "CHANNEL_UPDATE",
        channel(10, name="renamed", permission_overwrites=[{"id": GUILD, "type": 0, "allow": "0", "deny": "1024"}]),
    ),
    ("CHANNEL_CREATE", channel(13)),
    ("CHANNEL_DELETE", channel(11)),
    ("THREAD_CREATE", thread(24, 13)),
    ("THREAD_UPDATE", thread(20, 10, name="renamed")),
    ("THREAD_UPDATE", thread(22, 12, archived=True)),
    ("THREAD_DELETE", {"id": "23", "guild_id": GUILD, "parent_id": "12", "type": 11}),
    ("THREAD_CREATE", thread(25, 12)),
    ("THREAD_LIST_SYNC", {"guild_id": GUILD, "channel_ids": ["12"], "threads": [thread(26, 12)], "members": []}),
    ("THREAD_MEMBERS_UPDATE", {"id": "24", "guild_id": GUILD, "member_count": 2}),
    ("GUILD_ROLE_UPDATE", {"guild_id": GUILD, "role": role(700, 0)}),
    ("GUILD_ROLE_CREATE", {"guild_id": GUILD, "role": role(703, 8)}),
    ("GUILD_ROLE_DELETE", {"guild_id": GUILD, "role_id": "702"}),
    ("GUILD_MEMBER_UPDATE", {"guild_id": GUILD, **me(703)}),
    ("GUILD_UPDATE", {"id": GUILD, "name": "Dock", "owner_id": "2", "description": "x", "roles": NOW}),
]
TOLD = [Dispatch(1.0, "GUILD_CREATE", CREATED), *(Dispatch(2.0 + n, *each) for n, each in enumerate(CHANGES))]


def whole(told: list[Dispatch]) -> Dispatch | None:
    made = GuildSnapshot()
    for each in told:
        made.apply(each)
    return made.as_guild_create()


def test_what_is_told_whole_is_what_the_changes_have_made() -> None:
    as_guild_create = whole(TOLD)
    assert as_guild_create is not None
    d: Any = as_guild_create.d
    assert (as_guild_create.t, as_guild_create.at) == ("GUILD_CREATE", TOLD[-1].at)
    assert {each["id"]: each["name"] for each in d["channels"]} == {"10": "renamed", "12": "c12", "13": "c13"}
    assert {each["id"]: each["name"] for each in d["threads"]} == {"20": "renamed", "24": "t24", "26": "t26"}
    assert {each["id"]: each["permissions"] for each in d["roles"]} == {"700": "0", "701": "1024", "703": "8"}
    assert [each["roles"] for each in d["members"]] == [["703"]]
    assert (d["name"], d["owner_id"]) == ("Dock", "2")
    assert "description" not in d


def test_roles_change_one_by_one() -> None:
    as_guild_create = whole([each for each in TOLD if each.t != "GUILD_UPDATE"])
    assert as_guild_create is not None
    assert as_guild_create.d["roles"] == NOW


def test_the_decoder_sees_the_same_places() -> None:
    changed, anew = Decoder(), Decoder()
    for each in TOLD:
        changed.decode(each)
    as_guild_create = whole(TOLD)
    assert as_guild_create is not None
    anew.decode(as_guild_create)
    for id_, parent in ((20, 10), (24, 13), (30, 10), (31, 12)):
        assert changed.place(thread(id_, parent)) == anew.place(thread(id_, parent))


async def test_discord_py_allows_the_bot_the_same() -> None:
    as_guild_create = whole(TOLD)
    assert as_guild_create is not None
    allowed: list[dict[int, int]] = []
    for told in (TOLD, [as_guild_create]):
        client = Client()
        state: Any = client._connection  # pyright: ignore[reportPrivateUsage]
        state.user = discord.ClientUser(state=state, data=me()["user"])
        for each in told:
            if each.t != "THREAD_MEMBERS_UPDATE":
                getattr(state, f"parse_{each.t.lower()}")(dict(each.d))
        guild = client.get_guild(700)
        assert guild is not None
        allowed.append({each.id: each.permissions_for(guild.me).value for each in guild.channels})
        assert {each.id for each in guild.threads} == {20, 24, 26}
    assert allowed[0] == allowed[1]


def test_what_has_not_arrived_or_is_away_is_not_told() -> None:
    assert whole(TOLD[1:]) is None
    assert whole([*TOLD, Dispatch(99.0, "GUILD_DELETE", {"id": GUILD, "unavailable": True})]) is None


@pytest.mark.parametrize("type_", sorted({t for t, _ in CHANGES}))
def test_an_odd_change_is_none(type_: str) -> None:
    first = Dispatch(1.0, "GUILD_CREATE", {"id": GUILD, "channels": [], "threads": [thread(20, 10)], "roles": "odd"})
    odd: dict[str, Any] = {} if type_ != "GUILD_UPDATE" else {"roles": 5}
    as_guild_create = whole([first, Dispatch(2.0, type_, odd)])
    assert as_guild_create is not None
    assert as_guild_create.d["threads"] == [thread(20, 10)] or type_ == "THREAD_LIST_SYNC"


def test_a_sync_of_all_channels_replaces_all_threads() -> None:
    sync = Dispatch(9.0, "THREAD_LIST_SYNC", {"guild_id": GUILD, "threads": [thread(30, 10)], "members": []})
    as_guild_create = whole([TOLD[0], sync])
    assert as_guild_create is not None
    assert [each["id"] for each in as_guild_create.d["threads"]] == ["30"]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]


def test_a_new_list_of_roles_replaces_the_old() -> None:
    as_guild_create = whole([TOLD[0], Dispatch(9.0, "GUILD_UPDATE", {"id": GUILD, "roles": [role(700)]})])
    assert as_guild_create is not None
    assert as_guild_create.d["roles"] == [role(700)]
