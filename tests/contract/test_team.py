"""What the team answers becomes knowledge: from the message to the topic file."""

from __future__ import annotations

from pathlib import Path

from tests.world import ANNA, TESS, World


async def test_what_a_team_member_answers_is_filed_once_the_conversation_is_quiet(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, team=True)
    asked = world.says(ANNA, "Why does the importer skip my camera?")
    world.says(TESS, "The importer skips raw files unless skip_raw is off.", to=asked)
    await world.wait(61)
    assert world.story == ["cancelled: team answered", "captured"]
    assert world.topics == {}
    await world.wait(600)
    [text] = world.topics.values()
    assert "User: Why does the importer skip my camera?\nTeam: The importer skips raw files" in text
    assert await world.close()
