"""Who is answered when, and where: turns, threads that are used again, and how many at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from model.messages import Author
from services.discord.protocols import PostFailed
from tests.world import ANNA, BEN, HELP, TESS, Noticeboard, Script, World, answer, thread


def crowd(count: int) -> list[Author]:
    return [Author(1000 + number, f"person {number}", role_ids=()) for number in range(count)]


async def test_one_askers_questions_are_answered_one_after_another(tmp_path: Path) -> None:
    """Pitfall 27: and the second knows the first answer."""
    world = await World.begin(tmp_path, script=Script(seconds={"First": 100}))
    first = world.says(ANNA, "First?")
    await world.wait(61)
    world.says(ANNA, "Second?")
    await world.wait(300)
    assert world.replies == ["About: First?", "About: Second?"]
    assert [sent.place_id for sent in world.board.sent] == [first.id, first.id]
    assert len(world.board.threads) == 1
    assert world.script.asked[3].text.splitlines() == [
        "user: First?",
        "user: Second?",
        "assistant: About: First?",
    ]


async def test_different_askers_are_answered_side_by_side(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(seconds={"First": 100}))
    world.says(ANNA, "First?")
    world.says(BEN, "Second?")
    world.says(ANNA, "Third?", where=12)
    await world.wait(300)
    assert world.replies == ["About: Second?", "About: Third?", "About: First?"]
    assert [line.split('"reply_text": "')[1][:13] for line in world.lines] == [
        "About: First?",
        "About: Second",
        "About: Third?",
    ]


async def test_no_more_than_32_are_answered_at_once(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(seconds={"gate": 10}))
    for person in crowd(50):
        world.says(person, "How?")
    await world.wait(100)
    assert world.script.busiest == 32
    assert world.story == ["replied"] * 50


async def test_of_too_many_who_wait_the_oldest_is_given_up(tmp_path: Path) -> None:
    world = await World.begin(
        tmp_path,
        script=Script(seconds={"gate": 10}),
        ai_response={"max_concurrent_answers": 2, "max_waiting_answers": 3},
    )
    people = crowd(7)
    for person in people:
        world.says(person, "How?")
        await world.wait(0.1)
    await world.wait(200)
    given_up = [o.part.author for o in world.outcomes if o.reason == "overloaded"]
    assert given_up == people[2:4]
    assert world.story.count("replied") == 5


async def test_a_thousand_may_wait_by_default(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(seconds={"gate": 50}))
    for person in crowd(32 + 1000 + 1):
        world.says(person, "How?")
    await world.wait(61)
    assert world.story == ["skipped: overloaded"]
    assert not await world.close(0)
    assert world.tally.adds_up


async def test_the_thread_of_a_fresh_answer_is_used_again(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    first = world.says(ANNA, "First?")
    await world.wait(60 + 899)
    world.says(ANNA, "Second?")
    await world.wait(61)
    assert [sent.place_id for sent in world.board.sent] == [first.id, first.id]


async def test_the_thread_of_an_older_answer_is_not(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.says(ANNA, "First?")
    await world.wait(60 + 900)
    second = world.says(ANNA, "Second?")
    await world.wait(61)
    assert world.board.sent[1].place_id == second.id


@pytest.mark.parametrize("change", ["locked", "deleted", "joined"])
async def test_a_thread_that_is_locked_deleted_or_joined_by_the_team_is_left(tmp_path: Path, change: str) -> None:
    """Pitfall 34."""
    world = await World.begin(tmp_path)
    first = world.says(ANNA, "First?")
    await world.wait(61)
    match change:
        case "locked":
            world.opens(replace(thread(first.id), locked=True))
        case "deleted":
            world.closes(first.id)
        case _:
            world.says(TESS, "I take over.", where=first.id)
    await world.wait(300)
    second = world.says(ANNA, "Second?")
    await world.wait(61)
    assert world.board.sent[-1].place_id == second.id


async def test_another_askers_thread_is_not_used(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.says(ANNA, "First?")
    await world.wait(61)
    second = world.says(BEN, "Second?")
    await world.wait(61)
    assert world.board.sent[1].place_id == second.id


async def test_a_question_in_a_thread_is_answered_there_with_its_history(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    first = world.says(ANNA, "First?")
    await world.wait(61)
    second = world.says(ANNA, "And then?", where=first.id)
    await world.wait(61)
    sent = world.board.sent[1]
    assert (sent.place_id, sent.reply_to) == (first.id, second.id)
    assert world.script.asked[3].text.splitlines() == ["user: First?", "assistant: About: First?", "user: And then?"]


async def test_what_the_asker_writes_later_waits_for_its_own_turn(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(seconds={"First": 100}))
    place = world.opens(thread(77))
    world.says(ANNA, "First?", where=place.id)
    await world.wait(61)
    world.says(ANNA, "Second?", where=place.id)
    await world.wait(61)
    world.says(ANNA, "Third?", where=place.id)
    await world.wait(300)
    gates = [asked.text for asked in world.script.asked if asked.step == "gate"]
    assert "Third?" not in gates[1]
    assert world.replies == ["About: First?", "About: Second?", "About: Third?"]


async def test_a_refused_thread_means_that_nothing_is_posted(tmp_path: Path) -> None:
    """Pitfall 24."""
    board = Noticeboard(refusal=PostFailed("Missing Permissions"))
    world = await World.begin(tmp_path, board=board)
    world.says(ANNA, "How?")
    await world.wait(61)
    assert world.story == ["failed: PostFailed at reply"]
    assert (board.threads, board.sent) == ([], [])


async def test_long_answers_are_posted_in_pieces_with_stable_nonces(tmp_path: Path) -> None:
    """Pitfall 24."""
    text = "\n\n".join("word " * 150 for _ in range(3)).strip()
    world = await World.begin(tmp_path, script=Script(answers=[answer(text)]))
    message = world.says(ANNA, "How?", where=HELP)
    await world.wait(61)
    sent = world.board.sent
    assert len(sent) == 2
    assert all(len(piece.text) <= 2000 for piece in sent)
    assert [piece.nonce for piece in sent] == [f"{message.id:x}-0", f"{message.id:x}-1"]


async def test_a_reply_that_is_being_posted_is_finished_whatever_happens(tmp_path: Path) -> None:
    """Pitfall 24: half an answer helps nobody."""
    text = "\n\n".join("word " * 150 for _ in range(3)).strip()
    board = Noticeboard(seconds=10)
    world = await World.begin(tmp_path, script=Script(answers=[answer(text)]), board=board)
    message = world.says(ANNA, "How?")
    await world.wait(60 + 15)
    world.deletes(message)
    await world.wait(100)
    assert world.story == ["replied"]
    assert len(board.sent) == 2
