"""Who types is waited for: the whole bot against the loopback Discord, in virtual time, with the shipped times."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from assembly.answering import ModelOptions
from commands.live import LiveOptions
from commands.replay import ReplayOptions
from model.messages import snowflake_time
from model.outcomes import OutcomeKind
from tests.end_to_end.bots import RunningBot
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.end_to_end.test_recording import replayed, said_live
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Message, Place, Role, User

pytestmark = pytest.mark.virtual_sockets

SHIPPED = {"message_batch_wait_seconds": 60, "message_batch_settle_seconds": 15}
QUESTION = "how can I restore a backup on Windows?"


@pytest.fixture
async def help_(discord_server: DiscordServer) -> Place:
    return discord_server.add_channel("help")


@pytest.fixture
async def team(discord_server: DiscordServer) -> Role:
    return discord_server.add_role("team")


@pytest.fixture
async def bot(start: Start, help_: Place, team: Role, llm_server: LLMServer) -> RunningBot:
    """In a server with a channel, with a model that answers at once."""
    _ = help_
    llm_server.otherwise = answering()
    return await start(ai_response={"llm": llm(llm_server)}, discord={**SHIPPED, "team_role_ids": [team.id]})


async def asks(server: DiscordServer, place: Place, user: User, text: str = QUESTION) -> Message:
    """As people do: they type, then there is a message."""
    await server.type_in(place, user)
    await asyncio.sleep(4)
    return await server.say(place, user, text)


async def types(server: DiscordServer, place: Place, user: User, seconds: int) -> None:
    for _ in range(0, seconds, 10):
        await server.type_in(place, user)
        await asyncio.sleep(10)


def waited(server: DiscordServer, last: Message) -> list[float]:
    """Seconds from a message to each of the bot's posts."""
    return [snowflake_time(post.id) - snowflake_time(last.id) for post in server.posts]


async def test_a_finished_question_is_answered_fifteen_seconds_after_its_last_message(
    bot: RunningBot, discord_server: DiscordServer, help_: Place
) -> None:
    ada = discord_server.add_member("ada")
    await asks(discord_server, help_, ada, "hi all,")
    last = await asks(discord_server, help_, ada)
    await asyncio.sleep(100)
    assert waited(discord_server, last) == [15]
    assert bot.results == [(OutcomeKind.REPLIED, None)]


async def test_a_recorded_session_with_typing_in_it_replays_to_the_same_batches(
    start: Start,
    llm_server: LLMServer,
    help_: Place,
    discord_server: DiscordServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recording, exchanges = tmp_path / "session.jsonl", tmp_path / "exchanges.jsonl"
    llm_server.otherwise = answering()
    ada, bob = discord_server.add_member("ada"), discord_server.add_member("bob")
    options = LiveOptions(record=recording, models=ModelOptions(record=exchanges))
    bot = await start(options, ai_response={"llm": llm(llm_server)}, discord=SHIPPED)
    await asks(discord_server, help_, ada)
    await discord_server.say(help_, bob, "does it run on a mac?")
    await types(discord_server, help_, ada, 80)
    await discord_server.say(help_, ada, "and where does it keep them?")
    await asyncio.sleep(100)
    assert await bot.stop() == 0
    assert "TYPING_START" in recording.read_text()
    again = ReplayOptions(recording, as_json=True, models=ModelOptions(replay=exchanges))
    assert await replayed(bot, again, capsys) == said_live(bot.outcomes)


async def test_an_answer_is_held_back_once_while_a_team_member_types(
    bot: RunningBot, discord_server: DiscordServer, help_: Place, team: Role
) -> None:
    ada, tess = discord_server.add_member("ada"), discord_server.add_member("tess", team)
    last = await asks(discord_server, help_, ada)
    await asyncio.sleep(8)
    await types(discord_server, help_, tess, 60)
    assert waited(discord_server, last) == [15 + 20]
    assert bot.results == [(OutcomeKind.REPLIED, None)]
