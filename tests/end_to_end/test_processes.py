"""Signals, exit codes, crashes and the lock: what only a process of its own shows."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Launch
from tests.end_to_end.processes import STARTING, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Channel, Message

pytestmark = pytest.mark.real_time


async def ask(server: DiscordServer, channel: Channel, name: str) -> Message:
    return await server.say(channel, server.add_member(name), "how can I restore a backup?")


def each_answered_once(server: DiscordServer, *questions: Message) -> bool:
    return len(server.posts) == len(questions) and all(len(answers_to(server, each)) == 1 for each in questions)


@pytest.mark.slow
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
    assert "2 messages still in flight after 1 s, left for catch-up" in said
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
