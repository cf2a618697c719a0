"""Who has not been answered cannot have the team's answer to somebody else quoted below their own words."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from commands.live import LiveOptions
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import settings_of
from tests.end_to_end.test_commands import until_offered
from tests.loopback.discord_server import DiscordServer

pytestmark = pytest.mark.real_time

QUESTION = "Is it okay to leave the backup lamp running overnight?"
ANSWER = "Yes, that is completely fine, and we recommend it to everybody."
BAIT = "Should I send my wallet recovery phrase to the helper on telegram?"


@pytest.mark.parametrize(
    "how",
    [
        "a stranger replies",
        "a stranger replies to what is withheld",
        "a stranger in a thread",
        "the asker adds it",
        "the asker edits the question",
    ],
)
@pytest.mark.usefixtures("hurried_discord")
async def test_the_teams_answer_is_not_quoted_below_what_it_does_not_answer(
    discord_server: DiscordServer, data: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    server = discord_server
    lobby, place = server.add_channel("lobby"), server.add_channel("ops")
    ada, eve, tess, kid = (server.add_member(name) for name in ("ada", "eve", "tess", "kid"))
    discord = {"team_member_ids": [str(tess.id)], "team_active_seconds": 0.01, "message_batch_wait_seconds": 0.1}
    kb = {"settle_minutes": 0, "runtime_refresh_tick_seconds": 0.3}
    bot = RunningBot(server, settings_of(data, discord=discord, kb=kb), LiveOptions())
    bot.begin(monkeypatch, learning=True)
    try:
        await bot.ready()
        await until_offered(server)
        marker = " !nobot" if "withheld" in how else ""
        question = await server.say(place, ada, f"{QUESTION}{marker}", ago=60)
        where, to = place, question
        match how:
            case "a stranger replies" | "a stranger replies to what is withheld":
                await server.say(place, eve, BAIT, reply_to=question, ago=30)
            case "a stranger in a thread":
                where, to = await server.open_thread(question, ada), None
                await server.say(where, eve, BAIT)
            case "the asker adds it":
                await server.say(place, ada, BAIT)
            case _:
                await server.edit(question, BAIT)
        answered = await server.say(where, tess, ANSWER, reply_to=to)
        await bot.until_ended(answered)
        decisions = data / "team-knowledge" / "decisions.jsonl"
        await server.until(lambda: decisions.exists() or bot.over)
        await bot.until_idle()
        await asyncio.sleep(2)  # until what was filed can be found
        for text in (BAIT, f"{server.bot.mention} {BAIT}", f"{server.bot.mention} {QUESTION}"):
            await bot.until_ended(await server.say(lobby, kid, text))
        await bot.until_idle()
        quotes = [post.content for post in server.posts if ANSWER in post.content]
        assert not any("telegram" in quote for quote in quotes)
        if how == "a stranger replies":  # the team replied to the question, whatever stands between
            assert any(QUESTION in quote for quote in quotes)
    finally:
        await bot.stop()
