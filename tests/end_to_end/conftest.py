"""What the end-to-end tests stand on: a loopback Discord, a loopback model, and bots to start against them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import pytest

from commands.live import LiveOptions
from settings import Settings
from tests.end_to_end.bots import QUIET_SECONDS, RunningBot
from tests.end_to_end.knowledge import write_knowledge
from tests.end_to_end.processes import Process
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server, hurried_discord
from tests.loopback.llm_server import LLMServer
from tests.readers import idle_readers, kept_readers

__all__ = ["discord_server", "hurried_discord", "idle_readers", "kept_readers"]


# It takes seconds on a busy machine, and belongs to no wait of a test.
import_module("services.llm.chat")


PLAIN = LiveOptions()


class Start(Protocol):
    async def __call__(
        self, options: LiveOptions = ..., *, ready: bool = ..., **sections: dict[str, Any]
    ) -> RunningBot:
        """A bot with the configuration's sections as given, over short times."""
        ...


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a knowledge base in it."""
    folder = tmp_path / "data"
    write_knowledge(folder)
    return folder


@pytest.fixture
async def llm_server() -> AsyncIterator[LLMServer]:
    async with LLMServer() as server:
        yield server


@pytest.fixture
async def start(
    discord_server: DiscordServer, data: Path, hurried_discord: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Start]:
    """Starts bots, one after another; stops those that the test leaves running."""
    begun: list[RunningBot] = []

    async def begin(
        options: LiveOptions = PLAIN,
        *,
        ready: bool = True,
        **sections: dict[str, Any],
    ) -> RunningBot:
        bot = RunningBot(discord_server, settings_of(data, **sections), options)
        begun.append(bot)
        bot.begin(monkeypatch)
        if ready:
            await bot.ready()
        return bot

    yield begin
    for bot in begun:
        if not bot.over:
            await bot.stop()
    await asyncio.sleep(0)


def settings_of(data: Path, **sections: dict[str, Any]) -> Settings:
    quick: dict[str, dict[str, Any]] = {
        "app": {"data_dir": str(data), "shutdown_grace_seconds": 5},
        "discord": {"message_batch_wait_seconds": QUIET_SECONDS, "team_active_seconds": 1},
        "search": {"embeddings": "none"},
        "kb": {"settle_minutes": 0},
    }
    merged = {name: quick.get(name, {}) | sections.get(name, {}) for name in {*quick, *sections}}
    return Settings.model_validate(merged).resolve_paths(data.parent)


def llm(server: LLMServer, **changes: Any) -> dict[str, Any]:
    """The value of `ai_response.llm` for a loopback model."""
    plain = {
        "base_url": server.base_url,
        "api_key": "sk-loopback",
        "model": "m",
        "timeout_seconds": 5,
        "max_retries": 0,
    }
    return plain | changes


Launch = Callable[..., Awaitable[Process]]


@pytest.fixture
async def launch(discord_server: DiscordServer) -> AsyncIterator[Launch]:
    started: list[Process] = []

    async def begin(config: Path, *arguments: str, **options: Any) -> Process:
        process = await Process.start(discord_server, config, *arguments, **options)
        started.append(process)
        return process

    yield begin
    for process in started:
        if not process.over:
            await process.kill()
