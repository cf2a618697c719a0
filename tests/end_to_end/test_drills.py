"""Drills: outages of their real length, and a wall clock that is set back. In virtual time, with the shipped times."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

import clock.utc
from model.outcomes import OutcomeKind
from services.discord.live import pause
from services.llm.resilience import FAILURES, OPEN_SECONDS
from services.storage import DataFolder
from services.team.archive_files import pairs_in
from tests.end_to_end import bots
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.loopback import llm_scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_scenes import Body, Scene
from tests.loopback.llm_server import LLMServer
from tests.loopback.snowflakes import Snowflakes

T = TypeVar("T")

QUESTION = "how can I restore a backup?"
ASKED = "How do I make the importer skip the raw files of my camera?"
ANSWERED = "Put skip_raw = true into the importer section: raw files of the camera are left out then."
TEN_MINUTES, HOUR = 600, 3600


class Wall:
    """In place of the module `time`."""

    def __init__(self) -> None:
        self.behind = 0.0

    def time(self) -> float:
        return time.time() - self.behind

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.mark.virtual_sockets
async def test_a_gateway_that_is_away_for_ten_minutes_costs_no_question_and_answers_none_twice(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 25: what was asked before, meanwhile and afterwards; the session is lost as well."""
    llm_server.otherwise = answering()
    help_ = discord_server.add_channel("help")
    monkeypatch.setattr(bots, "no_pause", pause)
    await start(ai_response={"llm": llm(llm_server)}, discord={"message_batch_wait_seconds": 60})
    questions = [await discord_server.say(help_, discord_server.add_member("ada"), QUESTION)]
    discord_server.fail_next("GET", "^/$", status=502, times=10_000)
    await discord_server.disconnect()
    for name in ("bob", "cleo"):
        await asyncio.sleep(TEN_MINUTES / 2)
        questions.append(await discord_server.say(help_, discord_server.add_member(name), QUESTION, deliver=False))
    assert len(answers_to(discord_server, questions[0])) == 1  # posting needs no gateway
    await discord_server.invalidate_session()
    discord_server.forget_failures()
    await asyncio.sleep(120)
    questions.append(await discord_server.say(help_, discord_server.add_member("dora"), QUESTION))
    await asyncio.sleep(120)
    assert [len(answers_to(discord_server, question)) for question in questions] == [1, 1, 1, 1]
    assert len(discord_server.posts) == 4


