"""The knowledge base of a running bot."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from commands.live import LiveOptions
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import settings_of
from tests.loopback.discord_server import DiscordServer

pytestmark = pytest.mark.real_time


def names_in(index: Path) -> list[str]:
    lines = index.read_text().splitlines() if index.exists() else []
    return [line.removeprefix("kb:") for line in lines if line.startswith("kb:")]


async def holds(index: Path, *names: str) -> None:
    """Wait until the index names these, and no others."""
    async with asyncio.timeout(20):
        while names_in(index) != list(names):  # noqa: ASYNC110 (of a file)
            await asyncio.sleep(0.05)


async def test_the_index_is_built_at_the_start_and_follows_the_files(
    discord_server: DiscordServer, data: Path, hurried_discord: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = data / "knowledge-base"
    names = sorted(path.relative_to(base / "sources").as_posix() for path in (base / "sources").rglob("*.md"))
    (base / "index.txt").unlink()
    settings = settings_of(data, kb={"file_watch_debounce_seconds": 0.2})
    discord_server.add_channel("help")
    bot = RunningBot(discord_server, settings, LiveOptions())
    bot.begin(monkeypatch, learning=True)
    try:
        await bot.ready()
        await holds(base / "index.txt", *names)
        (base / "sources" / "zebras.md").write_text("# Zebras\n\nThey have stripes.\n")
        await holds(base / "index.txt", *names, "zebras.md")
        (base / "sources" / names[0]).unlink()
        await holds(base / "index.txt", *names[1:], "zebras.md")
    finally:
        assert await bot.stop() == 0
