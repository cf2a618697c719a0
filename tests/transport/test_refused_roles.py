"""A gateway that Discord refuses has the worker that tells people tell them, before it ends."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from aiohttp import web
from nats.aio.client import Client

from tests.end_to_end.processes import Process
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.model import User
from tests.loopback.web_server import WebServer, status
from tests.transport.test_people_roles import PARTITIONS, WITHIN, client, config, helper, owned, playing

__all__ = ["client", "config", "discord_server", "helper"]

pytestmark = [pytest.mark.real_time, pytest.mark.slow]


async def test_a_refused_gateway_is_told_once_by_the_worker_with_partition_0(
    client: Client, discord_server: DiscordServer, config: Path, helper: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = list[str]()

    async def take(request: web.Request) -> web.StreamResponse:
        texts.append(json.loads(await request.text())["text"])
        return await status(204)(request)

    async with WebServer() as server:
        server.paths["/hook"] = take
        monkeypatch.setitem(os.environ, "APP__ALERTS__WEBHOOK_URL", f"{server.origin}/hook")
        async with playing(discord_server, config, "worker"):
            while (await owned(client)).total() < PARTITIONS:
                assert texts == []
            for _ in range(2):
                gateway = await Process.start(discord_server, config, "--role", "gateway", token="not.the.token")
                code, said = await gateway.end(WITHIN)
                assert code == 2
                assert said.splitlines()[-1].startswith("app.py: Discord refuses the token (discord.token). Reset")
    [text] = texts
    assert text.startswith("Millrace: Discord refuses the bot, since ")
    assert "Discord refuses the token (discord.token). Reset" in text
    assert "not.the.token" not in text
