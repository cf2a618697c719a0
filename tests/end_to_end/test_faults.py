"""Faults from outside, in the whole bot: model away or overloaded, reading process killed, disk that refuses."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
from asyncio.subprocess import Process
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from clock import Processes
from commands.live import LiveOptions
from services.conversations import read_watermarks
from services.storage import DataFolder
from services.team.archive_files import pairs_in
from tests.end_to_end.bots import RunningBot, answers_to, posts_in
from tests.end_to_end.conftest import Start, settings_of
from tests.loopback.discord_server import DiscordServer
from tests.loopback.web_server import WebServer

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"
ASKED = "How do I make the importer skip the raw files of my camera?"
ANSWERED = "Put skip_raw = true into the importer section: raw files of the camera are left out then."
LOG = "\n".join(
    [f"2026-02-16T00:00:{n:02} INFO  web: request {n} served" for n in range(30)]
    + ["2026-02-16T00:00:30 ERROR db: connection to 10.0.0.7 refused (E-1042)"]
)


# The model


# A reading process


@pytest.fixture
def first_reader(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The first process that is started to read something: it stands still as soon as it is there."""
    stopped: list[Process] = []
    real = Processes._start_process  # pyright: ignore[reportPrivateUsage]  # else it might have read before it is killed

    async def started(processes: Processes) -> Process:
        process = await real(processes)
        if not stopped:
            process.send_signal(signal.SIGSTOP)
            stopped.append(process)
        return process

    monkeypatch.setattr(Processes, "_start_process", started)
    return stopped


async def test_a_process_killed_while_it_reads_a_file_costs_that_file_and_the_next_is_read(
    start: Start, discord_server: DiscordServer, first_reader: list[Process], caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 64."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await discord_server.say(help_, ada, QUESTION)
    (post,) = await bot.until_posts(1, 20)
    unlucky = await discord_server.say(post.place, ada, "", attachments=[("first.log", LOG.encode(), "text/plain")])
    await discord_server.until(lambda: bot.over or first_reader, 20)
    first_reader[0].kill()
    await discord_server.until(lambda: bot.over or len(posts_in(discord_server, post.place)) > 1, 20)
    assert "first.log" in posts_in(discord_server, post.place)[-1].content
    lines = [message for message in caplog.messages if "cannot be read" in message]
    assert len(lines) == 1
    assert re.fullmatch(r"evidence: attachment \d+ cannot be read: the process .* ended \(SIGKILL\)", lines[0])
    lucky = await discord_server.say(post.place, ada, "", attachments=[("second.log", LOG.encode(), "text/plain")])
    await discord_server.until(lambda: bot.over or lucky.reactions, 20)
    assert unlucky.reactions != lucky.reactions
    assert "Traceback" not in caplog.text
    assert await bot.stop() == 0


async def test_a_process_killed_while_it_reads_a_page_costs_that_page_and_the_next_is_read(
    discord_server: DiscordServer,
    data: Path,
    hurried_discord: None,
    first_reader: list[Process],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pitfall 64."""

    def page(text: str) -> Any:
        async def play(_: web.Request) -> web.StreamResponse:
            body = f"<html><title>{text}</title><body><main><h1>{text}</h1><p>{text * 50}</p></main></body></html>"
            return web.Response(text=body, content_type="text/html")

        return play

    discord_server.add_channel("help")
    index = data / "knowledge-base" / "index.txt"
    async with WebServer({"/one": page("Of millstones. "), "/two": page("Of millraces. ")}) as server:
        one, two = f"{server.origin}/one", f"{server.origin}/two"
        (data / "knowledge-base" / "links.txt").write_text(f"{one}\n{two}\n")
        kb = {"web_fetch_private_hosts": ["127.0.0.1"], "url_download_concurrency": 1}
        bot = RunningBot(discord_server, settings_of(data, kb=kb), LiveOptions())
        bot.begin(monkeypatch, learning=True)
        try:
            await bot.ready()
            await discord_server.until(lambda: bot.over or first_reader, 20)
            first_reader[0].kill()
            await discord_server.until(lambda: bot.over or f"kb:{two}" in index.read_text(), 20)
            assert f"kb:{one}" not in index.read_text()
            lines = [message for message in caplog.messages if "ended (SIGKILL)" in message]
            assert len(lines) == 1
            assert one in lines[0]
            assert "Traceback" not in caplog.text
        finally:
            assert await bot.stop() == 0


# A disk that can only be read


async def test_a_data_folder_that_cannot_be_written_for_a_while_loses_nothing_that_was_asked_or_taught(
    start: Start,
    discord_server: DiscordServer,
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Questions are answered, captures wait, votes are told as not kept: one readable line each."""
    help_, kim = discord_server.add_channel("help"), discord_server.add_member("kim")
    bot = await start(discord={"team_member_ids": [kim.id], "feedback": True})
    await discord_server.until(DataFolder(data).watermarks.exists)
    real = os.open

    def open_(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT) and str(path).startswith(str(data)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real(path, flags, *rest, **more)

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(os, "open", open_)
        question = await discord_server.say(help_, discord_server.add_member("ada"), QUESTION)
        (post,) = await bot.until_posts(1, 20)
        asked = await discord_server.say(help_, discord_server.add_member("bob"), ASKED)
        taught = await discord_server.say(help_, kim, ANSWERED, reply_to=asked)
        for told in ("state was not saved", "a reply was not recorded", "was not stored; tried again"):
            await discord_server.until(lambda told=told: bot.over or told in caplog.text, 20)
        assert bot.end_of(taught) is None
    await bot.until_ended(taught, within=20)
    [pair] = pairs_in(data / "team-knowledge" / "raw")
    assert [turn.text for turn in pair.turns] == [ASKED, ANSWERED]
    assert await bot.stop() == 0
    assert len(answers_to(discord_server, question)) == 1
    assert post.place.id == question.id
    assert read_watermarks(DataFolder(data).watermarks)[help_.id].up_to >= taught.id
    assert "Traceback" not in caplog.text
    assert all("\n" not in message for message in caplog.messages)
