"""Fixtures around the loopback Discord. A conftest that wants them imports them by name."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import discord.client
import discord.http
import pytest

from tests.loopback.discord_server import DiscordServer

SHORT_SECONDS = 0.005


@pytest.fixture
async def discord_server() -> AsyncIterator[DiscordServer]:
    """A running server that every discord.py client of the test talks to."""
    async with DiscordServer() as server:
        with server.routes():
            yield server


class _Hurried:
    """asyncio, except that sleeping is short."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, SHORT_SECONDS))


@pytest.fixture
def hurried_discord(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortens the waits that discord.py has built in and no argument changes.

    They are 5 s before every IDENTIFY but the first, 1 to 9 s after a 5xx, and the back-off between connections.
    Only the name `asyncio` in the two modules that wait so is replaced.
    """
    for module in (discord.client, discord.http):
        monkeypatch.setattr(module, "asyncio", _Hurried())
