"""Outages in the whole bot, in virtual time: each is told once when it has lasted, and once when it is over."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from aiohttp import web

import clock
from assembly.health import SAMPLE_SECONDS
from commands.live import LiveOptions
from operators.incidents import SETTLE_SECONDS
from services.discord import GatewayRefused
from services.discord.live import pause
from services.llm import Budget
from sinks.alerts import POST_SECONDS
from tests.disk_room import disk_with
from tests.end_to_end import bots
from tests.end_to_end.bots import RunningBot, answers_to, posts_in
from tests.end_to_end.conftest import Start, llm, settings_of
from tests.end_to_end.scenes import answering
from tests.loopback import llm_scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel
from tests.loopback.web_server import Play, WebServer, status

T = TypeVar("T")

pytestmark = pytest.mark.virtual_sockets

MINUTE = 60.0
OVER = SETTLE_SECONDS + 2 * SAMPLE_SECONDS
QUESTION = "how can I restore a backup?"


@pytest.fixture
async def web_server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WebServer]:
    """Serves a webhook, and pages. Everything is on this loop: models and the web answer in virtual time as well."""

    async def here(call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return await call()

    monkeypatch.setattr(clock, "run_in_real_time", here)
    monkeypatch.setattr(bots, "no_pause", pause)
    async with WebServer() as server:
        yield server


class Hook:
    """A webhook. `answers`: those of the next requests, then 204."""

    def __init__(self, server: WebServer) -> None:
        self.texts = list[str]()
        self.tried = list[float]()
        self.answers = list[Play]()
        server.paths["/api/webhooks/1/s3cret"] = self.take
        self.url = f"{server.origin}/api/webhooks/1/s3cret"

    async def take(self, request: web.Request) -> web.StreamResponse:
        self.tried.append(clock.now())
        if self.answers:
            return await self.answers.pop(0)(request)
        self.texts.append(json.loads(await request.text())["content"])
        return await status(204)(request)


@pytest.fixture
def hook(web_server: WebServer) -> Hook:
    return Hook(web_server)


@pytest.fixture
async def staff(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("staff")


async def pass_time(server: DiscordServer, seconds: float) -> None:
    """Let time go by, with something said each half minute: discord.py sends its heartbeats in real time, and ends a
    connection on which nothing comes.
    """
    lobby, clock_bot = server.add_channel("lobby"), server.add_member("clock", bot=True)
    until = clock.now() + seconds
    while (left := until - clock.now()) > 0:
        await asyncio.sleep(min(left, MINUTE / 2))
        await server.say(lobby, clock_bot, "tick")


def told(server: DiscordServer, staff: Channel) -> list[str]:
    return [post.content for post in posts_in(server, staff)]


def beginnings(texts: list[str]) -> list[str]:
    return [text.removeprefix("Millrace: ").split("**")[1] for text in texts]


AWAY, BACK = "Discord is not connected", "Discord is connected again."


async def test_a_discord_that_is_away_is_told_at_once_by_the_webhook_and_afterwards_in_the_channel(
    start: Start, discord_server: DiscordServer, hook: Hook, staff: Channel
) -> None:
    """Neither the gateway nor REST answers."""
    bot = await start(alerts={"channel_id": staff.id, "webhook_url": hook.url})
    await asyncio.sleep(MINUTE)
    discord_server.fail_next("*", ".", status=503, times=100_000)
    await discord_server.disconnect()
    await asyncio.sleep(4 * MINUTE)
    assert hook.texts == []
    await asyncio.sleep(2 * MINUTE)
    assert beginnings(hook.texts) == [AWAY]
    await asyncio.sleep(6 * MINUTE)
    discord_server.forget_failures()
    await pass_time(discord_server, 2 * MINUTE + OVER)
    assert beginnings(hook.texts) == [AWAY, BACK]
    await pass_time(discord_server, 8 * MINUTE)
    assert beginnings(told(discord_server, staff)) == [BACK]
    [back] = told(discord_server, staff)
    assert 12 <= int(back.split("The trouble lasted ")[1].split(" minutes")[0]) <= 14
    assert await bot.stop() == 0


async def test_a_connection_that_comes_and_goes_is_one_incident(
    start: Start, discord_server: DiscordServer, hook: Hook, staff: Channel
) -> None:
    """REST works all the time: the channel is told as well."""
    await start(alerts={"channel_id": staff.id, "webhook_url": hook.url})
    for away, back in ((2, 1), (7, 2), (6, 3), (7, 1)):
        discord_server.fail_next("GET", "^/$", status=502, times=100_000)
        await discord_server.disconnect()
        await asyncio.sleep(away * MINUTE)
        discord_server.forget_failures()
        await pass_time(discord_server, (back + 1) * MINUTE)
    await pass_time(discord_server, OVER)
    assert beginnings(hook.texts) == [AWAY, BACK]
    assert beginnings(told(discord_server, staff)) == [AWAY, BACK]


async def test_a_restart_in_an_outage_repeats_nothing_and_tells_its_end(
    start: Start, discord_server: DiscordServer, hook: Hook, staff: Channel, data: Path
) -> None:
    bot = await start(alerts={"webhook_url": hook.url})
    discord_server.fail_next("GET", "^/$", status=502, times=100_000)
    await discord_server.disconnect()
    await asyncio.sleep(7 * MINUTE)
    assert await bot.stop() == 0
    again = await start(alerts={"webhook_url": hook.url}, ready=False)
    await asyncio.sleep(7 * MINUTE)
    discord_server.forget_failures()
    await pass_time(discord_server, 2 * MINUTE + OVER)
    assert beginnings(hook.texts) == [AWAY, BACK]
    assert await again.stop() == 0
    assert "s3cret" not in (data / "state" / "alerts.json").read_text()


REFUSED, LET_IN = "Discord refuses the bot", "Discord lets the bot in again."


async def until_refused(bot: RunningBot) -> None:
    assert bot.task is not None
    await asyncio.wait({bot.task})
    with pytest.raises(GatewayRefused):
        bot.result()


async def test_a_token_that_is_reset_is_told_before_the_end_and_once(
    start: Start,
    discord_server: DiscordServer,
    hook: Hook,
    staff: Channel,
    data: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A supervisor starts the bot again and again meanwhile."""
    alerts = {"channel_id": staff.id, "webhook_url": hook.url}
    bot = await start(alerts=alerts)
    began = clock.now()
    discord_server.reset_token("the.new.token")
    await discord_server.invalidate_session()
    for life in range(3):
        bot = bot if life == 0 else await start(alerts=alerts, ready=False)
        await until_refused(bot)
        [text] = hook.texts
        assert beginnings(hook.texts) == [REFUSED]
        assert "Discord refuses the token (discord.token). Reset" in text
        assert not any(secret in text for secret in (discord_server.token, "the.new.token", "s3cret"))
    assert clock.now() - began < MINUTE
    discord_server.reset_token(discord_server.token)
    again = await start(alerts=alerts)
    await pass_time(discord_server, OVER)
    assert beginnings(hook.texts) == [REFUSED, LET_IN]
    assert beginnings(told(discord_server, staff)) == [LET_IN]
    assert await again.stop() == 0
    assert "s3cret" not in (data / "state" / "alerts.json").read_text() + caplog.text


