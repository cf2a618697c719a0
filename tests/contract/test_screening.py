"""Batches, duplicates, order of arrival, files, and what people opted out of."""

# pyright: reportPrivateUsage=false
# Whether memory is given back cannot be seen from outside.

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.world import (
    ANNA,
    BEN,
    HELP,
    OTHER,
    START,
    TESS,
    Script,
    World,
    forum_post,
    picture,
    snowflake,
    thread,
)

THREAD = snowflake(START - 1000)


async def test_quick_messages_get_one_answer(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    for text in ("Hi", "I have a question", "How do I install it?"):
        last = world.says(ANNA, text)
        await world.wait(59)
    await world.wait(2)
    assert world.story == ["replied"]
    assert world.outcomes[0].part.last == last
    assert world.replies == ["About: Hi\nI have a question\nHow do I install it?"]


async def test_other_authors_do_not_hold_a_window_open(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    first = world.says(ANNA, "How?")
    await world.wait(59)
    world.says(BEN, "Why?")
    await world.wait(2)
    assert [outcome.part.last for outcome in world.outcomes] == [first]


async def test_a_steady_writer_is_answered_all_the_same(tmp_path: Path) -> None:
    """Pitfall 33."""
    world = await World.begin(tmp_path, discord={"message_batch_max_seconds": 120})
    for number in range(5):
        world.says(ANNA, f"line {number}")
        await world.wait(30)
    assert [len(outcome.part.messages) for outcome in world.outcomes] == [4]


async def test_a_message_exactly_on_the_deadline_opens_a_new_window(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.says(ANNA, "First?")
    await world.wait(60)
    world.says(ANNA, "Second?")
    await world.wait(61)
    assert [outcome.part.messages[0].text for outcome in world.outcomes] == ["First?", "Second?"]


async def test_the_same_event_twice_gives_one_answer(tmp_path: Path) -> None:
    """Pitfall 25: at once, while it is answered, and long after."""
    world = await World.begin(tmp_path)
    message = world.says(ANNA, "How?")
    world.delivers(message)
    await world.wait(61)
    world.delivers(message)
    await world.wait(61)
    assert world.story == ["ignored: duplicate", "replied", "ignored: duplicate"]
    assert len(world.replies) == 1


async def test_messages_that_arrive_out_of_order_are_read_in_order(tmp_path: Path) -> None:
    """Pitfall 25."""
    world = await World.begin(tmp_path)
    first = world.writes(ANNA, "How do I")
    second = world.writes(ANNA, "install it?")
    world.delivers(second)
    world.delivers(first)
    await world.wait(61)
    assert world.replies == ["About: How do I\ninstall it?"]


async def test_a_question_is_not_lost_to_a_reply_to_somebody_else_in_the_same_window(tmp_path: Path) -> None:
    """Pitfalls 2 and 26."""
    world = await World.begin(tmp_path)
    hello = world.says(BEN, "Good morning", where=HELP, mentions=())
    world.says(ANNA, "How do I install it?")
    world.says(ANNA, "Good morning Ben", to=hello)
    world.says(ANNA, "and a nice day")
    await world.wait(61)
    assert sorted(world.story) == ["ignored: not addressed ×2", "replied", "replied"]
    assert "About: How do I install it?" in world.replies


async def test_a_team_answer_in_two_messages_is_captured_whole(tmp_path: Path) -> None:
    """Pitfall 1."""
    world = await World.begin(tmp_path)
    question = world.says(ANNA, "Why?")
    await world.wait(61)
    world.says(TESS, "Good question.")
    world.says(TESS, "Because.", to=question)
    world.says(TESS, "Always.")
    await world.wait(61)
    assert [len(capture.part.messages) for capture in world.captures if capture.part is not None] == [3]


async def test_a_message_with_only_a_file_is_heard(tmp_path: Path) -> None:
    """Pitfall 32."""
    world = await World.begin(tmp_path)
    world.says(ANNA, "", attachments=(replace(picture(), filename="log.txt", content_type=None),))
    await world.wait(61)
    assert world.story == ["replied"]
    assert "[file: log.txt, 12 kB]" in world.script.asked[0].text


async def test_an_image_leaves_a_placeholder_when_images_are_off(tmp_path: Path) -> None:
    """Pitfall 3."""
    world = await World.begin(tmp_path)
    world.says(ANNA, "What is this?", attachments=(picture(),))
    await world.wait(61)
    assert world.story == ["replied"]
    assert "[image: screen.png]" in world.script.asked[0].text


@pytest.mark.parametrize("marker", ["!nobot", "!NoBot", "!NOBOT"])
async def test_the_marker_keeps_a_message_from_every_model(tmp_path: Path, marker: str) -> None:
    world = await World.begin(tmp_path)
    world.says(ANNA, f"{marker} How?")
    await world.wait(61)
    assert world.story == ["ignored: opted out"]
    assert world.script.asked == []


async def test_the_marker_counts_when_it_is_edited_in(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    message = world.says(ANNA, "How?")
    world.says(ANNA, "And why?")
    world.edits(message, "How? !nobot")
    world.edits(message, "How? !nobot")
    await world.wait(61)
    assert world.story == ["ignored: opted out", "replied"]
    assert world.replies == ["About: And why?"]


async def test_marked_messages_are_withheld_from_the_context_of_others(tmp_path: Path) -> None:
    world = await World.begin(tmp_path)
    world.opens(thread(THREAD))
    world.says(BEN, "!nobot my secret", where=THREAD)
    shown = world.says(BEN, "another story", where=THREAD)
    await world.wait(61)
    world.edits(shown, "!nobot another story")
    world.says(ANNA, "How?", where=THREAD)
    await world.wait(61)
    assert world.story == ["ignored: opted out", "replied", "replied"]
    assert world.script.asked[-1].text.splitlines()[1:] == ["user: How?"]
    assert "my secret" not in "".join(asked.text for asked in world.script.asked)


@pytest.mark.parametrize(
    ("title", "text", "asked"),
    [
        (
            "How do I restore a backup?",
            "I have tried for an hour.",
            "How do I restore a backup?\nI have tried for an hour.",
        ),
        ("Restore a backup", "How do I restore a backup?", "How do I restore a backup?"),
        ("My token is password=hunter2hunter2", "Why?", "My token is password=[redacted: secret]\nWhy?"),
        ("!NoBot a story", "Why?", None),
    ],
)
async def test_the_title_of_a_forum_post_is_asked_with_its_first_message(
    tmp_path: Path, title: str, text: str, asked: str | None
) -> None:
    world = await World.begin(tmp_path)
    first = world.writes(ANNA, text)
    world.opens(replace(forum_post(first.id, ANNA), name=title))
    world.delivers(replace(first, channel_id=first.id))
    await world.wait(61)
    world.says(ANNA, "and then?", where=first.id)
    await world.wait(61)
    if asked is None:
        assert world.story[0] == "ignored: opted out"
        assert "story" not in "".join(each.text for each in world.script.asked)
    else:
        assert world.replies[0] == f"About: {asked}"
        assert world.replies[1] == "About: and then?"


async def test_people_who_opted_out_are_left_alone(tmp_path: Path) -> None:
    state = tmp_path / "data" / "state"
    state.mkdir(parents=True)
    (state / "opt-outs.json").write_text(json.dumps([str(BEN.id)]))
    world = await World.begin(tmp_path)
    world.opens(thread(THREAD))
    world.says(BEN, "Why?", where=THREAD)
    world.says(ANNA, "How?", where=THREAD)
    await world.wait(61)
    assert world.story == ["ignored: opted out", "replied"]
    assert "Why?" not in world.script.asked[0].text


async def test_secrets_do_not_reach_the_model(tmp_path: Path) -> None:
    """Pitfall 22."""
    world = await World.begin(tmp_path)
    world.says(ANNA, "Why does password=hunter2hunter2 fail?")
    await world.wait(61)
    assert "hunter2" not in "".join(asked.text for asked in world.script.asked)


async def test_members_with_a_team_role_are_the_team(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, discord={"team_role_ids": ["55"]})
    helper = replace(BEN, role_ids=(54, 55))
    world.says(helper, "So.", to=world.says(ANNA, "How?"))
    await world.wait(61)
    assert sorted(world.story) == ["cancelled: team answered", "captured"]


async def test_memory_is_free_of_what_has_its_end(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=Script(seconds={"generate": 10}))
    world.opens(thread(THREAD))
    question = world.says(ANNA, "How?")
    world.delivers(question)
    world.deletes(world.says(BEN, "Oh", where=THREAD))
    world.says(BEN, "!nobot")
    world.says(TESS, "So.", to=world.says(BEN, "Why?", where=OTHER))
    world.says(BEN, "There?", where=THREAD)
    await world.wait(300)
    in_flight = world.parts.services.in_flight
    assert len(in_flight) == 0
    assert not in_flight._tokens
    assert not in_flight._in_threads
    assert all(not mark.open and not mark.done for mark in world.parts.services.watermarks.marks().values())
