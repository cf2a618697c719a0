"""Commands of the loopback Discord, called and answered through discord.py's own tree."""

from __future__ import annotations

from typing import Any

import discord
import pytest
from discord import app_commands

from tests.loopback.clients import Listening, logged_in
from tests.loopback.discord_server import DiscordServer

pytestmark = pytest.mark.real_time

Interaction = discord.Interaction[discord.Client]


async def offering(client: Listening, server: DiscordServer, run: Any) -> None:
    tree = app_commands.CommandTree(client)
    tree.add_command(app_commands.Command(name="say", description="Says it.", callback=run))
    guild = discord.Object(server.guild.id)
    tree.copy_global_to(guild=guild)
    await tree.sync(guild=guild)


async def test_nobody_can_call_what_is_not_offered(discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")

    async def run(interaction: Interaction, what: str) -> None:
        raise AssertionError

    async with logged_in(discord_server) as client:
        await offering(client, discord_server, run)
        for command, options in (("shout", {}), ("say loud", {}), ("say", {}), ("say", {"what": "x", "to": "y"})):
            with pytest.raises(LookupError):
                await discord_server.call(help_, ada, command, **options)


async def test_an_answer_comes_in_time_and_once(discord_server: DiscordServer) -> None:
    help_, ada = discord_server.add_channel("help"), discord_server.add_member("ada")
    refused: list[int] = []

    async def run(interaction: Interaction, what: str) -> None:
        if what == "late":
            discord_server.state.interactions[interaction.token].at -= 4
        for _ in range(2):
            await answer(interaction)

    async def answer(interaction: Interaction) -> None:
        try:
            # One that does not know of the first answer, as after a time-out.
            await discord.InteractionResponse(interaction).send_message("hello")
        except discord.HTTPException as error:
            refused.append(error.code)

    async with logged_in(discord_server) as client:
        await offering(client, discord_server, run)
        await discord_server.call(help_, ada, "say", what="twice")
        await discord_server.until(lambda: len(refused) == 1)
        await discord_server.call(help_, ada, "say", what="late")
        await discord_server.until(lambda: len(refused) == 3)
    assert refused == [40060, 10062, 10062]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "Say"}, "name is invalid"),
        ({"name": "say it"}, "name is invalid"),
        ({"description": ""}, "100 in length"),
        ({"description": "a" * 101}, "100 in length"),
        (
            {
                "options": [
                    {"name": "a", "description": "a", "type": 3},
                    {"name": "b", "description": "b", "type": 3, "required": True},
                ]
            },
            "Required options",
        ),
    ],
)
async def test_commands_of_a_bad_form_are_refused(
    discord_server: DiscordServer, changes: dict[str, Any], code: str
) -> None:
    discord_server.add_channel("help")
    sent: Any = {"name": "say", "description": "Says it.", "type": 1, "options": [], **changes}
    async with logged_in(discord_server) as client:
        with pytest.raises(discord.HTTPException, match=code) as caught:
            await client.http.bulk_upsert_guild_commands(discord_server.bot.id, discord_server.guild.id, [sent])
    assert caught.value.code == 50035
