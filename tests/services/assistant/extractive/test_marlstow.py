"""How well the backend does without a model, in figures that may only get better."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Final

import pytest

from assembly.graph_parts import library_of
from assembly.knowledge import temporary_index
from model.conversations import Conversation, Role, Turn
from services.assistant import Repeats
from services.assistant.extractive import ExtractiveAssistant
from services.knowledge import Library, LibrarySearch
from services.llm import Usage
from services.search import PassageStore
from services.search.embedding import PackagedEmbedder, installed
from settings import load
from tests.services.assistant.extractive.marlstow import Scene

DEMO = Path(__file__).parents[4] / "examples" / "demo.yaml"
MOST_SOURCES: Final = 3
MOST_POINTERS: Final = 3


class Backend:
    """The extractive assistant over the demo's sources."""

    def __init__(self, books: Library, search: LibrarySearch) -> None:
        self.books, self.search = books, search
        self.assistant = ExtractiveAssistant(search)

    async def answer(self, scene: Scene) -> str | None:
        """What the whole chain of steps says, as the operators run it, to somebody who has not addressed the bot: the
        earlier questions have their answers, and the same answer is not given again.
        """
        repeats = Repeats()
        for question, _ in scene.earlier:
            if (given := await self.reply(Scene((question,)))) is not None:
                repeats.told(1, given, 0)
        given = await self.reply(scene)
        return given if given is None or not repeats.was_told(1, given, 60) else None

    async def reply(self, scene: Scene) -> str | None:
        said, usage = conversation(scene), Usage()
        gated = await self.assistant.gate(said, usage)
        if not (gated.is_question and gated.is_answerable):
            return None
        query = gated.rewrite_query or said.last_user_text
        chosen = await self.assistant.select(query, said.asked_text, (), MOST_SOURCES, usage)
        sources = [await self.books.load(source_id) for source_id in chosen.selected_source_ids]
        return (await self.assistant.generate(said, query, sources, usage, max_chars=3000)).answer

    async def points_to(self, scene: Scene) -> bool:
        """Whether the words are in a section that somebody who addressed the bot is shown or pointed to."""
        said, usage = conversation(scene), Usage()
        gated = await self.assistant.gate(said, usage, addressed=True)
        found = await self.search.find(gated.rewrite_query or said.last_user_text)
        sections = [await self.search.section(hit.kept) for hit in found.pages[:MOST_POINTERS]]
        return any((scene.words or "") in kept.text for section in sections for kept in section)

    async def verdicts(self, scenes: Iterable[Scene]) -> Counter[str]:
        return Counter([verdict(scene, await self.answer(scene)) for scene in scenes])


@pytest.fixture(params=["words", "meaning"])
async def backend(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Backend]:
    """The demo's sources, and an index of them as the program makes it."""
    if request.param == "meaning" and not installed():
        pytest.skip("the packaged embedder is not installed")
    embedder = PackagedEmbedder() if request.param == "meaning" else None
    with temporary_index(load(DEMO).rehearsed_in(tmp_path)) as settings:
        books = library_of(settings)
        search = LibrarySearch(books, PassageStore(None), PassageStore(None), embedder)
        await search.refresh()
        await search.embed()
        yield Backend(books, search)
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
