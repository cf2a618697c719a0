"""The commands of a running bot: hung into its client, and registered in each guild as it arrives."""

from __future__ import annotations

import asyncio
import logging

import discord
from discord import app_commands

from services.discord.live.calls import FAILURES, reason
from services.discord.slash.answering import Answering
from services.discord.slash.calls import Callbacks
from services.discord.slash.forms import forms

REGISTERING_SECONDS = 120.0

log = logging.getLogger(__name__)


class _Tree(app_commands.CommandTree[discord.Client]):
    async def on_error(
        self, interaction: discord.Interaction[discord.Client], error: app_commands.AppCommandError, /
    ) -> None:
        """A call that does not fit what is registered: an older form of a command, mostly."""
        log.warning("a command was called in a form that there is not: %s", type(error).__name__)
        try:
            text = "This command has changed. Please reload Discord and call it again."
            await interaction.response.send_message(text, ephemeral=True)
        except FAILURES as failure:
            log.debug("not answered: %s", reason(failure))


class Commands:
    """One bot's commands. They replace whatever commands the application had in a guild before."""

    def __init__(self, client: discord.Client, callbacks: Callbacks) -> None:
        self._answering = Answering()
        self._tree = _Tree(client)
        for form in forms(callbacks, self._answering):
            self._tree.add_command(form)
        self._registered: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def arrived(self, guild_id: int) -> None:
        """Register the commands in a guild, beside everything else, unless that has been done."""
        if guild_id in self._registered:
            return
        self._registered.add(guild_id)
        task = asyncio.get_running_loop().create_task(self._register(guild_id), name=f"commands of {guild_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Answer and register nothing more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._answering.close()

    async def _register(self, guild_id: int) -> None:
        guild = discord.Object(guild_id)
        try:
            self._tree.copy_global_to(guild=guild)
            async with asyncio.timeout(REGISTERING_SECONDS):
                known = await self._tree.sync(guild=guild)
        except (*FAILURES, app_commands.AppCommandError) as error:
            # Tried again when the guild arrives anew, as after each new session.
            self._registered.discard(guild_id)
            hint = "; invite the bot with the scope applications.commands" if _is_forbidden(error) else ""
            log.warning("server %d: no slash commands: %s%s", guild_id, reason(error), hint)
        else:
            log.info("server %d: commands %s", guild_id, ", ".join(f"/{command.name}" for command in known))


def _is_forbidden(error: BaseException) -> bool:
    return isinstance(error, discord.Forbidden)
