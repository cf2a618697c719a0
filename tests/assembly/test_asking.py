"""Single questions, answered outside of the graph."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from assembly.answering import library_of, open_answering, open_search
from model.conversations import Conversation, Role, Turn
from model.outcomes import Outcome, Reason
from services.assistant import Inquiry
from settings import Settings
from streams.answerer import RequestContext
from tests.hashing import HashingEmbedder


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    sources = tmp_path / "data" / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "install.md").write_text("# Install\n\nRun `lanternfish setup` and follow what it says.\n")
    (sources.parent / "index.txt").write_text("kb:install.md\nHow to install Lanternfish.\n")
    return Settings.model_validate({"search": {"embeddings": "none"}}).resolve_paths(tmp_path)


async def test_whoever_addresses_the_bot_is_told_something(settings: Settings) -> None:
    """Pitfall 61. And nobody else is, where nothing answers."""
    wine = Conversation((Turn(Role.USER, "Which wine goes with fish?", asked_now=True),))
    async with open_answering(settings) as answering:
        told = await answering.answerer.generate_reply(wine)
        left = await answering.answerer.generate_reply(wine, RequestContext(addressed=False))
    assert (told.should_reply, told.debug["level"]) == (True, "point")
    assert (left.should_reply, left.debug["reason"]) == (False, "not answerable")
    assert "level" not in left.debug


async def test_sources_are_found_without_an_answer(settings: Settings) -> None:
    def asked(text: str) -> Conversation:
        return Conversation((Turn(Role.USER, text, asked_now=True),))

    async with open_answering(settings) as answering:
        found = await answering.answerer.find(asked("How do I install Lanternfish with setup?"))
        chatter = await answering.answerer.find(asked("good morning all"))
    assert isinstance(found, Inquiry)
    assert (found.selected, found.sources, found.draft) == (("kb:install.md",), (), "")
    assert isinstance(chatter, Outcome)
    assert chatter.reason == Reason.NOT_ANSWERABLE


@pytest.mark.parametrize(
    ("pages", "lack"),
    [(0, []), (1, ["1 passage has no vector yet"]), (2, ["2 passages have no vector yet"])],
)
async def test_passages_that_have_no_vector_are_told(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    pages: int,
    lack: list[str],
) -> None:
    settings.kb.index_path.write_text("".join(f"kb:page-{page}.md\nA page.\n\n" for page in range(pages)))
    for page in range(pages):
        (settings.kb.sources_dir / f"page-{page}.md").write_text(f"# Page {page}\n\nOf fish number {page}.\n")
    async with open_search(settings, library_of(settings), None, read_only=False) as search:
        await search.refresh()  # as with an earlier --init-kb, which had no embedder

    def embedder_of(_: object, **_options: int) -> HashingEmbedder:
        return HashingEmbedder()

    monkeypatch.setattr("assembly.answering.embedder_of", embedder_of)
    async with open_answering(settings):
        pass
    warned = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warned == [
        f"{each}; without one, a passage is found by words alone; --init-kb makes vectors" for each in lack
    ]
