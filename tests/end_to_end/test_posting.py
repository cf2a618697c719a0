"""Discord refuses, stumbles, or asks to wait, just when an answer is posted."""

from __future__ import annotations

import pytest

from clock import now
from model.outcomes import OutcomeKind, Reason
from services.discord.live import calls
from tests.end_to_end.bots import answers_to
from tests.end_to_end.conftest import Start, llm
from tests.end_to_end.scenes import answering
from tests.loopback import payloads
from tests.loopback.discord_server import DiscordServer
from tests.loopback.llm_server import LLMServer
from tests.loopback.model import Channel, User
from tests.loopback.payloads import Payload
from tests.loopback.permissions import Permission

pytestmark = pytest.mark.real_time

QUESTION = "how can I restore a backup?"


@pytest.fixture
async def help_(discord_server: DiscordServer) -> Channel:
    return discord_server.add_channel("help")


@pytest.fixture
async def ada(discord_server: DiscordServer) -> User:
    return discord_server.add_member("ada")


@pytest.mark.parametrize("route", ["/threads$", "/messages$"])
async def test_a_rate_limit_is_waited_out(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User, route: str
) -> None:
    bot = await start()
    discord_server.rate_limit_next("POST", route, times=2)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, question)) == 1
    assert discord_server.failures_to_come == 0


async def test_a_ban_of_the_address_is_not_argued_with(
    start: Start, discord_server: DiscordServer, help_: Channel, ada: User
) -> None:
    bot = await start()
    discord_server.rate_limit_next("POST", "/threads$", via=False)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_ended(question)
    assert bot.results == [(OutcomeKind.FAILED, "PostFailed at reply")]
    assert discord_server.count("POST", "/threads$") == 1
    assert not discord_server.posts
    again = await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, again)) == 1


CANNOT_POST = (OutcomeKind.SKIPPED, Reason.CANNOT_POST)


@pytest.mark.parametrize("permission", [Permission.CREATE_PUBLIC_THREADS, Permission.SEND_MESSAGES_IN_THREADS])
async def test_where_nothing_can_be_posted_no_model_is_asked_until_it_can(
    start: Start,
    discord_server: DiscordServer,
    llm_server: LLMServer,
    help_: Channel,
    ada: User,
    caplog: pytest.LogCaptureFixture,
    permission: Permission,
) -> None:
    """Pitfalls 24, 35 and 76."""
    llm_server.otherwise = answering()
    bot = await start(ai_response={"llm": llm(llm_server)})
    discord_server.deny(help_, discord_server.bot, permission)
    for name in ("bob", "cleo"):
        question = await discord_server.say(help_, discord_server.add_member(name), QUESTION)
        await bot.until_ended(question)
    assert bot.results == [CANNOT_POST] * 2
    assert not llm_server.seen
    assert not discord_server.count("POST", "/threads$|/messages$")
    named = {Permission.CREATE_PUBLIC_THREADS: "Create Public Threads"}.get(permission, "Send Messages in Threads")
    told = f"questions in channel {help_.id} stay unanswered: the bot lacks {named}"
    assert [line for line in caplog.messages if "stay unanswered" in line] == [told]
    discord_server.allow(help_, discord_server.bot, permission)
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, question)) == 1


@pytest.mark.parametrize("event", ["CHANNEL_UPDATE", "GUILD_ROLE_UPDATE", "GUILD_MEMBER_UPDATE", "GUILD_UPDATE"])
async def test_a_refusal_is_remembered_until_its_cause_may_have_gone(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, help_: Channel, ada: User, event: str
) -> None:
    """Pitfall 76: also one that no permission explains."""
    llm_server.otherwise = answering()
    bot = await start(ai_response={"llm": llm(llm_server)})
    body = {"message": "Missing Access", "code": 50001}
    discord_server.fail_next("POST", "/threads$", status=403, body=body)
    refused = await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    await bot.until_ended(refused)
    asked = len(llm_server.seen)
    unasked = await discord_server.say(help_, discord_server.add_member("cleo"), QUESTION)
    await bot.until_ended(unasked)
    assert bot.results == [(OutcomeKind.FAILED, "PostFailed at reply"), CANNOT_POST]
    assert len(llm_server.seen) == asked
    for session in discord_server.gateway.sessions.values():
        session.tell(event, changed(discord_server, help_, event), always=True)
    await discord_server.gateway.flush()
    question = await discord_server.say(help_, ada, QUESTION)
    await bot.until_posts(1)
    assert len(answers_to(discord_server, question)) == 1


def changed(server: DiscordServer, channel: Channel, event: str) -> Payload:
    """What Discord tells of a change that may concern the bot."""
    guild = server.guild
    bot = guild.members[server.bot.id]
    match event:
        case "CHANNEL_UPDATE":
            return payloads.channel(channel, guild)
        case "GUILD_ROLE_UPDATE":
            return {"guild_id": str(guild.id), "role": payloads.role(bot.roles[0], 1)}
        case "GUILD_MEMBER_UPDATE":
            return {**payloads.member(bot), "guild_id": str(guild.id)}
        case _:
            return {
                "id": str(guild.id),
                "name": guild.name,
                "roles": [payloads.role(each, 1) for each in guild.roles.values()],
            }


async def test_a_thread_is_named_after_the_question_and_not_after_the_greeting(
    start: Start, discord_server: DiscordServer, llm_server: LLMServer, help_: Channel, ada: User
) -> None:
    llm_server.otherwise = answering()
    await start(ai_response={"llm": llm(llm_server)}, discord={"message_batch_wait_seconds": 0.5})
    await discord_server.say(help_, ada, "hi there")
    await discord_server.say(help_, ada, f"Hello everyone! {QUESTION}\nI looked everywhere.")
    await discord_server.until(lambda: discord_server.posts)
    thread = discord_server.posts[0].thread
    assert thread is not None
    assert thread.name == QUESTION


async def test_where_a_server_has_too_many_threads_no_model_is_asked_for_ten_minutes(
    start: Start,
    discord_server: DiscordServer,
    llm_server: LLMServer,
    help_: Channel,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pitfall 76: the limit is that of the server, so it holds in its other channels, too."""
    llm_server.otherwise = answering()
    other = discord_server.add_channel("other")
    bot = await start(ai_response={"llm": llm(llm_server)})
    body = {"message": "Maximum number of active threads reached", "code": 160006}
    discord_server.fail_next("POST", "/threads$", status=400, body=body)
    refused = await discord_server.say(help_, discord_server.add_member("bob"), QUESTION)
    await bot.until_ended(refused)
    asked = len(llm_server.seen)
    for channel, name in ((help_, "cleo"), (other, "dan")):
        await bot.until_ended(await discord_server.say(channel, discord_server.add_member(name), QUESTION))
    assert bot.results == [(OutcomeKind.FAILED, "PostFailed at reply"), CANNOT_POST, CANNOT_POST]
    assert len(llm_server.seen) == asked
    assert [line for line in caplog.messages if "stay unanswered" in line] == [
        f"questions in channel {channel.id} stay unanswered: the server has too many active threads"
        for channel in (help_, other)
    ]
    monkeypatch.setattr(calls, "now", lambda: now() + calls.REFUSED_SECONDS)
    await discord_server.say(other, discord_server.add_member("eli"), QUESTION)
    await bot.until_posts(1)
