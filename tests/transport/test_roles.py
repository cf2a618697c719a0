"""The program in several processes, between a real server of NATS and a loopback Discord."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest
from nats.aio.client import Client

from tests.end_to_end.bots import answers_to
from tests.end_to_end.processes import STARTING, Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.nats_server import NatsServer
from transport.connection import Address, connect
from transport.layout import clear

__all__ = ["discord_server"]

pytestmark = pytest.mark.real_time

WITHIN = 2 * STARTING
PAGE = "# Backups\n\nTo restore a backup, stop the program and run `millrace --restore backup.zip`.\n"


@pytest.fixture
async def client(nats_server: NatsServer) -> AsyncGenerator[Client]:
    connected = await connect(Address((nats_server.url,)), "test")
    await clear(connected)
    yield connected
    await connected.close()


@pytest.fixture
def config(tmp_path: Path, nats_server: NatsServer) -> Generator[Path]:
    data = tmp_path / "data"
    sources = data / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "backups.md").write_text(PAGE)
    os.environ["APP__TRANSPORT"] = nats_server.url
    yield write_config(data)
    del os.environ["APP__TRANSPORT"]


async def test_a_question_is_answered_through_four_processes(
    client: Client, discord_server: DiscordServer, config: Path
) -> None:
    help_ = discord_server.add_channel("help")
    roles = {
        role: await Process.start(discord_server, config, "--role", role)
        for role in ("gateway", "worker", "team", "knowledge")
    }
    try:
        await discord_server.until(lambda: discord_server.gateway.sessions, WITHIN)
        question = await discord_server.say(help_, discord_server.add_member("ada"), "how can I restore a backup?")
        await discord_server.until(lambda: discord_server.posts, WITHIN)
        assert len(answers_to(discord_server, question)) == 1
        for process in roles.values():
            process.terminate()
        for role, process in roles.items():
            code, said = await process.end(WITHIN)
            assert code == 0, f"{role}: {said}"
            assert "Traceback" not in said, f"{role}: {said}"
    finally:
        for process in roles.values():
            await process.kill()
