"""What becomes of questions while the line to Discord breaks."""

from __future__ import annotations

import pytest

from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer

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