@pytest.mark.real_time
async def test_a_wall_clock_that_is_set_back_an_hour_stalls_nothing_and_answers_nothing_twice(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Discord's clock goes on."""
    wall = Wall()
    monkeypatch.setattr(clock.utc, "time", wall)
    monkeypatch.setattr(clock.utc, "_steady", clock.utc.SteadyClock())
    discord_server.state.snowflake = Snowflakes(time.time).make
    llm_server.otherwise = answering()
    help_ = discord_server.add_channel("help")
    bot = await start(ai_response={"llm": llm(llm_server)})
    before = await discord_server.say(help_, discord_server.add_member("ada"), QUESTION)
    await bot.until_posts(1)
    waiting = await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    wall.behind = 3600
    after = await discord_server.say(help_, discord_server.add_member("cleo"), QUESTION)
    await bot.until_posts(3)
    await discord_server.invalidate_session()
    last = await discord_server.say(help_, discord_server.add_member("dora"), QUESTION)
    await bot.until_posts(4)
    await bot.until_ended(before, waiting, after, last)
    asked = (before, waiting, after, last)
    assert [len(answers_to(discord_server, question)) for question in asked] == [1, 1, 1, 1]
    assert [kind for kind, _ in bot.results] == [OutcomeKind.REPLIED] * 4
    assert len(discord_server.posts) == 4


# The model


@pytest.fixture
async def virtual_model(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LLMServer]:
    """A model on this loop, called on this loop: time-outs, retries and the breaker are in virtual time as well."""

    async def here(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await call()

    monkeypatch.setattr(clock, "run_in_real_time", here)
    async with LLMServer() as server:
        yield server


@pytest.mark.virtual_sockets
@pytest.mark.parametrize(
    "away", [llm_scenes.drop(), llm_scenes.status(503), llm_scenes.hang()], ids=["gone", "503", "hangs"]
)
async def test_a_model_that_is_down_for_an_hour_costs_the_answers_of_that_hour_and_nothing_else(
    away: Scene,
    start: Start,
    discord_server: DiscordServer,
    virtual_model: LLMServer,
    data: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Pitfalls 7 and 9: a question and a taught answer every five minutes."""
    caplog.set_level(logging.INFO, "services.llm.resilience")
    help_, kim = discord_server.add_channel("help"), discord_server.add_member("kim")
    virtual_model.otherwise = away
    settings = {"team_member_ids": [kim.id], "message_batch_wait_seconds": 60}
    bot = await start(discord=settings, ai_response={"llm": llm(virtual_model, max_retries=2)})
    began, unlucky, taught = clock.now(), list[Any](), list[Any]()
    while clock.now() < began + HOUR:
        n = len(taught)
        asked = await discord_server.say(help_, discord_server.add_member(f"user {n}"), f"{ASKED} ({n})")
        taught.append(await discord_server.say(help_, kim, f"{ANSWERED} ({n})", reply_to=asked))
        unlucky.append(await discord_server.say(help_, discord_server.add_member(f"asker {n}"), QUESTION))
        await asyncio.sleep(300)
    await bot.until_ended(*taught, *unlucky)
    assert len(unlucky) == 12
    ends = Counter((getattr(end, "result", None), getattr(end, "reason", None)) for end in map(bot.end_of, unlucky))
    assert {kind for kind, _ in ends} == {OutcomeKind.FAILED}
    assert ends[OutcomeKind.FAILED, "Unavailable at gate"] + ends[OutcomeKind.FAILED, "TimedOut at gate"] == 12
    assert not discord_server.posts
    knowledge = data / "team-knowledge"
    stored = pairs_in(knowledge / "raw")
    assert len(stored) == 12
    assert not DataFolder(data).decisions.exists()
    # While the circuit is open, it is probed once in that time.
    assert len(virtual_model.seen) <= HOUR / OPEN_SECONDS + 3 * FAILURES

    virtual_model.otherwise = answering()
    await asyncio.sleep(TEN_MINUTES)
    lucky = await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    await asyncio.sleep(120)
    assert len(answers_to(discord_server, lucky)) == 1
    assert len(discord_server.posts) == 1
    assert sum("answers again" in message for message in caplog.messages) == 1
    assert await bot.stop() == 0
    assert pairs_in(knowledge / "raw") == stored
    decisions = DataFolder(data).decisions.read_text()
    assert [decisions.count(pair.id) for pair in stored] == [1] * 12


@pytest.mark.virtual_sockets
async def test_a_model_that_says_429_for_a_minute_is_asked_no_sooner_than_it_said_and_no_answer_is_lost(
    start: Start, discord_server: DiscordServer, virtual_model: LLMServer
) -> None:
    """Questions come all the time; what one of them was told holds for those that come later."""
    refused, served = list[float](), list[float]()

    async def overloaded(request: web.Request, body: Body) -> web.StreamResponse:
        at = clock.now()
        left = 60 - (at - (refused[0] if refused else at))
        if left > 0:
            refused.append(at)
            return await llm_scenes.status(429, headers={"Retry-After": str(math.ceil(left))})(request, body)
        served.append(at)
        return await answering()(request, body)

    help_ = discord_server.add_channel("help")
    virtual_model.otherwise = overloaded
    bot = await start(ai_response={"llm": llm(virtual_model, max_retries=2)})
    asked = list[Any]()
    for n in range(8):
        asked.append(await discord_server.say(help_, discord_server.add_member(f"asker {n}"), f"{QUESTION} ({n})"))
        await asyncio.sleep(10)
    await asyncio.sleep(120)
    assert [len(answers_to(discord_server, each)) for each in asked] == [1] * 8
    assert len(refused) == 1
    assert min(served) >= refused[0] + 60
    assert await bot.stop() == 0