async def test_a_webhook_that_does_not_answer_keeps_a_refused_bot_for_some_seconds(
    start: Start, discord_server: DiscordServer, hook: Hook, staff: Channel
) -> None:
    async def hang(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    del staff  # a channel in which nothing is said
    hook.answers.append(hang)
    bot = await start(alerts={"webhook_url": hook.url}, app={"shutdown_grace_seconds": 60})
    discord_server.reset_token("the.new.token")
    began = clock.now()
    await discord_server.invalidate_session()
    await until_refused(bot)
    assert len(hook.tried) == 1
    assert clock.now() - began <= POST_SECONDS + 5


async def test_a_webhook_that_answers_500_and_429_is_told_later_and_keeps_nobody_waiting(
    start: Start, discord_server: DiscordServer, hook: Hook, staff: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    help_ = discord_server.add_channel("help")
    hook.answers = [status(500), status(500), status(429, **{"Retry-After": "600"})]
    await start(alerts={"channel_id": staff.id, "webhook_url": hook.url}, limits={"answers_per_day": 1})
    first = await discord_server.say(help_, discord_server.add_member("ada"), QUESTION)
    await asyncio.sleep(2 * MINUTE)
    assert len(answers_to(discord_server, first)) == 1
    assert beginnings(told(discord_server, staff)) == ["The budget of the day is used up"]
    await asyncio.sleep(20 * MINUTE)
    assert beginnings(hook.texts) == ["The budget of the day is used up"]
    assert len(hook.tried) == 4
    assert hook.tried[3] - hook.tried[2] >= 600
    assert "s3cret" not in caplog.text


async def test_a_budget_that_is_used_up_is_told_and_so_is_the_next_one(
    start: Start, discord_server: DiscordServer, hook: Hook, web_server: WebServer
) -> None:
    help_ = discord_server.add_channel("help")
    async with LLMServer(otherwise=answering()) as model:
        bot = await start(
            alerts={"webhook_url": hook.url}, limits={"tokens_per_day": 10}, ai_response={"llm": llm(model)}
        )
        await discord_server.say(help_, discord_server.add_member("ada"), QUESTION)
        await asyncio.sleep(5 * MINUTE)
        assert beginnings(hook.texts) == ["The budget of the day is used up"]
        assert "`limits.tokens_per_day`" in hook.texts[0]
        assert bot.parts is not None
        budget = bot.parts.state.budgets.default
        assert isinstance(budget, Budget)
        budget.spent.day -= 1  # as at midnight
        await asyncio.sleep(OVER)
        assert beginnings(hook.texts)[1:] == ["There is budget left for the day again."]
        assert await bot.stop() == 0


async def test_a_model_that_is_down_is_told_after_some_minutes_and_again_with_its_first_answer(
    start: Start, discord_server: DiscordServer, hook: Hook, web_server: WebServer
) -> None:
    help_ = discord_server.add_channel("help")
    async with LLMServer(otherwise=llm_scenes.status(503)) as model:
        bot = await start(alerts={"webhook_url": hook.url}, ai_response={"llm": llm(model)})
        for n in range(6):
            await discord_server.say(help_, discord_server.add_member(f"asker {n}"), f"{QUESTION} ({n})")
            await asyncio.sleep(MINUTE)
        await asyncio.sleep(MINUTE)
        assert beginnings(hook.texts) == ["The model does not answer"]
        assert "LLM m at 127.0.0.1" in hook.texts[0]
        assert "Unavailable" in hook.texts[0]
        model.otherwise = answering()
        await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
        await asyncio.sleep(OVER)
        assert beginnings(hook.texts)[1:] == ["The model answers again."]
        assert await bot.stop() == 0


async def test_a_full_disk_is_told_although_nothing_can_be_written(
    start: Start, discord_server: DiscordServer, hook: Hook, staff: Channel, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bot = await start(alerts={"webhook_url": hook.url})
    await asyncio.sleep(MINUTE)
    real = os.open

    def full(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        if flags & os.O_CREAT and str(path).startswith(str(data)):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(path, flags, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", disk_with(total=2e10, free=4e6))
        patch.setattr(os, "open", full)
        await asyncio.sleep(30 * MINUTE)
        assert beginnings(hook.texts) == ["The disk is nearly full, or cannot be written"]
        assert "4 of 20,000 MB are free" in hook.texts[0]
    monkeypatch.setattr(shutil, "disk_usage", disk_with(total=2e10, free=1.1e9))
    await asyncio.sleep(OVER)
    assert beginnings(hook.texts)[1:] == ["The disk has room again."]
    assert await bot.stop() == 0


async def test_pages_that_are_gone_are_one_message_and_one_more_when_they_are_taken_out_of_the_list(
    discord_server: DiscordServer,
    data: Path,
    hurried_discord: None,
    hook: Hook,
    web_server: WebServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Six minutes stand for the day."""
    discord_server.add_channel("help")
    urls = [f"{web_server.origin}/page-{number}?key=s3cret" for number in range(8)]
    links = data / "knowledge-base" / "links.txt"
    links.write_text("\n".join(urls))
    sections: dict[str, Any] = {
        "kb": {"web_fetch_private_hosts": ["127.0.0.1"], "runtime_refresh_tick_seconds": 60},
        "alerts": {"webhook_url": hook.url, "source_failing_hours": 0.1},
    }
    bot = RunningBot(discord_server, settings_of(data, **sections), LiveOptions())
    bot.begin(monkeypatch, learning=True)
    try:
        await bot.ready()
        await asyncio.sleep(5 * MINUTE)
        assert hook.texts == []
        await asyncio.sleep(5 * MINUTE)
        assert beginnings(hook.texts) == ["Sources cannot be read"]
        assert "8 failures among" in hook.texts[0]
        assert f"`{web_server.origin}/page-7` and 3 others" in hook.texts[0]
        links.write_text("")
        await asyncio.sleep(3 * MINUTE + OVER)
        assert beginnings(hook.texts)[1:] == ["All sources can be read again."]
    finally:
        assert await bot.stop() == 0


async def test_without_a_target_nothing_is_sampled_and_nothing_written(
    start: Start, staff: Channel, data: Path
) -> None:
    bot = await start()
    await asyncio.sleep(10 * MINUTE)
    assert await bot.stop() == 0
    assert not (data / "state" / "alerts.json").exists()


async def test_a_dry_run_tells_nobody(start: Start, hook: Hook, staff: Channel, discord_server: DiscordServer) -> None:
    await start(LiveOptions(dry_run=True), alerts={"webhook_url": hook.url})
    discord_server.fail_next("GET", "^/$", status=502, times=100_000)
    await discord_server.disconnect()
    await asyncio.sleep(10 * MINUTE)
    assert hook.tried == []
