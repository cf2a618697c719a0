"""What people take back is gone from what the team taught, also where one process sees it and another one files."""

from __future__ import annotations

from collections.abc import Callable
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
DELETED, EDITED, HIDDEN, GONE = "blorptang", "gribbleflax", "snorvex", "plimquat"
SAID = {
    DELETED: ("Where are invoices sent to?", "To the address of the account; the office is called blorptang."),
    EDITED: ("How do I restore a backup?", "Stop the program, and run it with the password gribbleflax."),
    GONE: ("How many seats has a licence?", "It has twelve seats in the edition plimquat."),
    HIDDEN: ("Can the colours be changed?", "Yes, choose the theme snorvex in its settings."),
}
"""A question and its answer, of each kind."""


def archived(data: Path) -> list[list[str]]:
    pairs = [
        pair for path in data.rglob("team/team-knowledge/raw/[!.]*.txt") for pair in archive.parse(path.read_text())
    ]
    return [[turn.text for turn in pair.turns] for pair in pairs]


def decided(data: Path) -> str:
    return "".join(path.read_text() for path in data.rglob("team/team-knowledge/decisions.jsonl"))


def topics(data: Path) -> str:
    return "".join(path.read_text() for path in data.rglob("team/team-knowledge/topics/[!.]*.txt"))


@pytest.mark.slow
async def test_what_is_taken_back_is_not_filed_over_nats(
    client: Client,
    discord_server: DiscordServer,
    nats_server: NatsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One answer is deleted, alone or with its channel, one edited, after they are filed; one is hidden before."""
    monkeypatch.setenv("APP__TRANSPORT", nats_server.url)
    server, data = discord_server, tmp_path / "data"
    ada, kim = server.add_member("ada"), server.add_member("kim")
    places = {word: server.add_channel(word) for word in SAID}
    sections: dict[str, Any] = {
        "discord": {"team_member_ids": [kim.id], "reply_mode": "off"},
        "kb": {"settle_minutes": 0.1},
    }
    config = write_config(data, **sections)
    running = [await Process.start(server, config, "--role", role) for role in ROLES]

    async def until(condition: Callable[[], object]) -> None:
        await server.until(lambda: any(process.over for process in running) or condition(), WITHIN)

    try:
        await until(lambda: server.gateway.sessions)
        answers: dict[str, Any] = {}
        for word, place in places.items():
            question, answer = SAID[word]
            await server.say(place, ada, question)
            answers[word] = await server.say(place, kim, answer)
        await until(lambda: len(archived(data)) == len(places))
        server.deny(places[HIDDEN], server.guild.everyone, Permission.VIEW_CHANNEL)
        await until(lambda: '"by": "discord"' in decided(data))
        await until(lambda: all(word in topics(data) for word in (DELETED, EDITED, GONE)))
        await server.delete_place(places[GONE])
        await server.delete(answers[DELETED])
        await server.edit(answers[EDITED], BETTER)
        await until(lambda: {REMOVED, BETTER} <= {pair[-1] for pair in archived(data)})
        await until(lambda: not any(word in topics(data) for word in places) and "--restore" in topics(data))
        for process in running:
            process.terminate()
        assert [(await process.end(WITHIN))[0] for process in running] == [0] * len(running)
    finally:
        for process in running:
            await process.kill()
