"""Deletions, team members and edits, at each stage between a part's first message and its reply."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model.events import Edited
from model.messages import Reference
from tests.world import ANNA, BEN, HELP, OTHER, TESS, Noticeboard, Script, World, forum_post, snowflake, thread

THREAD = snowflake(1.7e9)


async def slowly(folder: Path) -> World:
    """A world in which each answer takes 100 seconds to write."""
    return await World.begin(folder, script=Script(seconds={"generate": 100}))


async def test_a_message_deleted_while_it_waits_is_removed(tmp_path: Path) -> None:
    """Pitfall 29."""
    world = await World.begin(tmp_path)
    world.deletes(world.says(ANNA, "How?"))
    await world.wait(61)
    assert world.story == ["removed"]
    assert len(world.parts.services.in_flight) == 0


async def test_the_rest_of_a_batch_goes_on_without_a_deleted_message(tmp_path: Path) -> None:
    """Pitfall 29."""
    world = await World.begin(tmp_path)
    world.says(ANNA, "How do I install it?")
    slip = world.says(ANNA, "My password is hunter2")
    world.deletes(slip)
    await world.wait(61)
    assert world.story == ["removed", "replied"]
    assert all("hunter2" not in asked.text for asked in world.script.asked)


async def test_a_question_deleted_while_it_is_being_answered_is_cancelled(tmp_path: Path) -> None:
    """Pitfall 29."""
    world = await slowly(tmp_path)
    message = world.says(ANNA, "How?")
    await world.wait(100)
    world.deletes(message)
    await world.wait(0.001)
    assert world.story == ["cancelled: deleted"]
    await world.wait(300)
    assert world.replies == []
    assert world.outcomes[0].at == message.at + 100


async def test_one_deleted_message_of_several_cancels_the_answer(tmp_path: Path) -> None:
    """Pitfall 29."""
    world = await slowly(tmp_path)
    world.says(ANNA, "How do I")
    second = world.says(ANNA, "install it?")
    await world.wait(100)
    world.deletes(second)
    await world.wait(300)
    assert world.story == ["cancelled: deleted"]


async def test_a_question_deleted_while_its_thread_is_being_opened_gets_no_reply(tmp_path: Path) -> None:
    """Pitfall 29."""
    world = await World.begin(tmp_path, board=Noticeboard(seconds=10))
    message = world.says(ANNA, "How?")
    await world.wait(65)
    world.deletes(message)
    await world.wait(100)
    assert world.story == ["cancelled: deleted"]
    assert world.replies == []


async def test_what_is_deleted_after_the_reply_changes_nothing(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    message = world.says(ANNA, "How?")
    await world.wait(61)
    world.deletes(message)
    await world.wait(61)
    assert world.story == ["replied"]


async def test_a_question_deleted_while_it_waits_for_its_turn_is_cancelled(tmp_path: Path) -> None:
    """Pitfall 29: without asking the model anything about it."""
    world = await slowly(tmp_path)
    world.says(ANNA, "First?")
    await world.wait(61)
    second = world.says(ANNA, "Second?")
    await world.wait(61)
    world.deletes(second)
    await world.wait(300)
    assert world.story == ["replied", "cancelled: deleted"]
    assert world.script.steps.count("gate") == 1


async def test_a_message_whose_deletion_comes_first_is_not_answered(tmp_path: Path) -> None:
    """Pitfalls 25 and 29: events arrive out of order."""
    world = await World.begin(tmp_path)
    message = world.writes(ANNA, "How?")
    world.deletes(message)
    world.delivers(message)
    await world.wait(61)
    assert world.story == ["removed"]
    assert world.parts.services.history.in_memory(HELP, message.id) is None


async def test_a_deletion_after_a_second_delivery_still_counts(tmp_path: Path) -> None:
    """Pitfalls 25 and 29: the duplicate's end is not the message's."""
    world = await slowly(tmp_path)
    waiting = world.says(ANNA, "How?")
    world.delivers(waiting)
    world.deletes(waiting)
    working = world.says(BEN, "Why?")
    await world.wait(61)
    world.delivers(working)
    world.deletes(working)
    await world.wait(300)
    assert world.story == ["ignored: duplicate", "removed", "ignored: duplicate", "cancelled: deleted"]


async def test_a_second_delivery_does_not_bring_back_what_was_deleted_or_edited(tmp_path: Path) -> None:
    """Pitfall 25: what somebody took back must not show up in later conversations."""
    world = await World.begin(tmp_path)
    history = world.parts.services.history
    deleted, edited = world.says(ANNA, "secret"), world.says(BEN, "How do I remoev it?")
    world.deletes(deleted)
    world.edits(edited, "How do I remove it?")
    world.delivers(deleted)
    world.delivers(edited)
    assert history.in_memory(HELP, deleted.id) is None
    known = history.in_memory(HELP, edited.id)
    assert known is not None
    assert known.text == "How do I remove it?"


async def test_a_team_members_reply_to_a_waiting_message_cancels_the_answer(tmp_path: Path) -> None:
    """Pitfall 34."""
    world = await World.begin(tmp_path)
    question = world.says(ANNA, "How?")
    await world.wait(30)
    world.says(TESS, "So.", to=question)
    await world.wait(61)
    assert world.story == ["cancelled: team answered", "captured"]
    assert world.script.steps == []


async def test_a_team_members_reply_while_the_answer_is_written_cancels_it(tmp_path: Path) -> None:
    """Pitfall 34."""
    world = await slowly(tmp_path)
    question = world.says(ANNA, "How?")
    await world.wait(100)
    world.says(TESS, "So.", to=question)
    await world.wait(300)
    assert world.story == ["cancelled: team answered", "captured"]
    assert world.replies == []


async def test_a_team_members_post_in_the_thread_cancels_the_answer(tmp_path: Path) -> None:
    """Pitfall 34: a reply is not needed there."""
    world = await slowly(tmp_path)
    world.opens(thread(THREAD))
    world.says(ANNA, "How?", where=THREAD)
    await world.wait(100)
    world.says(TESS, "Let me see.", where=THREAD)
    await world.wait(300)
    assert world.story == ["cancelled: team answered", "captured"]


async def test_a_team_member_who_opens_a_thread_on_the_question_cancels_the_answer(tmp_path: Path) -> None:
    """Pitfall 34: that thread is the one that the bot would have posted in."""
    world = await slowly(tmp_path)
    question = world.says(ANNA, "How?")
    await world.wait(100)
    world.opens(thread(question.id, owner=TESS))
    world.says(TESS, "Let me see.", where=question.id)
    await world.wait(300)
    assert world.story[0] == "cancelled: team answered"
    assert world.replies == []


async def test_a_team_member_who_joins_the_thread_that_the_reply_goes_to_cancels_it(tmp_path: Path) -> None:
    """Pitfall 34: a question in a channel that is going to be answered in its asker's last thread."""
    world = await World.begin(tmp_path, script=Script(seconds={"more": 100}))
    first = world.says(ANNA, "How?")
    await world.wait(61)
    world.says(ANNA, "And more?")
    await world.wait(100)
    world.says(TESS, "Let me see.", where=first.id)
    await world.wait(300)
    assert world.story[:2] == ["replied", "cancelled: team answered"]
    assert len(world.replies) == 1


