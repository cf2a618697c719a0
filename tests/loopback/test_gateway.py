"""Connections that break, sessions that end, and logins that are refused."""

from __future__ import annotations

import asyncio

import discord
import pytest

from tests.loopback.clients import Listening, logged_in, support_intents
from tests.loopback.discord_server import DiscordServer

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("hurried_discord")]


async def test_a_wrong_token_is_refused_at_login(discord_server: DiscordServer) -> None:
    client = Listening(support_intents())
    with pytest.raises(discord.LoginFailure):
        await client.start("wrong")
    await client.close()
    assert discord_server.gateway.identified == 0


async def test_a_token_that_became_wrong_is_refused_by_the_gateway(discord_server: DiscordServer) -> None:
    client = Listening(support_intents())
    await client.login(discord_server.token)
    client.http.token = "changed"
    with pytest.raises(discord.ConnectionClosed) as closed:
        await client.connect()
    assert closed.value.code == 4004


async def test_an_intent_that_is_switched_off_is_refused(discord_server: DiscordServer) -> None:
    intents = support_intents()
    intents.members = True
    client = Listening(intents)
    with pytest.raises(discord.PrivilegedIntentsRequired):
        await client.start(discord_server.token)
    await client.close()


@pytest.mark.parametrize("code", [4000, 1001, None])
async def test_a_dropped_connection_resumes_and_hears_what_it_missed_in_order(
    discord_server: DiscordServer, code: int | None
) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        await discord_server.say(channel, asker, "before")
        await discord_server.disconnect(code)
        missed = [await discord_server.say(channel, asker, text) for text in ("one", "two", "three")]
        await discord_server.until(lambda: "resumed" in client.events)
        await discord_server.until(lambda: len(client.heard) == 4)
        assert [message.id for message in client.heard[1:]] == [message.id for message in missed]
    assert (discord_server.gateway.identified, discord_server.gateway.resumed) == (1, 1)


async def test_a_second_resume_replays_no_more_than_was_missed(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        for text in ("one", "two"):
            client.events.clear()
            await discord_server.disconnect()
            await discord_server.say(channel, asker, text)
            await discord_server.until(lambda: "resumed" in client.events)
        await discord_server.say(channel, asker, "three")
        await discord_server.until(lambda: "three" in client.texts)
        assert client.texts == ["one", "two", "three"]
        assert client.events == ["resumed"]


async def test_a_requested_reconnect_resumes(discord_server: DiscordServer) -> None:
    async with logged_in(discord_server) as client:
        await discord_server.request_reconnect()
        await discord_server.until(lambda: "resumed" in client.events)
    assert discord_server.gateway.identified == 1


async def test_an_invalid_session_logs_in_anew_and_hears_nothing_of_what_it_missed(
    discord_server: DiscordServer,
) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        client.events.clear()
        await discord_server.invalidate_session()
        await discord_server.say(channel, asker, "missed")
        await discord_server.until(lambda: "ready" in client.events)
        await discord_server.say(channel, asker, "heard")
        await discord_server.until(lambda: client.heard)
        assert client.texts == ["heard"]
        assert "resumed" not in client.events
    assert discord_server.gateway.identified == 2


async def test_a_session_that_ended_while_disconnected_cannot_be_resumed(discord_server: DiscordServer) -> None:
    async with logged_in(discord_server) as client:
        client.events.clear()
        discord_server.fail_next("GET", "^/$", status=503)
        await discord_server.disconnect()
        await discord_server.invalidate_session()
        await discord_server.until(lambda: "ready" in client.events)
        assert "resumed" not in client.events
    assert discord_server.failures_to_come == 0


async def test_a_message_may_be_delivered_twice_or_never(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        await discord_server.say(channel, asker, "never", deliver=False)
        await discord_server.duplicate(await discord_server.say(channel, asker, "twice"))
        await discord_server.until(lambda: len(client.heard) == 2)
    assert client.texts == ["twice", "twice"]


async def test_one_odd_payload_ends_the_connection_for_good(discord_server: DiscordServer) -> None:
    client = Listening(support_intents())
    running = asyncio.create_task(client.start(discord_server.token))
    await discord_server.until(lambda: "ready" in client.events)
    await discord_server.send_raw("MESSAGE_CREATE", {"id": "1", "channel_id": "odd"})
    with pytest.raises(ValueError, match="odd"):
        await asyncio.wait_for(running, 2)
    await client.close()


async def test_heartbeats_are_acknowledged(discord_server: DiscordServer) -> None:
    discord_server.gateway.heartbeat_seconds = 0.02
    async with logged_in(discord_server) as client:
        await discord_server.until(lambda: discord_server.gateway.heartbeats >= 3)
        await discord_server.until(lambda: client.latency < 1)
    assert discord_server.gateway.identified == 1


async def test_members_are_sent_when_asked_for(discord_server: DiscordServer) -> None:
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        assert client.guilds[0].get_member(asker.id) is None
        (member,) = await client.guilds[0].query_members(user_ids=[asker.id])
        assert member.name == "asker"
