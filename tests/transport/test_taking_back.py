"""What people take back is gone from what the team taught, also where one process sees it and another one files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from services.team import REMOVED, archive
from tests.end_to_end.processes import STARTING, Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.nats_server import NatsServer
from tests.loopback.permissions import Permission
from tests.transport.connected import client

__all__ = ["client", "discord_server"]

pytestmark = pytest.mark.real_time

WITHIN = 2 * STARTING
BETTER = "Stop the program, and run it with --restore."
ROLES = ("gateway", "worker", "team")


def archived(data: Path) -> list[list[str]]:
    pairs = [
        pair for path in data.rglob("team/team-knowledge/raw/[!.]*.txt") for pair in archive.parse(path.read_text())
    ]
    return [[turn.text for turn in pair.turns] for pair in pairs]


def decided(data: Path) -> str:
    return "".join(path.read_text() for path in data.rglob("team/team-knowledge/decisions.jsonl"))


def topics(data: Path) -> str:
    return "".join(path.read_text() for path in data.rglob("team/team-knowledge/topics/[!.]*.txt"))


@pytest.mark.parametrize("how", ["deleted", "edited", "hidden"])
async def test_what_is_taken_back_is_not_filed_over_nats(
    client: Client,
    discord_server: DiscordServer,
    nats_server: NatsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    monkeypatch.setenv("APP__TRANSPORT", nats_server.url)
    server, data = discord_server, tmp_path / "data"
    ada, kim = server.add_member("ada"), server.add_member("kim")
    place = server.add_channel("help")
    # What is hidden is not filed; what is filed already is withdrawn.
    settling = 0.1 if how == "hidden" else 0
    sections: dict[str, Any] = {
        "discord": {"team_member_ids": [kim.id], "reply_mode": "off"},
        "kb": {"settle_minutes": settling},
    }
    config = write_config(data, **sections)
    running = [await Process.start(server, config, "--role", role) for role in ROLES]

    def over() -> bool:
        return any(process.over for process in running)

    try:
        await server.until(lambda: over() or server.gateway.sessions, WITHIN)
        await server.say(place, ada, "How do I restore a backup?")
        answered = await server.say(place, kim, "Stop the program, and run it with the password blorptang.")
        await server.until(lambda: over() or archived(data), WITHIN)
        if how == "hidden":
            server.deny(place, server.guild.everyone, Permission.VIEW_CHANNEL)
            await server.until(lambda: over() or '"by": "discord"' in decided(data), WITHIN)
        else:
            await server.until(lambda: over() or "blorptang" in topics(data), WITHIN)
            await (server.delete(answered) if how == "deleted" else server.edit(answered, BETTER))
            await server.until(lambda: over() or decided(data).count("\n") == 3, WITHIN)
            assert archived(data)[-1][-1] == (REMOVED if how == "deleted" else BETTER)
        await server.until(lambda: over() or "blorptang" not in topics(data), WITHIN)
        assert ("--restore" in topics(data)) == (how == "edited")
        for process in running:
            process.terminate()
        assert [(await process.end(WITHIN))[0] for process in running] == [0] * len(running)
    finally:
        for process in running:
            await process.kill()