async def test_a_team_members_word_elsewhere_does_not_cancel(tmp_path: Path) -> None:
    world = await slowly(tmp_path)
    world.says(ANNA, "How?")
    world.says(TESS, "Good morning", where=OTHER)
    world.says(TESS, "So.", to=world.says(BEN, "Why?"))
    await world.wait(300)
    assert sorted(world.story) == [
        "cancelled: team answered",
        "captured",
        "ignored: not addressed",
        "replied",
    ]


async def test_a_team_member_who_wants_no_bot_to_read_along_is_still_heard_to_answer(tmp_path: Path) -> None:
    """Pitfall 34: left out of capture, not out of the room."""
    world = await slowly(tmp_path)
    question = world.says(ANNA, "How?")
    await world.wait(100)
    world.says(TESS, "!nobot This stays between us.", to=question)
    await world.wait(300)
    assert world.story == ["ignored: opted out", "cancelled: team answered"]


async def test_a_users_reply_does_not_cancel(tmp_path: Path) -> None:
    world = await slowly(tmp_path)
    question = world.says(ANNA, "How?")
    await world.wait(70)
    world.says(BEN, "I would like to know, too", to=question)
    await world.wait(300)
    assert world.story == ["ignored: not addressed", "replied"]


async def test_the_bot_keeps_out_of_a_thread_in_which_the_team_has_posted_since(tmp_path: Path) -> None:
    """Pitfall 34."""
    world = await World.begin(tmp_path)
    world.opens(thread(THREAD))
    world.says(ANNA, "How?", where=THREAD)
    await world.wait(61)
    world.says(TESS, "Let me see.", where=THREAD)
    await world.wait(61)
    world.says(ANNA, "Thanks, and now?", where=THREAD)
    await world.wait(61)
    world.says(ANNA, "Hello?", where=THREAD)
    await world.wait(61)
    assert world.story == ["replied", "captured", "skipped: team is answering", "replied"]


