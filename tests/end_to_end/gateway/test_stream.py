import asyncio
import threading

import discord
import pytest

from clock import now
from services.discord.live.rest import RestFetcher
from services.discord.live.session import Client, intents
from streams.gateway import Gateway, GatewayHooks, GatewayRules, observable
from tests.end_to_end.gateway.conftest import Connect
from tests.loopback.discord_server import DiscordServer

pytestmark = pytest.mark.real_time


async def test_everything_comes_in_the_order_in_which_it_was_sent(
    connect: Connect, discord_server: DiscordServer
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    live = await connect()
    for n in range(200):
        discord_server.state.write(channel, ada, str(n))
    await discord_server.until(lambda: len(live.texts) == 200)
    assert [dispatch.t for dispatch in live.seen[:2]] == ["READY", "GUILD_CREATE"]
    assert live.texts == [str(n) for n in range(200)]
    assert abs(live.seen[-1].at - now()) < 5


async def test_edits_deletions_and_reactions_come_as_they_are(connect: Connect, discord_server: DiscordServer) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    live = await connect()
    message = await discord_server.say(channel, ada, "first")
    await discord_server.edit(message, "second")
    await discord_server.react(message, ada, "👍")
    await discord_server.delete(message)
    await discord_server.until(lambda: live.of("MESSAGE_DELETE"))
    assert [dispatch.t for dispatch in live.seen[-4:]] == [
        "MESSAGE_CREATE",
        "MESSAGE_UPDATE",
        "MESSAGE_REACTION_ADD",
        "MESSAGE_DELETE",
    ]


async def test_an_event_that_discord_py_does_not_know_comes_too(
    connect: Connect, discord_server: DiscordServer
) -> None:
    live = await connect()
    await discord_server.send_raw("SOMETHING_NEW", {"id": "1"})
    await discord_server.until(lambda: live.of("SOMETHING_NEW"))


async def test_stopping_emits_what_was_received_and_leaves_nothing_behind(
    connect: Connect, discord_server: DiscordServer, client: Client
) -> None:
    channel, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    live = await connect()
    before = asyncio.all_tasks()
    await discord_server.say(channel, ada, "the last word")
    await discord_server.until(lambda: live.texts)
    await live.stop()
    assert live.texts == ["the last word"]
    assert live.error is None
    # The REST side is still there for answers under way.
    assert (await client.http.get_channel(channel.id))["id"] == str(channel.id)
    await client.close()
    await discord_server.until(lambda: not discord_server.gateway.connections)
    await discord_server.until(lambda: not _ours(asyncio.all_tasks() - before))
    await discord_server.until(lambda: not [t for t in threading.enumerate() if t.name.startswith("keep-alive")])


def _ours(tasks: set[asyncio.Task[object]]) -> list[asyncio.Task[object]]:
    return [task for task in tasks if task is not asyncio.current_task() and "aiohttp" not in repr(task)]


async def test_disposing_cuts_off_at_once(connect: Connect, discord_server: DiscordServer) -> None:
    live = await connect()
    live.subscription.dispose()
    await discord_server.until(lambda: not discord_server.gateway.connections)
    assert not live.ended.is_set()
    live.ended.set()


async def test_a_subscriber_that_raises_is_reported_and_disconnected(
    discord_server: DiscordServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: object) -> None:
        raise ValueError("a fault of ours")

    fetcher = RestFetcher(client.http)
    gateway = Gateway(
        client,
        discord_server.token,
        fetcher=fetcher,
        watermarks=dict[int, int],
        rules=GatewayRules(catch_up_minutes=0),
        hooks=GatewayHooks(),
    )
    observable(gateway).subscribe(refuse)
    await discord_server.until(lambda: "the live stream has ended" in caplog.text)
    await discord_server.until(lambda: not discord_server.gateway.connections)


async def test_what_the_bot_says_of_itself_holds_no_more_intents_than_it_needs(
    connect: Connect, discord_server: DiscordServer
) -> None:
    await connect()
    (session,) = discord_server.gateway.sessions.values()
    assert session.intents == intents(feedback=True).value
    assert dict(intents(feedback=False)) == dict(
        discord.Intents(guilds=True, guild_messages=True, message_content=True, guild_typing=True)
    )
