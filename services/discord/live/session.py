"""Keeping the gateway session up: what is retried and how soon, and what ends it for good."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable
from typing import NoReturn

import aiohttp
import discord
from discord.gateway import ReconnectWebSocket

from clock import now
from services.discord.connection import GatewayRefused, Health
from services.discord.live.client import Client

log = logging.getLogger(__name__)

QUIET_SECONDS = 300.0
"""After a connection that held this long the back-off starts anew."""
LONGEST_PAUSE_SECONDS = 60.0
NEW_SESSION_EVERY = 5
"""After so many failures a new session is tried once: the address to resume at may be down. While the network is away
this costs nothing; the old session can still be resumed then."""
DAY_SECONDS = 86_400.0
FREE_IDENTIFIES = 500
"""Discord resets the token of a bot that identifies more than 1,000 times a day. Half of that goes at the speed of
the back-off, the other half is spread over a day."""

PORTAL = "https://discord.com/developers/applications"
_REFUSALS = {
    4004: f"Discord refuses the token (discord.token). Reset it in the developer portal ({PORTAL}, Bot › Reset Token) "
    "and set it as APP__DISCORD__TOKEN in .env",
    4011: "Discord demands sharding of bots in more than 2,500 servers, which Millrace does not do: leave some servers",
    4014: f"Discord refuses the message content intent. Switch on Message Content Intent in the developer portal "
    f"({PORTAL}, Bot › Privileged Gateway Intents)",
}
"""Gateway close codes (API reference, "Gateway Close Event Codes")."""


def pause(failures: int, jitter: Callable[[], float] = random.random) -> float:
    """Seconds before the next try: 1, 2, 4 … 60, up to half less by `jitter` (0 to 1): many bots must not come back
    at once.
    """
    return min(LONGEST_PAUSE_SECONDS, 2.0 ** (failures - 1)) * (1 - jitter() / 2)


class Identifies:
    """Keeps within the 1,000 identifies of a day."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=FREE_IDENTIFIES)

    def wait(self, at: float) -> float:
        """Seconds until the next may be sent."""
        if len(self._at) < FREE_IDENTIFIES or at - self._at[0] >= DAY_SECONDS:
            return 0.0
        return max(0.0, self._at[-1] + DAY_SECONDS / FREE_IDENTIFIES - at)

    def spent(self, at: float) -> None:
        self._at.append(at)


def refusal(error: BaseException) -> str | None:
    """The message for the operator when a retry cannot help, else None."""
    if isinstance(error, discord.LoginFailure):
        return _REFUSALS[4004]
    if isinstance(error, discord.ConnectionClosed) and error.code != 1000:  # noqa: PLR2004 (a normal closure)
        # discord.py raises this only for codes after which Discord refuses to reconnect.
        return _REFUSALS.get(error.code) or f"Discord closed the gateway for good (close code {error.code})"
    return None


async def keep_session(
    client: Client,
    token: str,
    health: Health,
    received: Callable[[str], None] | None = None,
    *,
    pause: Callable[[int], float] = pause,
) -> NoReturn:
    """Log in and hold a gateway session, again and again, until cancelled. `received` gets each frame.

    A lost connection is resumed, so that Discord replays what was missed; where it does not, a new session begins.
    `pause` gives the seconds before each new try.

    Raises:
        GatewayRefused: the token or an intent is refused.
    """
    failures = 0
    identifies = Identifies()
    while True:
        began = now()
        try:
            await client.log_in(token)
            resume = client.resumable and (failures == 0 or failures % NEW_SESSION_EVERY != 0)
            if not resume:
                await asyncio.sleep(identifies.wait(now()))
                identifies.spent(now())
            await client.hold_session(received, resume=resume)
        except Exception as error:  # an odd payload can make a parser raise anything
            if remedy := refusal(error):
                raise GatewayRefused(remedy) from error
            _report(error)
        health.down(now())
        failures = 1 if now() - began >= QUIET_SECONDS else failures + 1
        await asyncio.sleep(pause(failures))


def _report(error: Exception) -> None:
    if isinstance(error, (ReconnectWebSocket, discord.ConnectionClosed)):
        log.info("gateway: the connection ended; connecting again")
    elif isinstance(error, (discord.HTTPException, aiohttp.ClientError, OSError)):
        log.warning("gateway: no connection (%s); trying again", type(error).__name__)
    else:
        log.error("gateway: discord.py could not read a payload; connecting again after it", exc_info=error)
