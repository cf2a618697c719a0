"""Refusals by Discord that end the connection for good, each with its remedy."""

from __future__ import annotations

import aiohttp
import discord

from services.discord.live.calls import is_permanent, reason

PORTAL = "https://discord.com/developers/applications"
STATUS_PAGE = "https://discordstatus.com"

CLOSED = {
    4004: f"Discord refuses the token (discord.token). Reset it in the developer portal ({PORTAL}, Bot › Reset Token) "
    "and set it as APP__DISCORD__TOKEN in .env",
    4011: "Discord demands sharding of bots in more than 2,500 servers, which Millrace does not do: leave some servers",
    4014: f"Discord refuses the message content intent. Switch on Message Content Intent in the developer portal "
    f"({PORTAL}, Bot › Privileged Gateway Intents)",
}
"""Gateway close codes (API reference, "Gateway Close Event Codes")."""

_ANSWERED = {
    403: f"Look whether the application is disabled in the developer portal ({PORTAL}), and whether a proxy or Discord "
    "blocks the address of this machine",
}
_OTHERWISE = f"Update Millrace, in case Discord no longer takes what it sends, and look at {STATUS_PAGE}"
"""Remedies by the status of an HTTP answer."""

UNAUTHORIZED = 401


def refusal(error: BaseException) -> str | None:
    """The message for the operator when a retry cannot help, else None."""
    if isinstance(error, discord.LoginFailure):
        return CLOSED[4004]
    if isinstance(error, discord.ConnectionClosed):
        if error.code == 1000:  # noqa: PLR2004 (a normal closure)
            return None
        # discord.py raises this only for codes after which Discord refuses to reconnect.
        return CLOSED.get(error.code) or f"Discord closed the gateway for good (close code {error.code}). {_OTHERWISE}"
    if isinstance(error, discord.HTTPException | aiohttp.ClientResponseError) and is_permanent(error.status):
        if error.status == UNAUTHORIZED:
            return CLOSED[4004]
        return f"No connection to Discord: {reason(error)}. {_ANSWERED.get(error.status, _OTHERWISE)}"
    return None
