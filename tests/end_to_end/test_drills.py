"""Drills: an outage of minutes, and a wall clock that is set back. In virtual time, with the shipped times."""

from __future__ import annotations

import asyncio
import time

import pytest

import clock.utc
from model.outcomes import OutcomeKind
from services.discord.live import pause
from tests.end_to_end import bots
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.snowflakes import Snowflakes

QUESTION = "how can I restore a backup?"
TEN_MINUTES = 600


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
    monkeypatch.setattr(clock.utc, "_steady", clock.utc.Steady())
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
