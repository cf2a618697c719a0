"""How many requests a message costs, counted by Discord."""

from __future__ import annotations

import pytest

from model.outcomes import Reason
from tests.end_to_end.conftest import Start
from tests.loopback.discord_server import DiscordServer
from tests.loopback.model import Message

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


async def test_one_question_in_a_thread_of_two_hundred_replies_costs_at_most_five_requests(
    start: Start, discord_server: DiscordServer
) -> None:
    """Pitfall 30."""
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    people = [ada, *(discord_server.add_member(name) for name in ("bob", "cleo"))]
    starter = await discord_server.say(help_, ada, "it is about backups", ago=5000)
    thread = await discord_server.open_thread(starter, discord_server.bot, ago=5000)
    last: Message = await discord_server.say(thread, ada, "so", ago=4900)
    for n in range(200):
        last = await discord_server.say(thread, people[n % 3], f"remark {n}", reply_to=last, ago=4800 - n)
    bot = await start()
    before = len(discord_server.requests)
    await discord_server.say(thread, ada, QUESTION, reply_to=last)
    await bot.until_posts(1)
    asked = [request for request in discord_server.requests[before:] if request.method == "GET"]
    assert len(asked) <= 5
    # Once in memory, the thread is not asked for again.
    before = len(discord_server.requests)
    await discord_server.say(thread, ada, "how do I turn off face recognition?")
    await bot.until_posts(2)
    assert [request.method for request in discord_server.requests[before:]] == ["POST"]


async def test_what_is_not_for_the_bot_costs_no_request_at_all(start: Start, discord_server: DiscordServer) -> None:
    """Pitfall 30."""
    help_ = discord_server.add_channel("help")
    ada, bob = discord_server.add_member("ada"), discord_server.add_member("bob")
    old = await discord_server.say(help_, ada, "anybody else here?", ago=4000)
    theirs = await discord_server.open_thread(old, ada, ago=4000)
    bot = await start()
    await discord_server.until(lambda: discord_server.state.commands)
    before = len(discord_server.requests)
    ignored = [
        await discord_server.say(help_, bob, QUESTION, reply_to=old),
        await discord_server.say(theirs, bob, QUESTION),
        await discord_server.say(help_, discord_server.add_webhook("news"), QUESTION),
        await discord_server.say(help_, discord_server.add_member("other bot", bot=True), QUESTION),
    ]
    await bot.until_ended(*ignored)
    assert len(bot.ignored(Reason.NOT_ADDRESSED)) == 2
    assert len(bot.ignored(Reason.BOT)) == 2
    assert len(discord_server.requests) == before