async def test_a_forum_post_is_answered_until_a_team_member_posts_in_it(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(picks=[]))
    world.opens(forum_post(THREAD, ANNA))
    world.says(ANNA, "How?", where=THREAD)
    world.says(BEN, "Me too", where=THREAD)
    await world.wait(61)
    world.says(TESS, "So.", where=THREAD)
    await world.wait(61)
    world.says(ANNA, "But?", where=THREAD)
    await world.wait(61)
    assert world.story == ["ignored: not addressed", "skipped: no sources", "captured", "ignored: not addressed"]


async def test_an_edit_changes_what_waits(tmp_path: Path) -> None:
    """Pitfall 29."""
    world = await World.begin(tmp_path)
    world.edits(world.says(ANNA, "How do I remoev it?"), "How do I remove it?")
    await world.wait(61)
    assert world.replies == ["About: How do I remove it?"]


async def test_an_edit_that_comes_before_its_message_is_not_lost(tmp_path: Path) -> None:
    """Pitfall 25: events may come out of order."""
    world = await World.begin(tmp_path)
    message, hidden = world.writes(ANNA, "How do I remoev it?"), world.writes(BEN, "My secret?")
    world.edits(message, "How do I remove it?")
    world.happens(Edited(message.at, message.channel_id, message.id, None))
    world.edits(hidden, "!nobot")
    world.delivers(message)
    world.delivers(hidden)
    world.delivers(message)
    await world.wait(61)
    assert world.replies == ["About: How do I remove it?"]
    assert world.story == ["ignored: opted out", "ignored: duplicate", "replied"]


async def test_later_edits_have_no_effect(tmp_path: Path) -> None:
    world = await slowly(tmp_path)
    message = world.says(ANNA, "How?")
    await world.wait(100)
    world.edits(message, "Never mind")
    await world.wait(300)
    assert world.replies == ["About: How?"]


@pytest.mark.parametrize("how", ["edits", "deletes"])
async def test_nobody_ends_the_answer_to_another_by_edits_or_deletions(tmp_path: Path, how: str) -> None:
    world = await slowly(tmp_path)
    question = world.says(ANNA, "How do I install it?")
    added = [world.says(BEN, f"I have this too, number {number}", to=question) for number in range(5)]
    await world.wait(100)
    for each in added:
        if how == "edits":
            world.edits(added[0], f"{each.text}!")
        else:
            world.deletes(each)
        await world.wait(50)
    await world.wait(100)
    assert world.replies == ["About: How do I install it?"]
    assert "replied" in world.story


async def test_what_is_edited_away_while_the_model_works_does_not_name_the_thread(tmp_path: Path) -> None:
    world = await slowly(tmp_path)
    message = world.says(ANNA, "How, for customer 4711?")
    await world.wait(100)
    world.edits(message, "How?")
    await world.wait(300)
    assert [name for _, _, name in world.board.threads] == ["Question"]


async def test_an_edit_that_leaves_nothing_takes_the_message_out(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.edits(world.says(ANNA, "How?"), "  ")
    await world.wait(61)
    assert world.story == ["ignored: empty"]


async def test_an_embed_that_discord_adds_does_not_change_the_text(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    message = world.says(ANNA, "How?")
    world.happens(Edited(message.at, message.channel_id, message.id, None))
    await world.wait(61)
    assert world.replies == ["About: How?"]


async def test_a_reply_to_a_message_that_is_gone_is_no_reply(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    gone = world.says(BEN, "Hello")
    world.deletes(gone)
    world.says(ANNA, "How?", to=gone)
    message = world.writes(ANNA, "Why?", where=12)
    world.delivers(replace(message, reply_to=Reference(5, 12, gone=True)))
    await world.wait(61)
    assert world.story == ["removed", "replied", "replied"]
