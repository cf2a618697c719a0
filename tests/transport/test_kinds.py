"""Every kind of conversation, from its messages to its topic: live, in a replay of that, and over NATS."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from nats.aio.client import Client

from commands.replay import ReplayOptions, replay
from model.conversations import KINDS, REPLY, THREAD, ConversationKind
from services.team import archive
from settings import Settings
from tests.end_to_end.processes import STARTING, Process, write_config
from tests.loopback.discord_server import DiscordServer
from tests.loopback.fixtures import discord_server
from tests.loopback.nats_server import NatsServer
from tests.transport.connected import client

__all__ = ["client", "discord_server"]

pytestmark = pytest.mark.real_time

WITHIN = 2 * STARTING


class Scene(NamedTuple):
    """What is written in a channel of its own, and from the second message on in a thread; and what is filed of it."""

    written: tuple[str, ...]
    filed: str
    in_thread: bool = False


SCENES: dict[ConversationKind, Scene] = {
    THREAD: Scene(
        ("ada: Why does the importer skip my camera?", "kim: It skips raw files unless skip_raw is off."),
        "User: Why does the importer skip my camera?\nTeam: It skips raw files unless skip_raw is off.\n",
        in_thread=True,
    ),
    REPLY: Scene(
        ("ada: How do I restore a backup?", "kim: Stop the program, and run it with --restore."),
        "User: How do I restore a backup?\nTeam: Stop the program, and run it with --restore.\n",
    ),
}
"""Kim is of the team."""


class Played:
    """A Discord in which the scenes are played, and the folder of what is learned from them."""

    def __init__(self, server: DiscordServer, folder: Path) -> None:
        self.server, self.data = server, folder / "data"
        self.filed: dict[ConversationKind, str] = {}
        self.people = {name: server.add_member(name) for name in ("ada", "kim")}
        self.sections: dict[str, Any] = {
            "discord": {"team_member_ids": [self.people["kim"].id], "reply_mode": "off"},
            "kb": {"settle_minutes": 0},
        }

    async def by(self, *processes: tuple[str, ...]) -> None:
        """Play the scenes to these processes, until all is filed; then end them."""
        config = write_config(self.data, **self.sections)
        running = [await Process.start(self.server, config, *arguments) for arguments in processes]
        try:
            await self.server.until(lambda: ended(running) or self.server.gateway.sessions, WITHIN)
            for scene in SCENES.values():
                await self._play(scene)
            await self.server.until(lambda: ended(running) or filed(self.data) == EVERY_KIND, WITHIN)
            self.filed = filed(self.data)  # over NATS, processes delete their copies when they end
            for process in running:
                process.terminate()
            assert [(await process.end(WITHIN))[0] for process in running] == [0] * len(running)
        finally:
            for process in running:
                await process.kill()

    async def _play(self, scene: Scene) -> None:
        place = self.server.add_channel("help")
        for number, line in enumerate(scene.written):
            name, text = line.split(": ", 1)
            said = await self.server.say(place, self.people[name], text)
            if scene.in_thread and not number:
                place = await self.server.open_thread(said, self.people[name])


def ended(processes: Sequence[Process]) -> bool:
    return any(process.over for process in processes)


def filed(data: Path) -> dict[ConversationKind, str]:
    """What is archived and in a topic, by the kind of its conversation."""
    topics = "".join(path.read_text() for path in data.rglob("topics/[!.]*.txt"))
    pairs = [pair for path in data.rglob("raw/[!.]*.txt") for pair in archive.parse(path.read_text())]
    texts = {pair.kind: "".join(f"{each.speaker}: {each.text}\n" for each in pair.turns) for pair in pairs}
    return {kind: text for kind, text in texts.items() if text in topics}


ON_DISCORD = [kind for kind in KINDS if kind.is_on_discord]
EVERY_KIND = {kind: SCENES[kind].filed for kind in ON_DISCORD if kind in SCENES}


def test_every_kind_that_is_on_discord_has_a_scene() -> None:
    lacking = [kind.prefix for kind in ON_DISCORD if kind not in SCENES]
    assert lacking == [], "add a scene of each to SCENES in tests/transport/test_kinds.py"


async def test_every_kind_is_filed_live_and_in_a_replay(discord_server: DiscordServer, tmp_path: Path) -> None:
    recording, again = tmp_path / "session.jsonl", tmp_path / "again"
    played = Played(discord_server, tmp_path)
    await played.by(("--record", str(recording)))
    assert filed(played.data) == EVERY_KIND
    settings = Settings.model_validate(played.sections).resolve_paths(tmp_path)
    assert await asyncio.to_thread(replay, settings, ReplayOptions(recording, again)) == 0
    assert filed(again) == EVERY_KIND


@pytest.mark.slow
async def test_every_kind_is_filed_over_nats(
    client: Client,
    discord_server: DiscordServer,
    nats_server: NatsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("APP__TRANSPORT", nats_server.url)
    played = Played(discord_server, tmp_path)
    await played.by(*(("--role", role) for role in ("gateway", "worker", "team")))
    assert played.filed == EVERY_KIND
