"""Failures that a test orders, and what discord.py makes of them."""

from __future__ import annotations

import asyncio
import math

import aiohttp
import discord
import pytest

from tests.loopback.clients import logged_in
from tests.loopback.discord_server import DiscordServer

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("hurried_discord")]

MESSAGES = r"^/channels/\d+/messages$"


async def test_a_rate_limit_is_waited_for_and_tried_again(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    discord_server.rate_limit_next("POST", MESSAGES, times=2)
    async with logged_in(discord_server) as client:
        await client.text_channel(channel.id).send("hi")
    sent = [request.status for request in discord_server.requests if request.method == "POST"]
    assert sent == [429, 429, 200]
    assert len(discord_server.posts) == 1


async def test_a_ban_is_not_tried_again(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    discord_server.rate_limit_next("POST", MESSAGES, via=False)
    async with logged_in(discord_server) as client:
        with pytest.raises(discord.HTTPException) as refused:
            await client.text_channel(channel.id).send("hi")
    assert refused.value.status == 429
    assert discord_server.count("POST", MESSAGES) == 1


async def test_a_bad_gateway_is_tried_again(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    discord_server.fail_next("POST", MESSAGES, status=502)
    async with logged_in(discord_server) as client:
        await client.text_channel(channel.id).send("hi")
    assert discord_server.count("POST", MESSAGES) == 2
    assert discord_server.failures_to_come == 0


async def test_a_message_stored_before_the_failure_is_not_posted_twice_under_its_nonce(
    discord_server: DiscordServer,
) -> None:
    channel = discord_server.add_channel("help")
    discord_server.fail_next("POST", MESSAGES, status=502, times=5, after_effect=True)
    async with logged_in(discord_server) as client:
        with pytest.raises(discord.DiscordServerError):
            await client.text_channel(channel.id).send("hi", nonce="same")
        sent = await client.text_channel(channel.id).send("hi", nonce="same")
    assert [post.id for post in discord_server.posts] == [sent.id]
    assert discord_server.count("POST", MESSAGES) == 6


async def test_a_cut_connection_may_hide_that_a_message_was_posted(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    discord_server.fail_next("POST", MESSAGES, drop=True, after_effect=True)
    async with logged_in(discord_server) as client:
        with pytest.raises(aiohttp.ClientError):
            await client.text_channel(channel.id).send("hi")
    assert len(discord_server.posts) == 1
    assert discord_server.requests[-1].status is None


async def test_an_answer_may_be_late_or_never_come(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    discord_server.fail_next("POST", MESSAGES, delay=0.05)
    discord_server.fail_next("POST", MESSAGES, delay=math.inf)
    async with logged_in(discord_server) as client:
        before = asyncio.get_running_loop().time()
        await client.text_channel(channel.id).send("late")
        assert asyncio.get_running_loop().time() - before >= 0.05
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.text_channel(channel.id).send("never"), 0.05)
    assert [post.content for post in discord_server.posts] == ["late"]


async def test_a_refusal_may_be_ordered_with_its_body(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    question = await discord_server.say(channel, asker, "Why?")
    body = {"message": "Maximum number of active threads reached", "code": 160006}
    discord_server.fail_next("POST", "/threads$", status=400, body=body)
    async with logged_in(discord_server) as client:
        with pytest.raises(discord.HTTPException) as refused:
            await client.text_channel(channel.id).get_partial_message(question.id).create_thread(name="x")
    assert refused.value.code == 160006
