"""The program in several processes, between a real server of NATS and a loopback Discord."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from tests.end_to_end.processes import STARTING, Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client
from transport.connection import streams_of
from transport.folder_log import path_token
from transport.streams import LOG

__all__ = ["client", "discord_server"]

pytestmark = pytest.mark.real_time

WITHIN = 2 * STARTING
PAGE = "# Backups\n\nTo restore a backup, stop the program and run `millrace --restore backup.zip`.\n"


@pytest.fixture
def config(tmp_path: Path, nats_server: NatsServer) -> Generator[Path]:
    data = tmp_path / "data"
    sources = data / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "backups.md").write_text(PAGE)
    os.environ["APP__TRANSPORT"] = nats_server.url
    yield write_config(data)
    del os.environ["APP__TRANSPORT"]


async def until_handed_on(client: Client, path: str) -> None:
    """Wait for a file of the knowledge in the log."""
    async with asyncio.timeout(WITHIN):
        while True:
            try:
                await streams_of(client).get_last_msg(LOG, f"log.knowledge.file.{path_token(path)}")
            except NotFoundError:
                await asyncio.sleep(0.05)
            else:
                return


async def test_a_question_is_answered_through_four_processes(
    client: Client, discord_server: DiscordServer, config: Path
) -> None:
    help_ = discord_server.add_channel("help")
    roles = {
        role: await Process.start(discord_server, config, "--role", role)
        for role in ("knowledge", "gateway", "worker", "team")
    }
    try:
        await until_handed_on(client, "knowledge-base/index.txt")
        await discord_server.until(lambda: discord_server.gateway.sessions, WITHIN)
        # A worker hears of the page a moment after the log has it.
        ada = discord_server.add_member("ada")
        while not discord_server.posts:
            await discord_server.say(help_, ada, "how can I restore a backup?")
            with contextlib.suppress(TimeoutError):
                await discord_server.until(lambda: discord_server.posts, 3)
        for process in roles.values():
            process.terminate()
        for role, process in roles.items():
            code, said = await process.end(WITHIN)
            assert code == 0, f"{role}: {said}"
            assert "Traceback" not in said, f"{role}: {said}"
    finally:
        for process in roles.values():
            await process.kill()
