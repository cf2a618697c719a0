"""The loopback Discord, as an unmodified discord.py client meets it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import discord
import pytest

from tests.loopback.discord_server import TOKEN, DiscordServer

pytestmark = [pytest.mark.real_time, pytest.mark.usefixtures("hurried_discord")]


class Listening(discord.Client):
    """discord.py as it is, noting what it hears."""

    def __init__(self, intents: discord.Intents) -> None:
        super().__init__(intents=intents, guild_ready_timeout=0.02)
        self.heard: list[discord.Message] = []
        self.events: list[str] = []

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    async def on_ready(self) -> None:
        self.events.append("ready")

    async def on_resumed(self) -> None:
        self.events.append("resumed")

    @property
    def texts(self) -> list[str]:
        return [message.content for message in self.heard]


def support_intents() -> discord.Intents:
    return discord.Intents(guilds=True, guild_messages=True, message_content=True, guild_reactions=True)


@contextlib.asynccontextmanager
async def logged_in(server: DiscordServer, intents: discord.Intents | None = None) -> AsyncGenerator[Listening]:
    client = Listening(support_intents() if intents is None else intents)
    running = asyncio.create_task(client.start(TOKEN))
    try:
        await server.until(lambda: "ready" in client.events)
        yield client
    finally:
        await client.close()
        await asyncio.wait([running])
    running.result()


async def test_a_client_logs_in_and_knows_the_guild(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    async with logged_in(discord_server) as client:
        assert client.user is not None
        assert client.user.id == discord_server.bot.id
        seen = client.get_channel(channel.id)
        assert isinstance(seen, discord.TextChannel)
        granted = seen.permissions_for(seen.guild.me)
        assert granted.create_public_threads
        assert not granted.manage_messages
    assert discord_server.unknown == []


async def test_a_message_is_heard_and_answered_in_a_thread(discord_server: DiscordServer) -> None:
    channel = discord_server.add_channel("help")
    asker = discord_server.add_member("asker")
    async with logged_in(discord_server) as client:
        question = await discord_server.say(channel, asker, "How do I install it?")
        await discord_server.until(lambda: client.heard)
        thread = await client.heard[0].create_thread(name="How do I install it?")
        await thread.send("Like this.", nonce="n1", allowed_mentions=discord.AllowedMentions.none())
    (post,) = discord_server.posts
    assert (post.content, post.nonce, post.allowed_mentions) == ("Like this.", "n1", {"parse": []})
    assert post.thread is question.thread
    assert post.place.id == question.id
    assert post.thread is not None
    assert post.thread.name == "How do I install it?"
