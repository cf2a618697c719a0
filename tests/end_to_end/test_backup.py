"""Backups that are made while the bot is at work: what is brought back goes on as if nothing had been."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from assembly.backup_order import copy_order
from clock import rfc3339
from services.conversations import read_posts
from services.storage import DataFolder
from services.storage.backups import back_up, restore
from services.storage.data_folder import lock
from services.team.archive_files import pairs_in
from settings import load
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Launch, llm
from tests.end_to_end.processes import STARTING, write_config
from tests.end_to_end.scenes import echoing
from tests.end_to_end.test_crashes import has_outcome
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_scenes import slow
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Message, User

pytestmark = pytest.mark.real_time

BACKUPS = 6
BALLAST_BYTES = 12_000_000
LOG = "\n".join(f"2026-02-16T00:00:{n:02} ERROR db: connection to 10.0.0.7 refused (E-{n})" for n in range(40))


@dataclass
class Town:
    """People who ask and teach, round after round."""

    server: DiscordServer
    kim: User
    questions: list[Message] = field(default_factory=list[Message])
    taught: list[Message] = field(default_factory=list[Message])

    def __post_init__(self) -> None:
        self._channels = [self.server.add_channel(f"help-{n}") for n in range(3)]

    async def asks(self) -> Message:
        number = len(self.questions)
        asker = self.server.add_member(f"asker-{number}")
        channel = self._channels[number % 2]
        self.questions.append(
            await self.server.say(channel, asker, f"case-{number}: how can I restore a backup?", attachments=LOGS)
        )
        return self.questions[-1]

    async def teaches(self) -> None:
        number = len(self.taught)
        asker = self.server.add_member(f"pupil-{number}")
        asked = await self.server.say(self._channels[2], asker, f"How do I skip the raw files of camera {number}?")
        answer = f"Put skip_raw = {number} into the importer section: raw files are left out then."
        self.taught.append(await self.server.say(self._channels[2], self.kim, answer, reply_to=asked))

    async def live(self, until: Callable[[], bool]) -> None:
        while not until():
            asked = [await self.asks() for _ in range(4)]
            await self.teaches()
            await self.server.until(lambda asked=asked: all(answers_to(self.server, each) for each in asked), 20)
        for _ in range(3):  # which nobody waits for
            await self.asks()


LOGS = [("app.log", LOG.encode(), "text/plain")]


@dataclass(frozen=True)
class Copied:
    """A backup, and what was on the disk when it was begun."""

    file: Path
    answered: AbstractSet[int]
    captured: AbstractSet[int]


def answered_in(folder: DataFolder) -> AbstractSet[int]:
    return {post.last_asked_id for post in read_posts(folder.posts)}


def captured_in(folder: DataFolder) -> AbstractSet[int]:
    return {message_id for pair in pairs_in(folder.team_raw) for message_id in pair.message_ids}


async def copies(config: Path, folder: Path, made: list[Copied]) -> None:
    """One backup after another, until it is cancelled."""
    settings = load(config)
    data = DataFolder(settings.app.data_dir)
    while True:
        file = folder / f"{len(made)}.zip"
        answered, captured = answered_in(data), captured_in(data)
        done = await asyncio.to_thread(back_up, data.root, file, copy_order(settings), rfc3339(0))
        assert (done.left_out, done.damaged) == ((), ())
        made.append(Copied(file, answered, captured))


def configured(data: Path, llm_server: LLMServer, kim: User) -> Path:
    return write_config(
        data,
        ai_response={"llm": llm(llm_server, timeout_seconds=30)},
        discord={"team_member_ids": [kim.id], "message_batch_wait_seconds": 0.05, "team_active_seconds": 1},
    )


async def takes_up_what_is_left(launch: Launch, config: Path, folder: DataFolder, town: Town) -> None:
    """A bot over a restored folder, after which each question has its one answer, and what was taught is kept."""
    server = town.server
    server.state.nonces.clear()  # long after: Discord does not know them any more
    sessions = server.count("GET", "/users/@me$")
    bot = await launch(config)
    await server.until(lambda: server.count("GET", "/users/@me$") > sessions, STARTING)
    await town.asks()
    everything = [*town.questions, *town.taught]
    await server.until(lambda: all(has_outcome(folder, each) for each in everything), STARTING)
    bot.terminate()
    code, said = await bot.end(STARTING)
    assert code == 0, said
    for case, question in enumerate(town.questions):
        replies = [post.content for post in answers_to(server, question) if "case" in post.content]
        assert replies == [f"About case-{case}."]
    assert captured_in(folder) >= {message.id for message in town.taught}


@pytest.mark.slow
async def test_whatever_moment_a_backup_is_of_nothing_is_lost_and_nothing_answered_twice(
    launch: Launch, discord_server: DiscordServer, llm_server: LLMServer, data: Path, tmp_path: Path
) -> None:
    """Pitfalls 7, 8 and 25."""
    llm_server.otherwise = slow(0.02, echoing())
    town = Town(discord_server, discord_server.add_member("kim"))
    config, live = configured(data, llm_server, town.kim), DataFolder(data)
    # Copying it takes a while, in which the bot goes on.
    (data / "ballast").write_bytes(os.urandom(BALLAST_BYTES))
    bot = await launch(config)
    await discord_server.until(live.watermarks.exists, STARTING)
    made: list[Copied] = []
    copying = asyncio.create_task(copies(config, tmp_path, made))
    await town.live(until=lambda: copying.done() or len(made) >= BACKUPS)
    assert not copying.done(), copying.exception()
    copying.cancel()
    await asyncio.wait({copying})
    await bot.kill()

    for number, copied in enumerate(made):
        folder = DataFolder(tmp_path / str(number) / "data")
        with lock(folder.root, "a test"):
            restore(copied.file, folder.root)
        # Nothing that was there before is missing, and no mark vouches for what is not there.
        assert answered_in(folder) >= copied.answered
        assert captured_in(folder) >= copied.captured
        assert {each.id for each in town.questions if has_outcome(folder, each)} <= answered_in(folder)
        assert {each.id for each in town.taught if has_outcome(folder, each)} <= captured_in(folder)

    for number in (0, len(made) - 1):
        folder = DataFolder(tmp_path / str(number) / "data")
        await takes_up_what_is_left(launch, configured(folder.root, llm_server, town.kim), folder, town)
