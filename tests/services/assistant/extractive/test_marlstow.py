"""How well the backend does without a model, in figures that may only get better."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final

import pytest

from assembly.graph_parts import library_of
from assembly.knowledge import temporary_index
from model.conversations import Conversation, Role, Turn
from services.assistant.extractive import ExtractiveAssistant
from services.knowledge.library import Library
from services.llm.usage import Usage
from settings import load
from tests.services.assistant.extractive.marlstow import SCENES, Scene

DEMO = Path(__file__).parents[4] / "examples" / "demo.yaml"
MOST_SOURCES: Final = 3

DEV_RIGHT, DEV_FALSE = 35, 0  # of 47 questions, and 83 messages
HELD_OUT_RIGHT, HELD_OUT_FALSE = 31, 4  # of 48 questions, and 79 messages


@pytest.fixture
def books(tmp_path: Path) -> Generator[Library]:
    """The demo's sources, and an index of them as the program makes it."""
    with temporary_index(load(DEMO).rehearsed_in(tmp_path)) as settings:
        yield library_of(settings)


def conversation(scene: Scene) -> Conversation:
    turns: list[Turn] = []
    for question, answer in scene.earlier:
        turns += [Turn(Role.USER, question), Turn(Role.ASSISTANT, answer)]
    return Conversation((*turns, *(Turn(Role.USER, text, asked_now=True) for text in scene.asked)))


async def answer(assistant: ExtractiveAssistant, books: Library, scene: Scene) -> str | None:
    """What the whole chain of steps says, as the operators run it."""
    said, usage = conversation(scene), Usage()
    gated = await assistant.gate(said, usage)
    if not (gated.is_question and gated.is_answerable):
        return None
    query = gated.rewrite_query or said.last_user_text
    chosen = await assistant.select(query, await books.index(), MOST_SOURCES, usage)
    sources = [await books.load(source_id) for source_id in chosen.selected_source_ids]
    return (await assistant.generate(said, query, sources, usage, max_chars=3000)).answer


def verdict(scene: Scene, given: str | None) -> str:
    if scene.words is None:
        return "silent" if given is None else "spoke"
    if given is None:
        return "missed"
    return "right" if scene.words in given else "wrong"


async def verdicts(scenes: Iterable[Scene], books: Library) -> Counter[str]:
    assistant = ExtractiveAssistant(books)
    return Counter([verdict(scene, await answer(assistant, books, scene)) for scene in scenes])


async def test_of_the_half_that_the_rules_are_tuned_on_no_answer_is_wrong_and_three_quarters_are_found(
    books: Library,
) -> None:
    found = await verdicts((scene for scene in SCENES if not scene.held_out), books)
    assert found["right"] >= DEV_RIGHT
    assert found["wrong"] + found["spoke"] <= DEV_FALSE


async def test_of_the_half_that_nobody_tuned_on_few_answers_are_wrong_and_three_fifths_are_found(
    books: Library,
) -> None:
    found = await verdicts((scene for scene in SCENES if scene.held_out), books)
    assert found["right"] >= HELD_OUT_RIGHT
    assert found["wrong"] + found["spoke"] <= HELD_OUT_FALSE


def test_both_halves_hold_questions_and_other_messages() -> None:
    halves = Counter((scene.held_out, scene.words is None) for scene in SCENES)
    assert min(halves[half, silent] for half in (False, True) for silent in (False, True)) >= 25
