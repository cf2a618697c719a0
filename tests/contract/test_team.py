"""What the team answers becomes knowledge: from the message to the topic file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clock import now, rfc3339
from model.conversations import REPLY, THREAD, ConversationKind
from model.events import Edited, GuildGone
from model.messages import Attachment, Message, Place, PlaceKind
from services.knowledge.topic_files import read_topic
from services.team import WORDLESS, removals
from services.team.decisions import Action, Actor, Decision, DecisionLog
from tests.world import ANNA, GUILD, HELP, OTHER, TESS, World, picture, thread


def noted(folder: Path) -> list[Decision]:
    return DecisionLog(folder / "data" / "team-knowledge" / "decisions.jsonl").read()


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
    assert [(each.conversation_id, each.messages[0].turn.text) for each in world.captures] == [
        (kind.make_id(told.id), "Cameras are listed in cameras.md.")
    ]
    assert [len(each.messages) for each in world.captures] == [1]
    await world.wait(60)
    assert world.story == ["captured", "replied"]
    assert await world.close()


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_counts_by_itself_is_filed_as_it_reads_after_an_edit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, restarted: bool
) -> None:
    for trait, value in {"opening": "!tip ", "needs_question": False, "settles": False}.items():
        monkeypatch.setitem(vars(REPLY), trait, value)
    world = await World.begin(tmp_path, team=True)
    told = world.says(TESS, "!tip The relay listens on port 7070.")
    await world.wait(1)
    assert ["Team: The relay listens on port 7070.\n" in text for text in world.topics.values()] == [True]
    if restarted:
        assert await world.close()
        world = await World.begin(tmp_path, team=True)
    world.edits(told, "!tip The relay listens on port 8080.")
    await world.wait(1)
    assert ["Team: The relay listens on port 8080.\n" in text for text in world.topics.values()] == [True]
    assert await world.close()


ASKED, ANSWERED = "Why does the importer skip my camera?", "The importer skips raw files; the password is blorptang."


async def helped(tmp_path: Path, **fields: Any) -> tuple[World, Message, Message]:
    """A question and its answer, captured and not yet filed."""
    world = await World.begin(tmp_path, team=True)
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD))
    asked = world.says(ANNA, ASKED)
    answered = world.says(TESS, ANSWERED, to=asked, **fields)
    await world.wait(61)
    assert world.story == ["cancelled: team answered", "captured"]
    assert world.topics == {}
    return world, asked, answered


@pytest.mark.parametrize("who", ["team", "asker", "both"])
async def test_a_conversation_with_nothing_left_of_question_or_answer_is_not_filed(tmp_path: Path, who: str) -> None:
    world, asked, answered = await helped(tmp_path)
    world.deletes(*{"team": (answered,), "asker": (asked,), "both": (asked, answered)}[who])
    await world.wait(1200)
    assert world.topics == {}
    assert [each.reason for each in noted(tmp_path)][1:] == [WORDLESS]
    assert await world.close()


async def test_of_several_answers_the_deleted_one_is_left_out(tmp_path: Path) -> None:
    world, asked, answered = await helped(tmp_path)
    world.says(TESS, "Set skip_raw to off.", to=asked)
    await world.wait(61)
    world.deletes(answered)
    await world.wait(1200)
    [text] = world.topics.values()
    assert f"User: {ASKED}\nTeam: Set skip_raw to off.\n" in text
    assert await world.close()


async def test_an_answer_to_a_deleted_question_is_no_answer_to_the_question_before(tmp_path: Path) -> None:
    world, asked, answered = await helped(tmp_path)
    second = world.says(ANNA, "And how do I delete all of it?", to=answered)
    world.says(TESS, "Run wipe.", to=second)
    await world.wait(61)
    world.deletes(second)
    await world.wait(1200)
    [text] = world.topics.values()
    assert asked.text in text
    assert "wipe" not in text
    assert await world.close()


@pytest.mark.parametrize("files", [(), (picture(),)], ids=["words", "words and picture"])
async def test_an_edited_answer_is_filed_as_it_reads_now(tmp_path: Path, files: tuple[Attachment, ...]) -> None:
    world, _, answered = await helped(tmp_path, attachments=files)
    world.edits(answered, "The importer skips raw files.")
    await world.wait(1200)
    [text] = world.topics.values()
    assert "Team: The importer skips raw files.\n" in text
    assert "blorptang" not in text
    assert ("[image: screen.png]" in text) == bool(files)
    assert await world.close()


@pytest.mark.parametrize("is_filed", [False, True])
async def test_what_is_edited_under_its_answer_puts_that_under_no_other_question(
    tmp_path: Path, is_filed: bool
) -> None:
    world, asked, _ = await helped(tmp_path)
    await world.wait(1200 if is_filed else 1)
    world.edits(asked, "Is it safe to format my disk?")
    await world.wait(1200)
    assert world.topics == {}
    assert await world.close()


@pytest.mark.parametrize("is_filed", [False, True])
async def test_what_an_asker_edits_out_is_in_no_topic(tmp_path: Path, is_filed: bool) -> None:
    world = await World.begin(tmp_path, team=True)
    asked = world.says(ANNA, f"{ASKED} My customer number is 4711-42.")
    world.says(TESS, ANSWERED, to=asked)
    await world.wait(1200 if is_filed else 100)
    world.edits(asked, ASKED)
    await world.wait(1200)
    assert "4711" not in str(world.topics)
    [text] = world.topics.values()
    assert f"User: {ASKED} …\nTeam: {ANSWERED}\n" in text
    assert [each.quotable for each in read_topic(text).sections] == [False]
    assert await world.close()


async def test_what_is_hidden_before_it_is_filed_is_not_filed(tmp_path: Path) -> None:
    world, _, _ = await helped(tmp_path)
    world.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD, public=False))
    await world.wait(1200)
    assert world.topics == {}
    [decision] = noted(tmp_path)
    assert (decision.action, decision.by, decision.reason) == (
        Action.REMOVED,
        Actor.DISCORD,
        "its channel is no longer public",
    )
    assert await world.close()


@pytest.mark.parametrize("how", ["deleted", "edited"])
async def test_what_was_filed_is_withdrawn_at_once_and_what_is_left_is_filed_anew(tmp_path: Path, how: str) -> None:
    world, asked, answered = await helped(tmp_path)
    world.says(TESS, "Set skip_raw to off.", to=asked)
    await world.wait(1200)
    assert "blorptang" in "".join(world.topics.values())
    if how == "deleted":
        world.deletes(answered)
    else:
        world.edits(answered, "It skips raw files.")
    await world.wait(1)
    [text] = world.topics.values()
    assert "Set skip_raw to off." in text
    assert "blorptang" not in text
    assert ("It skips raw files." in text) == (how == "edited")
    *_, withdrawn, filed = noted(tmp_path)
    assert (withdrawn.action, withdrawn.by) == (Action.REMOVED, Actor.DISCORD)
    assert filed.action is Action.ADDED
    assert await world.close()


async def test_a_message_of_files_alone_is_taken_back_as_well(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, team=True)
    asked = world.says(ANNA, ASKED)
    shown = world.says(TESS, "", to=asked, attachments=(picture(name="secret.png"),))
    world.says(TESS, "Set skip_raw to off, as in the picture.", to=asked)
    await world.wait(61)
    world.deletes(shown)
    await world.wait(1200)
    [text] = world.topics.values()
    assert "secret.png" not in text
    assert "Set skip_raw to off" in text
    assert await world.close()


async def test_what_is_deleted_in_a_thread_is_taken_back(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, team=True)
    place_id = world.opens(thread(500)).id
    world.says(ANNA, ASKED, where=place_id)
    answered = world.says(TESS, ANSWERED, where=place_id)
    await world.wait(61)
    world.deletes(answered)
    await world.wait(1200)
    assert world.topics == {}
    assert len(noted(tmp_path)) == 2
    assert await world.close()


async def test_a_channel_cleared_of_many_messages_is_taken_back_in_one_go(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, team=True)
    posted: list[Message] = []
    for what in ("cameras", "passwords", "backups", "calendars"):
        posted.append(world.says(ANNA, f"Where do I find the settings of {what}?"))
        posted.append(world.says(TESS, f"On the page named {what} there is a list.", to=posted[-1]))
        await world.wait(700)
    assert all(each.text in "".join(world.topics.values()) for each in posted)
    world.deletes(*posted)
    await world.wait(1200)
    assert world.topics == {}
    assert await world.close()


async def test_deletions_of_what_was_never_captured_change_nothing(tmp_path: Path) -> None:
    world, _, _ = await helped(tmp_path)
    world.deletes(world.says(ANNA, "thanks"))
    world.edits(world.says(ANNA, "thx"), "thanks")
    world.happens(Edited(now(), HELP, 12345, None))
    world.happens(Edited(now(), HELP, 12346, "what the bot never saw"))
    await world.wait(1200)
    assert ANSWERED in "".join(world.topics.values())
    assert [each.action for each in noted(tmp_path)] == [Action.ADDED]
    assert await world.close()


@pytest.mark.parametrize("gone", [HELP, 500])
async def test_what_is_deleted_with_its_channel_or_thread_is_not_filed(tmp_path: Path, gone: int) -> None:
    world = await World.begin(tmp_path, team=True)
    place_id = world.opens(thread(500)).id
    world.says(ANNA, ASKED, where=place_id)
    world.says(TESS, ANSWERED, where=place_id)
    await world.wait(61)
    world.closes(gone)
    await world.wait(1200)
    assert world.topics == {}
    assert Action.ADDED not in {each.action for each in noted(tmp_path)}
    assert await world.close()


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("gone", [HELP, OTHER, 500])
async def test_what_is_deleted_with_its_channel_or_thread_leaves_its_topic_at_once(
    tmp_path: Path, gone: int, *, restarted: bool
) -> None:
    """Moderators, and the authors of posts, delete so: Discord tells of no message then."""
    world = await World.begin(tmp_path, team=True)
    world.opens(thread(500))
    words = {500: "camera", HELP: "calendar", OTHER: "password"}
    for place_id, word in words.items():
        asked = world.says(ANNA, f"Where do I find the settings of the {word}?", where=place_id)
        world.says(TESS, f"On the page named {word} there is a list.", where=place_id, to=asked)
    await world.wait(1200)
    assert all(word in "".join(world.topics.values()) for word in words.values())
    if restarted:
        assert await world.close()
        world = await World.begin(tmp_path, team=True)
    left = {HELP: ["password"], OTHER: ["camera", "calendar"], 500: ["calendar", "password"]}[gone]
    before = len(noted(tmp_path))
    world.happens(GuildGone(now(), GUILD))
    await world.wait(1)
    assert len(noted(tmp_path)) == before, "a server that was left has deleted nothing"
    world.closes(gone)
    await world.wait(1)
    assert [word for word in words.values() if word in "".join(world.topics.values())] == left
    withdrawn = [each for each in noted(tmp_path)[before:] if each.action is Action.REMOVED]
    assert {each.by for each in withdrawn} == {Actor.DISCORD}
    await world.wait(1200)
    assert world.curation is not None
    for each in withdrawn:
        removals.restore(world.curation.library, each.qa_id, rfc3339(now()))
    assert all(word in "".join(world.topics.values()) for word in words.values()), "the team only tidied up"
    assert await world.close()


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_channel_that_was_hidden_while_the_bot_was_away_keeps_out_what_is_not_filed(
    tmp_path: Path, *, in_thread: bool
) -> None:
    """Also of its threads: Discord does not list archived ones at a start."""
    if in_thread:
        world = await World.begin(tmp_path, team=True)
        place_id = world.opens(thread(500)).id
        world.says(ANNA, ASKED, where=place_id)
        world.says(TESS, ANSWERED, where=place_id)
        await world.wait(61)
    else:
        world, _, _ = await helped(tmp_path)
    assert await world.close()
    again = await World.begin(tmp_path, team=True)
    again.opens(Place(HELP, PlaceKind.CHANNEL, "help", GUILD, public=False))
    await again.wait(1200)
    assert again.topics == {}
    assert [each.by for each in noted(tmp_path)] == [Actor.DISCORD]
    assert await again.close()
