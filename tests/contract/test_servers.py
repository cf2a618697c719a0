"""Several servers in one process: team, channels and reply mode of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clock import now
from model.events import PlaceSeen
from model.messages import Author, Message, Place, PlaceKind, Reference
from tests.world import ANNA, BEN, GUILD, HELP, OTHER, TESS, World

ELSEWHERE, THERE = 10, 21
"""A server without an entry, and its channel."""


class Servers:
    """A world of two servers."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.happens(PlaceSeen(now(), Place(THERE, PlaceKind.CHANNEL, "help", ELSEWHERE)))

    def says_there(self, author: Author, text: str, to: Message | None = None) -> Message:
        reference = None if to is None else Reference(to.id, to.channel_id)
        said = self.world.writes(author, text, where=THERE, reply_to=reference)
        return self.world.delivers(replace(said, guild_id=ELSEWHERE))

    async def ended(self) -> list[str]:
        await self.world.wait(1000)
        await self.world.close()
        return self.world.story


async def begin(folder: Path, own: Mapping[str, Any], **discord: Any) -> Servers:
    return Servers(await World.begin(folder, guilds={str(GUILD): {"discord": own}}, discord=discord))


async def test_each_server_learns_from_its_own_team(tmp_path: Path) -> None:
    """Pitfall 23: who is of the team in one server is anybody in another."""
    servers = await begin(tmp_path, {"team_member_ids": [BEN.id]})
    world = servers.world
    here, there = world.says(ANNA, "How do I restore it?"), servers.says_there(ANNA, "How do I restore it?")
    for helper in (BEN, TESS):
        world.says(helper, "Like this: restore it.", to=here)
        servers.says_there(helper, "Like this: restore it.", to=there)
    await servers.ended()
    kept = {(each.part.guild_id, each.part.author.id) for each in world.captures if each.part is not None}
    assert kept == {(GUILD, BEN.id), (ELSEWHERE, TESS.id)}


async def test_a_role_of_one_server_makes_nobody_of_the_team_in_another(tmp_path: Path) -> None:
    """Pitfall 23."""
    servers = await begin(tmp_path, {"team_role_ids": [55]}, team_role_ids=[66])
    world = servers.world
    carer = replace(BEN, role_ids=(55,))
    here, there = world.says(ANNA, "How do I restore it?"), servers.says_there(ANNA, "How do I restore it?")
    world.says(carer, "Like this: restore it.", to=here)
    servers.says_there(carer, "Like this: restore it.", to=there)
    await servers.ended()
    assert [each.part.guild_id for each in world.captures if each.part is not None] == [GUILD]


@pytest.mark.parametrize(
    ("own", "common", "here", "there"),
    [
        ({"reply_mode": "off"}, {}, "skipped: reply mode", "replied"),
        ({"reply_mode": "all"}, {"reply_mode": "off"}, "replied", "skipped: reply mode"),
        ({"channel_denylist": [HELP]}, {}, "ignored: not addressed", "replied"),
        ({"channel_allowlist": [OTHER]}, {}, "ignored: not addressed", "replied"),
        ({"channel_allowlist": []}, {"channel_allowlist": [1]}, "replied", "ignored: not addressed"),
        ({"channels": {HELP: {"reply_mode": "off"}}}, {}, "skipped: reply mode", "replied"),
        ({}, {"channels": {HELP: {"reply_mode": "off"}}}, "skipped: reply mode", "replied"),
    ],
)
async def test_each_server_is_read_and_answered_as_it_says(
    tmp_path: Path, own: dict[str, Any], common: dict[str, Any], here: str, there: str
) -> None:
    servers = await begin(tmp_path, own, **common)
    servers.world.says(ANNA, "How?")
    await servers.world.wait(500)
    servers.says_there(BEN, "How?")
    assert await servers.ended() == [here, there]


async def test_a_call_for_help_goes_to_the_channel_of_its_server(tmp_path: Path) -> None:
    servers = await begin(tmp_path, {"escalation_channel_id": 98}, escalation_channel_id=99)
    world = servers.world
    world.says(ANNA, "How?")
    await world.wait(100)
    thread_id = world.board.sent[0].place_id
    world.opens(Place(thread_id, PlaceKind.THREAD, "How?", GUILD, parent_id=HELP))
    world.reacts(BEN, world.last_reply_id, "🆘")
    await servers.ended()
    assert [sent.place_id for sent in world.board.sent[1:]] == [98]


async def test_the_team_of_one_server_gives_no_votes_there_and_may_elsewhere(tmp_path: Path) -> None:
    servers = await begin(tmp_path, {"team_member_ids": [BEN.id]}, feedback=True)
    world = servers.world
    world.says(ANNA, "How?")
    await world.wait(100)
    for voter in (BEN, TESS):
        world.reacts(voter, world.last_reply_id, "👍")
    await servers.ended()
    assert (tmp_path / "data" / "feedback.jsonl").read_text().count('"up"') == 1


async def test_what_team_members_type_is_waited_for_in_their_own_server(tmp_path: Path) -> None:
    servers = await begin(tmp_path, {"team_member_ids": [BEN.id]})
    world = servers.world
    world.types(TESS)
    assert world.parts.services.typists.team_types_until([HELP]) < now()
    world.types(BEN)
    assert world.parts.services.typists.team_types_until([HELP]) > now()
    await servers.ended()
