"""Pointing instead of silence, and what a selection and an answer are given, in the whole graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from clock import now
from model.conversations import Conversation
from services.assistant.answering import AnswerResult
from services.knowledge.library import Source
from services.llm.usage import Usage
from services.search.retrieval import Level
from tests.searching import ScriptedSearch, by_words, found, passage
from tests.world import ANNA, BEN, BOT, GUIDE, HELP, OTHER, PAGE, Script, Shelf, World, answer, forum_post, snowflake

AT_BOT: dict[str, Any] = {"mentions": ((BOT.id, BOT.name),)}
MAY_FIT = found(passage(GUIDE, "To install it, unpack the archive.", title="Guide"), level=Level.POINT)


def without_answer() -> Script:
    return Script(answers=[answer(None)] * 9)


async def test_whoever_mentions_the_bot_is_told_where_to_look_and_the_line_says_so(tmp_path: Path) -> None:
    """Pitfall 61."""
    world = await World.begin(tmp_path, script=without_answer(), search=ScriptedSearch(MAY_FIT))
    world.says(ANNA, "How do I install it?", **AT_BOT)
    await world.wait(61)
    assert world.story == ["replied"]
    assert world.replies == ["This may help:\n• *Guide*: To install it, unpack the archive."]
    await world.close()
    assert [json.loads(line)["level"] for line in world.lines] == ["point"]


async def test_whoever_mentions_the_bot_is_told_that_nothing_was_found(tmp_path: Path) -> None:
    """Pitfall 61."""
    world = await World.begin(tmp_path, script=without_answer(), search=ScriptedSearch())
    world.says(ANNA, "How do I install it?", **AT_BOT)
    world.says(BEN, "How do I install it?")
    await world.wait(61)
    assert sorted(world.story) == ["replied", "skipped: no answer in sources"]
    assert world.replies == ["I found nothing about this in the documentation."]


async def test_nobody_is_pointed_to_the_same_pages_twice(tmp_path: Path) -> None:
    """Pitfall 62."""
    world = await World.begin(tmp_path, script=without_answer(), search=ScriptedSearch(MAY_FIT))
    for _ in range(2):
        world.says(ANNA, "How do I install it?", **AT_BOT)
        await world.wait(61)
    assert world.story == ["replied", "skipped: unsure"]
    assert len(world.replies) == 1


async def test_a_question_that_was_deleted_and_asked_again_is_answered(tmp_path: Path) -> None:
    script = without_answer()
    script.seconds = {"generate": 5.0}
    world = await World.begin(tmp_path, script=script, search=ScriptedSearch(MAY_FIT))
    world.board.seconds = 5.0
    first = world.says(ANNA, "How do I install it?", **AT_BOT)
    await world.wait(66)
    world.deletes(first)
    await world.wait(60)
    world.says(ANNA, "How do I install it?", **AT_BOT)
    await world.wait(90)
    assert world.story == ["cancelled: deleted", "replied"]


async def test_a_forum_post_is_pointed_and_a_plain_question_only_where_that_is_wanted(tmp_path: Path) -> None:
    world = await World.begin(tmp_path, script=without_answer(), search=ScriptedSearch(MAY_FIT))
    world.says(ANNA, "How do I install it?")
    post_id = snowflake(now())
    world.opens(forum_post(post_id, ANNA))
    world.delivers(replace(world.writes(ANNA, "How do I install it?", where=post_id), id=post_id))
    await world.wait(61)
    assert sorted(world.story) == ["replied", "skipped: no answer in sources"]
    told = await World.begin(
        tmp_path / "other",
        script=without_answer(),
        search=ScriptedSearch(MAY_FIT),
        discord={"channels": {HELP: {"when_unsure": "point"}}},
    )
    told.says(ANNA, "How do I install it?")
    told.says(ANNA, "How do I install it?", where=OTHER)
    await told.wait(61)
    assert sorted(told.story) == ["replied", "skipped: no answer in sources"]


async def test_a_selection_sees_the_whole_request_and_the_entries_that_rank_best(tmp_path: Path) -> None:
    """Pitfall 53."""
    texts = {f"kb:{n}.md": f"Page {n}." for n in range(9)}
    search = ScriptedSearch(found(passage("kb:7.md", "x", "Seven", "Setup"), passage("kb:3.md", "y")))
    script = Script(picks=["kb:7.md"])
    world = await World.begin(
        tmp_path, script=script, shelf=Shelf(texts=texts), search=search, ai_response={"max_index_entries": 2}
    )
    world.says(ANNA, "How do I set up page seven?")
    world.says(ANNA, "thanks!")
    await world.wait(61)
    assert script.requests == ["How do I set up page seven?\nthanks!"]
    assert [(each.id, each.heading) for each in script.entries[0]] == [("kb:3.md", ""), ("kb:7.md", "Seven › Setup")]


async def test_sources_larger_than_the_room_for_them_are_shown_in_part(tmp_path: Path) -> None:
    """Pitfall 54."""
    sections = "".join(f"## Part {n}\n\n{f'Word{n} stands here. ' * 40}\n\n" for n in range(40))
    shelf = Shelf(texts={GUIDE: f"# Guide\n\n{sections}", PAGE: "The page."})
    seen: list[str] = []

    class Reader(Script):
        async def generate(
            self, conversation: Conversation, query: str, sources: Sequence[Source], usage: Usage, **more: Any
        ) -> AnswerResult:
            seen.extend(source.text for source in sources)
            return await super().generate(conversation, query, sources, usage, **more)

    with closing(by_words(shelf)) as search:
        world = await World.begin(
            tmp_path,
            script=Reader(picks=[GUIDE, PAGE]),
            shelf=shelf,
            search=search,
            ai_response={"max_source_chars": 3_000},
        )
        world.says(ANNA, "What about word31?")
        await world.wait(61)
    assert world.story == ["replied"]
    assert "Word31 stands here." in seen[0]
    assert sum(map(len, seen)) <= 3_000
