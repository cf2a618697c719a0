"""What becomes of questions while the line to Discord breaks."""

from __future__ import annotations

import asyncio
import logging

import pytest

from model.outcomes import Reason
from services.discord.protocols import GatewayRefused
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer
from tests.loopback.permissions import Permission
from tests.loopback.sessions import Intent

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


@pytest.mark.parametrize("code", [4000, None])
async def test_a_question_asked_while_the_line_is_down_is_answered_after_the_resume(
    start: Start, discord_server: DiscordServer, code: int | None
) -> None:
    """Pitfall 25."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await discord_server.disconnect(code)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, question)) == 1
    assert (discord_server.gateway.identified, discord_server.gateway.resumed) == (1, 1)


async def test_a_question_lost_with_the_session_is_fetched_and_answered(
    start: Start, discord_server: DiscordServer
) -> None:
    """Pitfall 25."""
    help_, ada, bob = discord_server.add_channel("help"), *(discord_server.add_member(name) for name in ("ada", "bob"))
    bot = await start()
    first = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    lost = await discord_server.say(help_, bob, QUESTION, deliver=False)
    await discord_server.invalidate_session()
    await bot.until_posts(2)
    assert [len(answers_to(discord_server, question)) for question in (first, lost)] == [1, 1]
    assert discord_server.gateway.identified == 2


async def test_a_question_lost_in_a_channel_that_was_quiet_so_far_is_fetched_too(
    start: Start, discord_server: DiscordServer
) -> None:
    """Pitfall 25."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    lost = await discord_server.say(help_, ada, QUESTION, deliver=False)
    await discord_server.invalidate_session()
    await bot.until_posts(1)
    assert len(answers_to(discord_server, lost)) == 1


async def test_an_event_delivered_twice_is_answered_once(start: Start, discord_server: DiscordServer) -> None:
    """Pitfall 25."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    question = await discord_server.say(help_, ada, QUESTION)
    await discord_server.duplicate(question)
    await bot.until_posts(1)
    await discord_server.duplicate(question)
    await discord_server.until(lambda: len(bot.ignored(Reason.DUPLICATE)) == 2)
    marker = await discord_server.say(help_, discord_server.add_member("bob"), "thanks all")
    await bot.until_ended(marker)
    assert len(discord_server.posts) == 1


async def test_a_payload_that_kills_the_parser_does_not_kill_the_bot(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await discord_server.send_raw("MESSAGE_CREATE", {"id": "5", "content": "odd", "channel_id": "not a number"})
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, question)) == 1
    assert "ignored an odd MESSAGE_CREATE" in caplog.text
    assert discord_server.gateway.resumed == 0


async def test_a_wrong_token_ends_the_bot_with_one_line_and_one_try(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.add_channel("help")
    right, discord_server.token = discord_server.token, "wrong.token"
    bot = await start(ready=False)
    assert bot.task is not None
    await asyncio.wait({bot.task}, timeout=5)
    discord_server.token = right
    with pytest.raises(GatewayRefused, match=r"^Discord refuses the token \(discord.token\)"):
        bot.result()
    assert discord_server.count("GET", "/users/@me") == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_a_missing_message_content_intent_ends_the_bot_with_one_line(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    discord_server.add_channel("help")
    discord_server.gateway.approved = Intent(0)
    bot = await start(ready=False)
    assert bot.task is not None
    await asyncio.wait({bot.task}, timeout=5)
    with pytest.raises(GatewayRefused, match="Message Content Intent"):
        bot.result()
    assert discord_server.gateway.identified == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_missing_permissions_are_reported_once(
    start: Start, discord_server: DiscordServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Pitfall 35."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    discord_server.deny(help_, discord_server.bot, Permission.SEND_MESSAGES_IN_THREADS)
    bot = await start()
    await discord_server.invalidate_session()
    await discord_server.until(lambda: discord_server.gateway.identified == 2)
    marker = await discord_server.say(help_, ada, "good morning all")
    await bot.until_ended(marker)
    told = [record.getMessage() for record in caplog.records if "server 'loopback'" in record.getMessage()]
    assert len(told) == 1
    assert "Send Messages in Threads in #help" in told[0]
