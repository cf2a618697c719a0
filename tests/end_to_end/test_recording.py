"""A live session, recorded and played again."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from assembly.answering import ModelOptions
from commands.live import LiveOptions
from commands.replay import ReplayOptions, replay
from model.outcomes import Outcome
from sinks.results import render
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import echoing
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer

pytestmark = pytest.mark.real_time

PICTURE = b"\x89PNG\r\n\x1a\n" + b"\0" * 64


def comparable(line: dict[str, Any]) -> dict[str, Any]:
    """Without what differs by the time that a model and Discord take."""
    return {key: value for key, value in line.items() if key not in {"at", "latency_ms"}}


def said_live(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    ordered = sorted(outcomes, key=lambda outcome: outcome.part.number)
    return [comparable(json.loads(render(outcome))) for outcome in ordered]


async def replayed(bot: RunningBot, options: ReplayOptions, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    # A loop of its own, with a virtual clock, cannot run inside of this one.
    code = await asyncio.to_thread(replay, bot.settings, options)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    return [comparable(line) for line in lines if "summary" not in line]


async def test_a_recorded_session_replays_to_the_same_outcomes(
    start: Start,
    discord_server: DiscordServer,
    llm_server: LLMServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    llm_server.otherwise = echoing()
    recording, exchanges = tmp_path / "session.jsonl", tmp_path / "exchanges.jsonl"
    help_, forum = discord_server.add_channel("help"), discord_server.add_forum("posts")
    ada, bob = discord_server.add_member("ada"), discord_server.add_member("bob")
    bot = await start(
        LiveOptions(record=recording, models=ModelOptions(record=exchanges)), ai_response={"llm": llm(llm_server)}
    )
    await discord_server.say(help_, ada, "case-1: how can I restore a backup?")
    (first,) = await bot.until_posts(1)
    await discord_server.say(first.place, ada, "case-2: and what about the settings?")
    await bot.until_posts(2)
    await discord_server.forum_post(forum, ada, "case-4: how can I restore it?", "the backup")
    await bot.until_posts(3)
    talk = await discord_server.say(help_, bob, "good morning all")
    await bot.until_ended(talk)
    withdrawn = await discord_server.say(help_, bob, "case-3: how can I restore a backup?")
    await discord_server.delete(withdrawn)
    await bot.until_ended(withdrawn)
    assert await bot.stop() == 0
    options = ReplayOptions(recording, as_json=True, models=ModelOptions(replay=exchanges))
    assert await replayed(bot, options, capsys) == said_live(bot.outcomes)


async def test_attachments_are_saved_beside_a_recording_and_what_opted_out_is_not_in_it(
    start: Start, discord_server: DiscordServer, tmp_path: Path
) -> None:
    recording = tmp_path / "session.jsonl"
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(LiveOptions(record=recording))
    private = await discord_server.say(
        help_, ada, "!nobot my secret plan", attachments=[("plan.png", PICTURE, "image/png")]
    )
    picture = await discord_server.say(help_, ada, "look at this", attachments=[("a.png", PICTURE, "image/png")])
    file = await discord_server.say(help_, ada, "", attachments=[("server.log", b"all is well\n", "text/plain")])
    await bot.until_ended(private, picture, file)
    assert await bot.stop() == 0
    assert "secret plan" not in recording.read_text()
    saved = {path.name: path.read_bytes() for path in (tmp_path / "session.jsonl.attachments").iterdir()}
    assert saved == {str(picture.files[0].id): PICTURE, str(file.files[0].id): b"all is well\n"}
    assert len(discord_server.downloads) == 2
    # The key to the session is nobody's business.
    assert "session_id" not in recording.read_text()
    assert discord_server.token not in recording.read_text()


async def test_the_titles_of_forum_posts_that_opted_out_are_not_in_a_recording(
    start: Start, discord_server: DiscordServer, tmp_path: Path
) -> None:
    recording = tmp_path / "session.jsonl"
    forum, ada = discord_server.add_forum("posts"), discord_server.add_member("ada")
    bot = await start(LiveOptions(record=recording))
    for title, text in (("secret-1 !nobot", "secret-2"), ("secret-3", "secret-4 !nobot"), ("open-1", "open-2")):
        post = await discord_server.forum_post(forum, ada, title, text)
        await bot.until_ended(*discord_server.history(post))
    assert await bot.stop() == 0
    assert set(re.findall(r"(?:secret|open)-\d", recording.read_text())) == {"open-1", "open-2"}


async def test_a_recording_that_cannot_be_written_is_one_line(
    start: Start, discord_server: DiscordServer, tmp_path: Path
) -> None:
    discord_server.add_channel("help")
    bot = await start(LiveOptions(record=tmp_path / "missing" / "session.jsonl"), ready=False)
    assert bot.task is not None
    await asyncio.wait({bot.task}, timeout=5)
    assert "cannot be written" in str(bot.task.exception())
