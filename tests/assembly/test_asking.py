"""Single questions, answered outside of the graph."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from assembly.answering import library_of, open_answering, open_search, server_libraries
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


REMEDY = "without one, a passage is found by words alone; --init-kb makes vectors"


def embedder_of(_: object) -> HashingEmbedder:
    return HashingEmbedder()


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


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

    monkeypatch.setattr("assembly.answering.embedder_of", embedder_of)
    async with open_answering(settings):
        pass
    assert warned(caplog) == [f"{each}; {REMEDY}" for each in lack]


async def test_passages_of_a_server_that_have_no_vector_are_told_together_with_the_shared_ones(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    both = Settings.model_validate({"search": {"embeddings": "none"}, "guilds": {311: {}}}).resolve_paths(tmp_path)
    own = both.servers[311]
    own.kb.sources_dir.mkdir(parents=True)
    (own.kb.sources_dir / "net.md").write_text("# Net\n\nMend the net with twine.\n")
    own.kb.index_path.write_text("kb:net.md\nHow to mend a net.\n")
    libraries = server_libraries(both)
    for each, library in ((both, libraries.default.own), (own, libraries[311].own)):
        async with open_search(each, library, None, read_only=False) as search:
            await search.refresh()  # as with an earlier --init-kb, which had no embedder
    monkeypatch.setattr("assembly.answering.embedder_of", embedder_of)
    async with open_answering(both, guild_id=311):
        pass
    assert warned(caplog) == [f"2 passages have no vector yet; {REMEDY}"]
