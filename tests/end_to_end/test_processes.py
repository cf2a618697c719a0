"""Signals, exit codes, crashes and the lock: what only a process of its own shows."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from services.data_folder import DataFolder
from tests.end_to_end.bots import answers_to
from tests.end_to_end.processes import Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Channel, Message

pytestmark = pytest.mark.real_time

STARTING = 30.0
"""Seconds that the imports of a process may take on a busy machine."""

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


async def ask(server: DiscordServer, channel: Channel, name: str) -> Message:
    return await server.say(channel, server.add_member(name), "how can I restore a backup?")


def each_answered_once(server: DiscordServer, *questions: Message) -> bool:
    return len(server.posts) == len(questions) and all(len(answers_to(server, each)) == 1 for each in questions)


async def test_a_stop_drains_or_cuts_off_and_the_next_life_takes_up_exactly_what_is_left(
    launch: Launch, discord_server: DiscordServer, data: Path
) -> None:
    """Pitfalls 8, 25 and 42."""
    help_, other = discord_server.add_channel("help"), discord_server.add_channel("other")
    config = write_config(data, app={"shutdown_grace_seconds": 1})
    first = await launch(config)
    await discord_server.until(lambda: discord_server.gateway.sessions, STARTING)

    second = await launch(config)
    code, said = await second.end(STARTING)
    assert code == 2
    assert said.splitlines()[-1].startswith("app.py: ")
    assert f"app.py (process {first.pid}, since " in said
    assert "Traceback" not in said

    answered = await ask(discord_server, help_, "ada")
    await discord_server.until(lambda: discord_server.posts, STARTING)
    discord_server.fail_next("POST", "/threads$", delay=math.inf, times=2)
    # In two channels: discord.py asks for one thread at a time in each.
    cut_off = [await ask(discord_server, help_, "bob"), await ask(discord_server, other, "cleo")]
    await discord_server.until(lambda: discord_server.count("POST", "/threads$") == 3, STARTING)
    first.terminate()
    code, said = await first.end(STARTING)
    assert code == 1
    assert "2 messages still in hand after 1 s are left for catch-up" in said
    assert "Traceback" not in said
    assert each_answered_once(discord_server, answered)

    third = await launch(write_config(data, app={"shutdown_grace_seconds": 20}))
    await discord_server.until(lambda: len(discord_server.posts) == 3, STARTING)
    draining = await ask(discord_server, help_, "dora")
    await discord_server.until(lambda: help_.last_message_id == draining.id)
    third.terminate()
    code, said = await third.end(STARTING)
    assert code == 0, said
    assert each_answered_once(discord_server, answered, *cut_off, draining)


async def test_killed_between_posting_and_saving_it_answers_the_rest_and_nothing_twice(
    launch: Launch, discord_server: DiscordServer, data: Path
) -> None:
    """Pitfalls 8 and 25."""
    help_, folder = discord_server.add_channel("help"), DataFolder(data)
    config = write_config(data)
    first = await launch(config)
    # From when it has been here once, nothing may be missed.
    await discord_server.until(folder.seen.exists, STARTING)
    marks = folder.seen.read_bytes()
    answered = await ask(discord_server, help_, "ada")
    await discord_server.until(lambda: discord_server.posts, STARTING)
    discord_server.fail_next("POST", "/threads$", delay=math.inf)
    lost = await ask(discord_server, help_, "bob")
    await discord_server.until(lambda: discord_server.count("POST", "/threads$") == 2, STARTING)
    await first.kill()
    # Whatever it had time for: neither the mark nor the note of the post was written.
    folder.seen.write_bytes(marks)
    folder.posts.unlink(missing_ok=True)

    second = await launch(config)
    await discord_server.until(lambda: answers_to(discord_server, lost), STARTING)
    second.terminate()
    code, said = await second.end(STARTING)
    assert code == 0, said
    assert each_answered_once(discord_server, answered, lost)
    assert str(help_.id) in json.loads(folder.seen.read_bytes())


async def test_a_wrong_token_is_one_line_and_exit_code_2(
    launch: Launch, discord_server: DiscordServer, data: Path
) -> None:
    """Pitfall 22: and the token is not in it."""
    process = await launch(write_config(data), token="not.the.token")
    code, said = await process.end(STARTING)
    assert code == 2
    assert said.splitlines()[-1].startswith("app.py: Discord refuses the token (discord.token). Reset")
    assert "Traceback" not in said
    assert "not.the.token" not in said
