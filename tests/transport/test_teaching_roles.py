"""What the team teaches where several processes are the bot: one shows the form, another keeps the archive."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest
from nats.aio.client import Client

from services.storage import parse_records
from services.team import audit_entries
from tests.end_to_end.processes import ROOT
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.model import User
from tests.transport.test_people_roles import WITHIN, ada, client, config, helper, holding, playing, until_held
from transport.connection import streams_of
from transport.folder_log import read_in_all_scopes

__all__ = ["ada", "client", "config", "discord_server", "helper"]

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

ASKED = "Does a walrus fit into the large lantern?"
ANSWERED = "Only a folded one: use the large lantern, and open its lid."


async def test_a_worker_hands_what_is_taught_to_the_archive_which_files_it(
    client: Client, discord_server: DiscordServer, config: Path, helper: User, ada: User
) -> None:
    lanterns = discord_server.add_channel("lanterns")
    async with playing(discord_server, config, "gateway", "worker"):
        await discord_server.until(lambda: discord_server.gateway.sessions and discord_server.state.commands, WITHIN)
        form = await discord_server.call(lanterns, helper, "teach")
        await discord_server.until(lambda: form.form is not None, WITHIN)
        sent = await discord_server.submit(form, ASKED, ANSWERED)
        await discord_server.until(lambda: sent.said, WITHIN)
        nobody = "no process keeps the archive now; start one with --role team"
        assert sent.texts == [f"Taken: it is stored and filed as soon as the archive has it ({nobody})."]
        async with playing(discord_server, config, "team"):
            await until_held(client, b"topics", held=True)
            await until_held(client, ANSWERED.encode(), held=True)
            # A worker answers from its copy of the topics.
            await discord_server.say(lanterns, ada, ASKED)
            await discord_server.until(lambda: discord_server.posts, WITHIN)
    assert ANSWERED in discord_server.posts[0].content
    assert await holding(client, b"taught_")


async def everywhere(client: Client, path: str) -> list[bytes]:
    return list((await read_in_all_scopes(streams_of(client), path)).values())


async def kb(config: Path, *words: str) -> tuple[int | None, str]:
    """The exit code of `--kb`, and what it prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "app.py", "--config", str(config), "--kb", *words),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode, said.decode()


async def test_the_terminal_shows_teaches_and_corrects_what_another_process_keeps(
    client: Client, discord_server: DiscordServer, config: Path
) -> None:
    words = ("--question", ASKED, "--answer", ANSWERED)
    async with playing(discord_server, config, "team", "worker"):
        told = await kb(config, "add", *words)
        while " now; start one" in told[1]:  # they have not begun yet
            told = await kb(config, "add", *words)
        stored = re.search(r"Stored as (qa_[0-9._]+) and filed under ([a-z-]+)", told[1])
        assert stored is not None, told
        code, listed = await kb(config, "list")
        assert (code, stored[2] in listed) == (0, True)
        code, shown = await kb(config, "show", stored[2])
        assert (code, ANSWERED in shown, stored[1] in shown) == (0, True, True)
        code, removed = await kb(config, "remove", stored[1])
        assert (code, removed.startswith(f"{stored[1]} is removed from {stored[2]}")) == (0, True), removed
        code, again = await kb(config, "remove", stored[1])
        assert (code, again.count("\n")) == (2, 1)
        assert f"--kb remove: {stored[1]} was removed already" in again
        code, edited = await kb(
            config, "edit", stored[1], "--answer", "None fits any more: take the small lantern, and fold its lid."
        )
        assert code == 0
        assert "filed under" in edited
    decided = [
        entry[1:3] for entry in audit_entries(parse_records(b"".join(await everywhere(client, "state/audit.jsonl"))))
    ]
    assert decided[-3:] == [
        ("terminal", "teach"),
        ("terminal", "remove conversation"),
        ("terminal", "edit conversation"),
    ]
    code, nobody = await kb(config, "restore", stored[1])
    assert (code, nobody.count("\n")) == (1, 1)
    assert "no process keeps the archive now; start one with --role team" in nobody
