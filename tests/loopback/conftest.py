from tests.loopback.fixtures import discord_server, hurried_discord

__all__ = ["discord_server", "hurried_discord"]
