"""What the team answers becomes knowledge: from the message to the topic file."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.conversations import REPLY, THREAD, ConversationKind
from tests.world import ANNA, HELP, TESS, World, thread


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


@pytest.mark.parametrize(("kind", "in_thread"), [(THREAD, False), (REPLY, True)])  # which nothing else is of there
async def test_what_counts_by_itself_is_captured_at_once_and_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: ConversationKind, *, in_thread: bool
) -> None:
    for trait, value in {"opening": "!tip ", "needs_question": False, "settles": False}.items():
        monkeypatch.setitem(vars(kind), trait, value)
    world = await World.begin(tmp_path)
    place_id = world.opens(thread(500)).id if in_thread else HELP
    world.says(ANNA, "Why does the importer skip my camera?", where=place_id)
    told = world.says(TESS, "!tip Cameras are listed in cameras.md.", where=place_id)
    await world.wait(1)
    assert world.story == ["captured"]
    assert [(each.conversation_id, each.said[0].turn.text) for each in world.captures] == [
        (kind.make_id(told.id), "Cameras are listed in cameras.md.")
    ]
    assert [len(each.said) for each in world.captures] == [1]
    await world.wait(60)
    assert world.story == ["captured", "replied"]
    assert await world.close()
