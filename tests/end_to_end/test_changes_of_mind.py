"""Edits, deletions, and people who are faster, while the bot waits or thinks."""

from __future__ import annotations

import math

import pytest

from model.outcomes import OutcomeKind, Reason
from tests.end_to_end.bots import RunningBot, answers_to
from tests.end_to_end.conftest import Start, llm
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_scenes import slow
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel, User

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


@pytest.fixture
async def help_(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("help")


@pytest.fixture
async def ada(discord_server: DiscordServer) -> User:
    return discord_server.add_member("ada")


@pytest.fixture
async def kim(discord_server: DiscordServer) -> User:
    """Of the team."""
    return discord_server.add_member("kim")


async def thinking(bot: RunningBot, server: DiscordServer, model: LLMServer) -> None:
    await server.until(lambda: model.seen or bot.over)


async def test_a_question_deleted_while_the_model_thinks_is_not_answered(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, help_: Channel, ada: User
) -> None:
    """Pitfall 29."""
    llm_server.otherwise = slow(math.inf)
    bot = await start(ai_response={"llm": llm(llm_server)})
    question = await discord_server.say(help_, ada, QUESTION)
    await thinking(bot, discord_server, llm_server)
    await discord_server.delete(question)
    await bot.until_ended(question)
    assert bot.results == [(OutcomeKind.CANCELLED, Reason.DELETED)]
    assert not discord_server.posts


async def test_a_team_member_who_answers_while_the_model_thinks_is_left_the_word(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, help_: Channel, ada: User, kim: User
) -> None:
    llm_server.otherwise = slow(math.inf)
    bot = await start(ai_response={"llm": llm(llm_server)}, discord={"team_member_ids": [kim.id]})
    question = await discord_server.say(help_, ada, QUESTION)
    await thinking(bot, discord_server, llm_server)
    await discord_server.say(help_, kim, "with lf backup restore", reply_to=question)
    await bot.until_ended(question)
    assert bot.results[0] == (OutcomeKind.CANCELLED, Reason.TEAM_ANSWERED)
    assert not discord_server.posts


async def test_the_bot_keeps_out_of_its_thread_once_a_team_member_has_joined_it(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User, kim: User
) -> None:
    """Pitfall 34."""
    bot = await start(discord={"team_member_ids": [kim.id]})
    first = await discord_server.say(help_, ada, QUESTION)
    (post,) = await bot.until_posts(1)
    helped = await discord_server.say(post.place, kim, "let me take this one")
    await bot.until_ended(helped)
    second = await discord_server.say(post.place, ada, "how do I turn off face recognition?")
    await bot.until_ended(second)
    assert (OutcomeKind.SKIPPED, Reason.TEAM_IS_ANSWERING) in bot.results
    assert len(discord_server.posts) == 1
    # A person who mentions the bot gets an answer all the same.
    asked = await discord_server.say(post.place, ada, f"{discord_server.bot.mention} {QUESTION}")

    await bot.until_posts(2)
    assert [each.reference for each in answers_to(discord_server, first)] == [None, asked.id]
