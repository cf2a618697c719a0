"""How well the backend does without a model, in figures that may only get better."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from assembly.answering import library_of
from assembly.sources import temporary_index
from model.conversations import Conversation, Role, Turn
from operators.pointing import RecentReplies
from services.assistant.extractive import ExtractiveAssistant
from services.knowledge import Library, LibrarySearch
from services.llm import Usage
from services.search import PassageStore
from services.search.embedding import PackagedEmbedder
from settings import load
from tests.services.assistant.extractive.marlstow import SCENES, Scene

EXAMPLES = Path(__file__).parents[4] / "examples"
MAX_SOURCES: Final = 3
MAX_POINTERS: Final = 3


class Backend:
    """The extractive assistant over the demo's sources."""

    def __init__(self, books: Library, search: LibrarySearch, mode: str) -> None:
        self.books, self.search, self.mode = books, search, mode
        self.assistant = ExtractiveAssistant(search)

    async def answer(self, scene: Scene) -> str | None:
        """What the whole chain of steps says, as the operators run it, to somebody who has not addressed the bot: the
        earlier questions have their answers, and the same answer is not given again.
        """
        repeats = RecentReplies()
        for question, _ in scene.earlier:
            if (given := await self.reply(Scene((question,)))) is not None:
                repeats.remember(1, given, 0)
        given = await self.reply(scene)
        return given if given is None or not repeats.was_sent(1, given, 60) else None

    async def reply(self, scene: Scene) -> str | None:
        said, usage = conversation(scene), Usage()
        gated = await self.assistant.gate(said, usage)
        if not (gated.is_question and gated.is_answerable):
            return None
        query = gated.rewrite_query or said.last_user_text
        chosen = await self.assistant.select(query, said.asked_text, (), MAX_SOURCES, usage)
        sources = [await self.books.load(source_id) for source_id in chosen.selected_source_ids]
        return (await self.assistant.generate(said, query, sources, usage, max_chars=3000)).answer

    async def points_to(self, scene: Scene) -> bool:
        """Whether the words are in a section that somebody who addressed the bot is shown or pointed to."""
        said, usage = conversation(scene), Usage()
        gated = await self.assistant.gate(said, usage, addressed=True)
        found = await self.search.find(gated.rewrite_query or said.last_user_text)
        sections = [await self.search.section(hit.passage) for hit in found.pages[:MAX_POINTERS]]
        return any((scene.words or "") in kept.text for section in sections for kept in section)

    async def verdicts(self, scenes: Iterable[Scene]) -> Counter[str]:
        return Counter([verdict(scene, await self.answer(scene)) for scene in scenes])


class Figures(NamedTuple):
    """Of one half of the scenes: right answers at least, wrong ones at most, right sections pointed to, and answers to
    what wants none.
    """

    right: int
    wrong: int
    pointed: int
    spoke: int = 0


# Of 47 questions among 83 messages that the rules were once tuned on, and of 48 among 79 that nobody tuned on. When
# shared words decided, 35 and 31 were right and 0 and 4 wrong: since then confidence decides, which was fitted to other
# documentations, and nothing is pointed out to those who have not addressed the bot.
# Some of those that are wrong by words alone quote the right page, and not the very line that is asked for.
WANTED: Final = {
    ("words", False): Figures(33, 4, 41),
    ("words", True): Figures(30, 0, 42),
    ("meaning", False): Figures(37, 0, 42),
    ("meaning", True): Figures(38, 1, 43, 1),
}


@pytest.fixture(params=["words", "meaning"])
async def backend(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Backend]:
    """The demo's sources, and an index of them as the program makes it, whatever index is in its folder."""
    embedder = PackagedEmbedder() if request.param == "meaning" else None
    demo = shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("data")) / "demo.yaml"
    with temporary_index(load(demo)) as settings:
        books = library_of(settings)
        search = LibrarySearch(books, PassageStore(None), PassageStore(None), embedder)
        await search.refresh()
        await search.embed()
        yield Backend(books, search, request.param)
        search.close()


def conversation(scene: Scene) -> Conversation:
    turns: list[Turn] = []
    for question, answer in scene.earlier:
        turns += [Turn(Role.USER, question), Turn(Role.ASSISTANT, answer)]
    return Conversation((*turns, *(Turn(Role.USER, text, asked_now=True) for text in scene.asked)))


def verdict(scene: Scene, given: str | None) -> str:
    if scene.words is None:
        return "silent" if given is None else "spoke"
    if given is None:
        return "missed"
    return "right" if scene.words in given else "wrong"


@pytest.mark.slow
@pytest.mark.parametrize("held_out", [False, True], ids=["tuned", "held_out"])
async def test_answers_are_right_or_missing_and_the_right_section_is_nearly_always_at_hand(
    backend: Backend,
    held_out: bool,
) -> None:
    """Pitfall 55: people ask in their own words."""
    scenes = [scene for scene in SCENES if scene.held_out is held_out]
    wanted = WANTED[backend.mode, held_out]
    found = await backend.verdicts(scenes)
    assert found["right"] >= wanted.right
    assert found["wrong"] <= wanted.wrong
    assert found["spoke"] <= wanted.spoke
    assert sum([await backend.points_to(scene) for scene in scenes if scene.words]) >= wanted.pointed


def test_both_halves_hold_questions_and_other_messages() -> None:
    halves = Counter((scene.held_out, scene.words is None) for scene in SCENES)
    assert min(halves[half, silent] for half in (False, True) for silent in (False, True)) >= 25
