"""The window listens: who types is not done yet, and what looks finished need not wait; the team goes first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from model.messages import Author, Message
from tests.world import ANNA, BEN, HELP, OTHER, ROBOT, TESS, Script, World, picture, thread

QUESTION = "How do I install it on Windows?"


def replied_at(world: World) -> list[float]:
    """When each reply was posted, in seconds after the first message."""
    first = min(message.at for outcome in world.outcomes for message in outcome.part.messages)
    return [round(sent.at - first, 3) for sent in world.board.sent]


async def types_for(world: World, author: Author, seconds: int, **where: int) -> None:
    """Typing, said every ten seconds."""
    for _ in range(0, seconds, 10):
        world.types(author, **where)
        await world.wait(10)


# How long a batch waits


async def test_a_finished_question_is_answered_soon_where_its_author_was_heard_typing(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    await world.wait(8)
    world.says(ANNA, QUESTION)
    await world.wait(100)
    assert replied_at(world) == [15]


async def test_where_nobody_was_heard_typing_a_finished_question_waits_as_usual(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(BEN)
    world.types(ANNA, where=OTHER)
    world.says(ANNA, QUESTION)
    await world.wait(100)
    assert replied_at(world) == [60]


async def test_who_was_heard_long_ago_may_write_from_elsewhere_now(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    await world.wait(601)
    world.says(ANNA, QUESTION)
    await world.wait(100)
    assert replied_at(world) == [60]


@pytest.mark.parametrize("text", ["Hi!", "I tried this:", "it says\n```\nE42", "How do I install it, and..."])
async def test_what_does_not_look_finished_waits_as_usual(tmp_path: Path, text: str) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    world.says(ANNA, text)
    await world.wait(100)
    assert replied_at(world) == [60]


async def test_a_file_is_what_was_announced(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    world.says(ANNA, "How do I get rid of this error:", attachments=(picture(),))
    await world.wait(100)
    assert replied_at(world) == [15]


@pytest.mark.parametrize(("chars", "batches"), [(10, [50, 20]), (1_900, [22, 22, 22, 4])])
async def test_a_flood_is_no_single_question(tmp_path: Path, chars: int, batches: list[int]) -> None:
    """One of 600 messages held the event loop for seconds, and was written down as it was."""
    world = await World.begin(tmp_path)
    for _ in range(70):
        world.says(ANNA, "a" * chars)
        await world.wait(1)
    await world.wait(200)
    assert [len(outcome.part.messages) for outcome in world.outcomes] == batches


async def test_more_than_can_be_judged_waits_as_usual(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    for _ in range(3):
        world.says(ANNA, "and then it stops " * 90)
    last = world.says(ANNA, QUESTION)
    await world.wait(100)
    assert [outcome.part.closed_at for outcome in world.outcomes] == [last.at + 60]


async def test_nothing_is_answered_while_its_author_types(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    world.says(ANNA, QUESTION)
    await world.wait(5)
    await types_for(world, ANNA, 200)
    world.says(ANNA, "It is Windows 11, and where does it keep its settings?")
    await world.wait(100)
    assert replied_at(world) == [220]
    assert len(world.outcomes) == 1


async def test_who_stops_typing_without_another_word_has_waited_as_long_as_usual(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    world.says(ANNA, QUESTION)
    await world.wait(10)
    world.types(ANNA)
    world.says(BEN, QUESTION)
    await world.wait(100)
    assert replied_at(world) == [60, 70]


async def test_who_types_on_after_that_is_waited_for(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.says(ANNA, QUESTION)
    await world.wait(55)
    world.types(ANNA)
    await world.wait(100)
    assert replied_at(world) == [70]


async def test_nobody_holds_a_window_open_for_ever_by_typing(tmp_path: Path) -> None:
    """Pitfall 33."""
    world = await World.begin(tmp_path, discord={"message_batch_max_seconds": 120})
    world.says(ANNA, QUESTION)
    await types_for(world, ANNA, 300)
    assert replied_at(world) == [120]


async def test_what_others_type_does_not_matter(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.types(ANNA)
    world.says(ANNA, QUESTION)
    for each in (BEN, ROBOT):
        world.types(each)
    world.types(ANNA, where=OTHER)
    await world.wait(100)
    assert replied_at(world) == [15]


@pytest.mark.parametrize(
    ("settings", "after"),
    [
        ({"message_batch_settle_seconds": 5}, 5),
        ({"message_batch_settle_seconds": 60}, 60),
        ({"message_batch_wait_seconds": 10}, 10),
    ],
)
async def test_an_operator_may_say_how_soon(tmp_path: Path, settings: Mapping[str, Any], after: float) -> None:
    world = await World.begin(tmp_path, discord=settings)
    world.types(ANNA)
    world.says(ANNA, QUESTION)
    await world.wait(100)
    assert replied_at(world) == [after]


# The team goes first


async def asked(folder: Path) -> tuple[World, Message]:
    """A question of somebody who is not heard typing, two seconds before its answer would be posted."""
    world = await World.begin(folder)
    question = world.says(ANNA, QUESTION)
    await world.wait(58)
    return world, question


async def test_an_answer_is_held_back_while_a_team_member_types(tmp_path: Path) -> None:
    world, _ = await asked(tmp_path)
    world.types(TESS)
    await world.wait(100)
    assert replied_at(world) == [58 + 15]
    assert world.outcomes[0].decisions["hold"] == {"seconds": 13.0}


async def test_an_answer_is_held_back_for_twenty_seconds_at_most(tmp_path: Path) -> None:
    world, _ = await asked(tmp_path)
    await types_for(world, TESS, 100)
    assert replied_at(world) == [60 + 20]


async def test_a_team_members_answer_cancels_one_that_is_held_back(tmp_path: Path) -> None:
    """Pitfall 34."""
    world, question = await asked(tmp_path)
    world.types(TESS)
    await world.wait(10)
    world.says(TESS, "With the installer.", to=question)
    await world.wait(100)
    assert world.story == ["cancelled: team answered", "captured"]
    assert world.replies == []


async def test_a_question_deleted_while_its_answer_is_held_back_gets_none(tmp_path: Path) -> None:
    """Pitfall 29."""
    world, question = await asked(tmp_path)
    world.types(TESS)
    await world.wait(10)
    world.deletes(question)
    await world.wait(100)
    assert world.story == ["cancelled: deleted"]


async def test_a_team_member_who_has_posted_types_no_more(tmp_path: Path) -> None:
    world, _ = await asked(tmp_path)
    world.types(TESS)
    world.says(TESS, "Good morning!")
    await world.wait(100)
    assert replied_at(world) == [60]


async def test_a_team_member_who_types_in_the_thread_on_the_question_is_waited_for(tmp_path: Path) -> None:
    world, question = await asked(tmp_path)
    world.types(TESS, where=question.id)
    await world.wait(100)
    assert replied_at(world) == [58 + 15]


async def test_a_team_member_who_types_in_the_thread_of_the_reply_is_waited_for(tmp_path: Path) -> None:
    world, _ = await asked(tmp_path)
    await world.wait(10)
    opened = world.board.sent[0].place_id
    world.says(ANNA, "And where are its settings?")
    await world.wait(58)
    world.types(TESS, where=opened)
    await world.wait(100)
    assert replied_at(world) == [60, 68 + 58 + 15]


@pytest.mark.parametrize(("author", "where"), [(TESS, OTHER), (BEN, HELP)])
async def test_nobody_else_and_no_other_place_holds_an_answer_back(tmp_path: Path, author: Author, where: int) -> None:
    world, _ = await asked(tmp_path)
    world.types(author, where=where)
    await world.wait(100)
    assert replied_at(world) == [60]


async def test_an_answer_in_a_thread_is_held_back_likewise(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.opens(thread(777))
    world.says(ANNA, QUESTION, where=777)
    await world.wait(55)
    world.types(TESS, where=777)
    await world.wait(100)
    assert replied_at(world) == [55 + 15]


async def test_the_time_held_back_does_not_count_against_the_chain(tmp_path: Path) -> None:
    world = await World.begin(
        tmp_path, script=Script(seconds={"generate": 8}), ai_response={"graph_timeout_seconds": 10}
    )
    world.says(ANNA, QUESTION)
    await world.wait(65)
    await types_for(world, TESS, 40)
    assert world.story == ["replied"]
    assert replied_at(world) == [68 + 20]


async def test_what_is_held_back_at_the_end_is_posted_when_its_time_has_come(tmp_path: Path) -> None:
    """Pitfall 8: the end of the stream waits, and no longer than an answer is held back."""
    world, _ = await asked(tmp_path)
    world.types(TESS)
    await world.wait(3)
    assert await world.close(20)
    assert replied_at(world) == [58 + 15]


async def test_what_is_held_back_when_the_grace_is_over_is_called_off(tmp_path: Path) -> None:
    """Pitfall 8."""
    world, _ = await asked(tmp_path)
    world.types(TESS)
    await world.wait(3)
    world.parts.services.in_flight.stop()
    await world.wait(100)
    assert world.story == ["cancelled: shutdown"]
