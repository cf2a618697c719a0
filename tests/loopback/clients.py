"""discord.py clients, unmodified, that log in and listen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator

import discord

from tests.loopback.discord_server import DiscordServer


class Listening(discord.Client):
    """discord.py as it is, noting what it hears."""

    def __init__(self, intents: discord.Intents) -> None:
        # The default waits 2 s for more guilds before `on_ready`.
        super().__init__(intents=intents, guild_ready_timeout=0.02)
        self.heard: list[discord.Message] = []
        self.events: list[str] = []

    async def on_message(self, message: discord.Message) -> None:
        self.heard.append(message)

    async def on_ready(self) -> None:
        self.events.append("ready")

    async def on_resumed(self) -> None:
        self.events.append("resumed")

    async def on_raw_reaction_add(self, reaction: discord.RawReactionActionEvent) -> None:
        self.events.append(f"{reaction.user_id} added {reaction.emoji}")

    @property
    def texts(self) -> list[str]:
        """What people wrote, system messages left out."""
        return [message.content for message in self.heard if not message.is_system()]

    def text_channel(self, channel_id: int) -> discord.TextChannel:
        channel = self.get_channel(channel_id)
        assert isinstance(channel, discord.TextChannel)
        return channel


def support_intents() -> discord.Intents:
    return discord.Intents(guilds=True, guild_messages=True, message_content=True, guild_reactions=True)


@contextlib.asynccontextmanager
async def logged_in(server: DiscordServer, intents: discord.Intents | None = None) -> AsyncGenerator[Listening]:
    """A client that is ready; it is closed at the end, and what ended it early is raised."""
    client = Listening(support_intents() if intents is None else intents)
    running = asyncio.create_task(client.start(server.token))
    try:
        await server.until(lambda: running.done() or "ready" in client.events)
        yield client
    finally:
        await client.close()
        await asyncio.wait([running])
    running.result()
