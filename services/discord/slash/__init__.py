"""Slash commands: their form on Discord, and how each is answered. What they do is given as callbacks."""

# pyright: reportUnusedImport=false
from services.discord.slash.calls import Call, Callbacks, CommandRefused
from services.discord.slash.tree import Commands
