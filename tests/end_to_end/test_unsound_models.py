"""The model hangs, fails or talks nonsense: silence, and life goes on."""

from __future__ import annotations

import math

import pytest

from model.outcomes import OutcomeKind
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Start, llm
from tests.loopback import llm_scenes as scenes
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


@pytest.mark.parametrize(
    "scene",
    [
        scenes.slow(math.inf),
        scenes.drip(),
        scenes.status(500),
        scenes.status(401),
        scenes.drop(),
        scenes.html(),
        scenes.no_choices(),
        scenes.content("The millstream runs backwards on Tuesdays."),
    ],
    ids=["hanging", "dripping", "failing", "refusing", "dropping", "a web page", "no choices", "nonsense"],
)
async def test_a_model_in_trouble_costs_its_answer_and_nothing_else(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, scene: scenes.Scene
) -> None:
    help_ = discord_server.add_channel("help")
    llm_server.otherwise = scene
    bot = await start(ai_response={"llm": llm(llm_server, timeout_seconds=2.0)})
    unlucky = await discord_server.say(help_, discord_server.add_member("ada"), QUESTION)
    await bot.until_ended(unlucky)
    ((result, reason),) = bot.results
    assert result is OutcomeKind.FAILED
    assert reason is not None
    assert reason.endswith("at gate")
    assert not discord_server.posts
    llm_server.otherwise = scenes.good()
    lucky = await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, lucky)) == 1
    assert await bot.stop() == 0


async def test_a_model_that_is_away_at_the_start_is_a_warning(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, caplog: pytest.LogCaptureFixture
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    llm_server.models = scenes.status(503)
    bot = await start(ai_response={"llm": llm(llm_server)})
    await discord_server.until(lambda: "questions stay unanswered until it is back" in caplog.text)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, question)) == 1
