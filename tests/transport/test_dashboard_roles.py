"""The dashboard of a worker corrects what other processes keep."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import aiohttp
import pytest
from nats.aio.client import Client

from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.model import User
from tests.transport.test_people_roles import WITHIN, ada, client, config, helper, playing
from tests.transport.test_teaching_roles import ANSWERED, ASKED, kb

__all__ = ["ada", "client", "config", "discord_server", "helper"]

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

UNKNOWN = "How many walruses fit into the cellar?"


class Browser:
    """Somebody at the dashboard."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session, self._origin = session, f"http://127.0.0.1:{port}"

    async def page(self, path: str) -> str:
        """A page; empty before there is any."""
        try:
            async with self._session.get(f"{self._origin}{path}") as response:
                return await response.text()
        except aiohttp.ClientConnectorError:
            return ""

    async def until(self, path: str, pattern: str) -> str:
        """Look until the page has it, and return its first group."""
        async with asyncio.timeout(WITHIN):
            while (found := re.search(pattern, await self.page(path))) is None:  # noqa: ASYNC110 (of other processes)
                await asyncio.sleep(0.1)
        return found[1]

    async def send(self, path: str, shown_on: str) -> tuple[int, str]:
        key = await self.until(shown_on, r'name="key" value="(\w+)"')
        headers = {"Origin": self._origin}
        async with self._session.post(f"{self._origin}{path}", data={"key": key}, headers=headers) as response:
            return response.status, await response.text()


async def test_gaps_are_dismissed_and_conversations_removed_where_they_are_kept(
    client: Client,
    discord_server: DiscordServer,
    config: Path,
    helper: User,
    ada: User,
    unused_tcp_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cellar = discord_server.add_channel("cellar")
    cookies = aiohttp.CookieJar(unsafe=True)  # also of an address without a name
    async with aiohttp.ClientSession(cookie_jar=cookies) as session, playing(discord_server, config, "gateway", "team"):
        browser = Browser(session, unused_tcp_port)
        of_worker = {"APP__METRICS__PORT": str(unused_tcp_port), "APP__DASHBOARD__ENABLED": "true"}
        for name, value in of_worker.items():
            monkeypatch.setitem(os.environ, name, value)
        async with playing(discord_server, config, "worker"):
            for name in of_worker:
                monkeypatch.delitem(os.environ, name)
            await discord_server.until(lambda: discord_server.gateway.sessions, WITHIN)
            await discord_server.say(cellar, ada, UNKNOWN)
            gap = await browser.until("/gaps", r'action="/gaps/(\w+)/dismiss"')
            assert (await browser.send(f"/gaps/{gap}/dismiss", "/gaps"))[0] == 200
            await browser.until("/gaps", rf'action="/gaps/({gap})/restore"')
            code, told = await kb(config, "add", "--question", ASKED, "--answer", ANSWERED)
            topic = re.search(r"Stored as (qa_[0-9._]+) and filed under ([a-z-]+)", told)
            assert (code, topic is not None) == (0, True), told
            assert topic is not None
            remove = await browser.until(
                f"/knowledge/topics/{topic[2]}", rf'href="(/knowledge/pairs/{topic[1]}/remove)"'
            )
            status, said = await browser.send(remove, remove)
            assert (status, f"{topic[1]} is removed from {topic[2]}" in said) == (200, True)
            await browser.until("/knowledge", rf'href="(/knowledge/pairs/{topic[1]}/restore)"')
