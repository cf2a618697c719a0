"""Slash commands: their form on Discord, and how each is answered. What they do is given in as callbacks.

calls        what a callback is told of a call, and what it may raise
answering    the ephemeral answer: deferred, split, and one neutral line when something fails
forms        the commands with their options; which of them there are depends on the callbacks that are given
tree         the forms hung into a client, registered guild by guild
"""

# pyright: reportUnusedImport=false
from services.discord.slash.calls import Call, Callbacks, CommandRefused
from services.discord.slash.tree import Commands
