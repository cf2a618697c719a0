"""Single questions, answered outside of the graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from assembly.asking import open_answering
from model.conversations import Conversation, Role, Turn
from settings import Settings
from streams.answers import RequestContext


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    sources = tmp_path / "data" / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "install.md").write_text("# Install\n\nRun `lanternfish setup` and follow what it says.\n")
    (sources.parent / "index.txt").write_text("kb:install.md\nHow to install Lanternfish.\n")
    return Settings.model_validate({"search": {"embeddings": "none"}}).placed(tmp_path)


async def test_whoever_addresses_the_bot_is_told_something(settings: Settings) -> None:
    """Pitfall 61. And nobody else is, where nothing answers."""
    wine = Conversation((Turn(Role.USER, "Which wine goes with fish?", asked_now=True),))
    async with open_answering(settings) as answering:
        told = await answering.answerer.generate_reply(wine)
        left = await answering.answerer.generate_reply(wine, RequestContext(addressed=False))
    assert (told.should_reply, told.debug["level"]) == (True, "point")
    assert (left.should_reply, left.debug["reason"]) == (False, "not answerable")
    assert "level" not in left.debug
