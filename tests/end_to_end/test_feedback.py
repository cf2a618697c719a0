"""Votes under answers, and the step to a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.sessions import Intent

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


def votes(bot: RunningBot) -> list[dict[str, Any]]:
    path = bot.settings.app.data_dir / "feedback.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def test_votes_are_offered_under_the_last_piece_and_kept(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer
) -> None:
    llm_server.otherwise = answering(AnswerResult={"answer": "word " * 500})
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start(ai_response={"llm": llm(llm_server)}, discord={"feedback": True})
    question = await discord_server.say(help_, ada, QUESTION)
    first, last = await bot.until_posts(2)
    assert not first.message.reactions
    assert last.message.reactions == {emoji: [discord_server.bot.id] for emoji in ("👍", "👎")}
    await discord_server.react(last.message, ada, "👎")
    await discord_server.unreact(last.message, ada, "👎")
    await discord_server.react(last.message, ada, "👍")
    await discord_server.react(first.message, ada, "👍")
    await discord_server.react(last.message, ada, "🎉")
    await discord_server.until(lambda: len(votes(bot)) == 3)
    assert await bot.stop() == 0
    assert [vote["vote"] for vote in votes(bot)] == ["down", "withdrawn", "up"]
    assert {vote["message_id"] for vote in votes(bot)} == {str(last.id)}
    assert {vote["question"] for vote in votes(bot)} == {question.content}
    assert str(ada.id) not in json.dumps([vote["voter"] for vote in votes(bot)])


async def test_without_feedback_neither_votes_nor_their_intent_are_asked_for(
    start: Start, discord_server: DiscordServer
) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    bot = await start()
    await discord_server.say(help_, ada, QUESTION)
    (answer,) = await bot.until_posts(1)
    assert not answer.message.reactions
    (session,) = discord_server.gateway.sessions.values()
    needed = Intent.GUILDS | Intent.GUILD_MESSAGES | Intent.MESSAGE_CONTENT | Intent.GUILD_MESSAGE_TYPING
    assert session.intents == needed
