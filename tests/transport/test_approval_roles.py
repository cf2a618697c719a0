"""Answers that wait for a person, between several processes: whichever worker has the draft carries the press out."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator
from pathlib import Path

import pytest
from nats.aio.client import Client

from services.storage import parse_records
from tests.end_to_end.processes import STARTING, Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.model import Channel, User
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client
from tests.transport.test_roles import PAGE, WITHIN, until_handed_on
from transport.connection import streams_of
from transport.folder_log import read_in_all_scopes

__all__ = ["client", "discord_server"]

pytestmark = [pytest.mark.real_time, pytest.mark.slow]


@pytest.fixture
async def tess(discord_server: DiscordServer) -> User:
    return discord_server.add_member("tess")


@pytest.fixture
async def review(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("review")


@pytest.fixture
def config(tmp_path: Path, nats_server: NatsServer, tess: User, review: Channel) -> Generator[Path]:
    data = tmp_path / "data"
    sources = data / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "backups.md").write_text(PAGE)
    os.environ["APP__TRANSPORT"] = nats_server.url
    yield write_config(
        data,
        ai_response={"approval": "all"},
        discord={"review_channel_id": str(review.id), "team_member_ids": [str(tess.id)]},
    )
    del os.environ["APP__TRANSPORT"]


async def test_a_draft_outlives_its_worker_and_another_process_posts_it(
    client: Client, discord_server: DiscordServer, config: Path, tess: User, review: Channel
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    started = [await Process.start(discord_server, config, "--role", role) for role in ("knowledge", "gateway")]
    first = await Process.start(discord_server, config, "--role", "worker")
    started.append(first)
    try:
        await until_handed_on(client, "knowledge-base/index.txt")
        await discord_server.until(lambda: discord_server.gateway.sessions, WITHIN)
        while not discord_server.history(review):
            await discord_server.say(help_, ada, "how can I restore a backup?")
            with contextlib.suppress(TimeoutError):
                await discord_server.until(lambda: discord_server.history(review), 3)
        card = discord_server.history(review)[-1]
        answered_before = len(discord_server.posts)
        await first.kill()
        second = await Process.start(discord_server, config, "--role", "worker")
        started.append(second)
        told = list[str]()
        async with asyncio.timeout(WITHIN):
            while not told:
                # A press that comes too early is not answered, and does nothing.
                pressed = await discord_server.press(card, tess, "Post")
                with contextlib.suppress(TimeoutError):
                    await discord_server.until(lambda pressed=pressed: pressed.said, 4)
                told = pressed.texts
        assert told == ["It is posted."]
        answers = [post for post in discord_server.posts[answered_before:] if post.place is not review]
        assert len(answers) == 1
        assert "millrace --restore" in answers[0].content
        assert len(discord_server.history(review)) == 1
        second.terminate()
        code, said = await second.end(STARTING)
        assert code == 0, said
        assert "Traceback" not in said
        audited = (await read_in_all_scopes(streams_of(client), "state/audit.jsonl")).values()
        noted = [(row["by"], row["action"]) for content in audited for row in parse_records(content)]
        assert noted == [(str(tess.id), "post draft")]
    finally:
        for process in started:
            await process.kill()
