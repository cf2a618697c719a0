"""The five outages that people are told of, with the bot as a process that is restarted in the middle of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.end_to_end.bots import posts_in
from tests.end_to_end.conftest import Launch, llm
from tests.end_to_end.drill_launcher import SAMPLE_SECONDS, SETTLE_SECONDS
from tests.end_to_end.processes import STARTING, Process, write_config
from tests.end_to_end.scenes import answering
from tests.end_to_end.test_alerts import Hook, beginnings
from tests.loopback import llm_scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.web_server import WebServer, page

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

LASTING = 2 * SETTLE_SECONDS + 10 * SAMPLE_SECONDS
"""Seconds in which a second message would have come."""
QUESTIONS = ("how can I restore a backup?", "how do I turn off face recognition?", "how do I install it?")
PAGE, GUIDE = "/guide", page("<h1>Guide</h1><p>How the lantern is lit, and put out again.</p>")


class Outage:
    """A bot with two places for alerts, and what can go wrong around it."""

    def __init__(self, launch: Launch, discord: DiscordServer, model: LLMServer, site: WebServer, data: Path) -> None:
        self.discord, self.model, self.site, self._launch, self._data = discord, model, site, launch, data
        self.after = dict[str, float]()
        self.hook = Hook(site)
        self._help, self._staff = discord.add_channel("help"), discord.add_channel("staff")
        self._bot: Process | None = None
        self._asked = 0
        self._free = data.with_name("free_bytes")
        site.paths[PAGE] = GUIDE
        (data / "knowledge-base" / "links.txt").write_text(f"{site.origin}{PAGE}\n")
        self.set_room(1e10)

    def set_room(self, free: float) -> None:
        self._free.write_text(str(free))

    async def start(self, answers_per_day: int) -> None:
        """Wait until it has begun; Discord may be away."""
        alerts = {
            "channel_id": self._staff.id,
            "webhook_url": self.hook.url,
            **self.after,
        }
        kb: dict[str, Any] = {
            "web_fetch_private_hosts": ["127.0.0.1"],
            "runtime_refresh_tick_seconds": 0.5,
            "url_refresh_min_interval_hours": 0.0001,
        }
        limits, answers = {"answers_per_day": answers_per_day}, {"llm": llm(self.model)}
        config = write_config(self._data, alerts=alerts, kb=kb, ai_response=answers, limits=limits)
        begun = self.discord.count("GET", "/users/@me$")
        self._bot = await self._launch(config, launcher="drill_launcher")
        await self.discord.until(lambda: self.discord.count("GET", "/users/@me$") > begun, STARTING)

    async def stop(self) -> None:
        assert self._bot is not None
        self._bot.terminate()
        code, said = await self._bot.end(STARTING)
        assert code == 0, said
        assert "s3cret" not in said

    async def ask(self, *questions: str) -> None:
        """Wait until the model has been called, or the question is let go."""
        for question in questions:
            self._asked += 1
            await self.discord.say(self._help, self.discord.add_member(f"asker-{self._asked}"), question)
            await asyncio.sleep(0.5)

    async def until_told(self, *beginnings: str, lasting: float = LASTING) -> None:
        """Wait until both places were told that, and some seconds more in which nothing else comes."""
        await self.discord.until(lambda: len(self.told()) >= 2 * len(beginnings), STARTING)
        await asyncio.sleep(lasting)
        assert sorted(self.told()) == sorted(2 * beginnings)

    def told(self) -> list[str]:
        return beginnings([*self.hook.texts, *(post.content for post in posts_in(self.discord, self._staff))])


async def nothing(_: Outage) -> None:
    pass


async def lose_discord(it: Outage) -> None:
    it.discord.fail_next("GET", "^/$", status=502, times=100_000)
    await it.discord.disconnect()


async def restore_discord(it: Outage) -> None:
    it.discord.forget_failures()


async def lose_model(it: Outage) -> None:
    it.model.otherwise = llm_scenes.status(503)
    await it.ask(*QUESTIONS)


async def restore_model(it: Outage) -> None:
    it.model.otherwise = answering()
    await it.ask(QUESTIONS[0])


async def lose_page(it: Outage) -> None:
    del it.site.paths[PAGE]


async def restore_page(it: Outage) -> None:
    it.site.paths[PAGE] = GUIDE


async def fill_disk(it: Outage) -> None:
    it.set_room(4e6)


async def make_room(it: Outage) -> None:
    it.set_room(1e10)


async def use_up(it: Outage) -> None:
    await it.ask(QUESTIONS[0])


async def raise_limit(it: Outage) -> None:
    await it.stop()
    await it.start(50)


Step = Callable[[Outage], Awaitable[None]]


class Drill(NamedTuple):
    """An outage and its messages. `meanwhile`: what goes on after the restart; `after`: when it is told, as a setting.

    Other outages are told no sooner than by default: without a model no page can be
    described either.
    """

    begin: Step
    end: Step
    trouble: str
    well: str
    meanwhile: Step = nothing
    answers_per_day: int = 50
    after: Mapping[str, float] = MappingProxyType({})


DRILLS = {
    "Discord away": Drill(
        lose_discord,
        restore_discord,
        "Discord is not connected",
        "Discord is connected again.",
        after={"discord_lost_minutes": 0.1},  # a start takes seconds
    ),
    "model down": Drill(
        lose_model,
        restore_model,
        "The model does not answer",
        "The model answers again.",
        meanwhile=lose_model,
        after={"model_failing_minutes": 1 / 60},
    ),
    "page gone": Drill(
        lose_page,
        restore_page,
        "Sources cannot be read",
        "All sources can be read again.",
        after={"source_failing_hours": 1 / 3600},
    ),
    "disk full": Drill(
        fill_disk, make_room, "The disk is nearly full, or cannot be written", "The disk has room again."
    ),
    "budget out": Drill(
        use_up,
        raise_limit,
        "The budget of the day is used up",
        "There is budget left for the day again.",
        meanwhile=use_up,
        answers_per_day=1,
    ),
}


@pytest.fixture
async def site() -> AsyncIterator[WebServer]:
    async with WebServer() as server:
        yield server


@pytest.mark.parametrize("name", DRILLS)
async def test_an_outage_is_told_once_and_so_is_its_end_over_a_restart(
    launch: Launch, discord_server: DiscordServer, llm_server: LLMServer, site: WebServer, data: Path, name: str
) -> None:
    drill = DRILLS[name]
    llm_server.otherwise = answering()
    it = Outage(launch, discord_server, llm_server, site, data)
    it.after.update(drill.after)
    await it.start(drill.answers_per_day)
    await discord_server.until(lambda: discord_server.gateway.sessions and site.count(PAGE), STARTING)
    await it.until_told()
    await drill.begin(it)
    await it.until_told(drill.trouble)
    await it.stop()
    await it.start(drill.answers_per_day)
    await drill.meanwhile(it)
    # A trouble that was forgotten would count anew, and then be told again.
    anew = drill.after.get("discord_lost_minutes", 0) * 60
    await it.until_told(drill.trouble, lasting=anew + LASTING)
    await drill.end(it)
    await it.until_told(drill.trouble, drill.well)
    await it.stop()
    assert not discord_server.unknown
