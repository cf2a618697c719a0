"""REST calls to Discord through discord.py: retries, descriptions of failures, and the failures that end a connection
for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import aiohttp
import discord
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential
from tenacity.wait import wait_base

from clock import now

T = TypeVar("T")

ATTEMPTS = 3
CALL_SECONDS = 100.0  # longer than discord.py's own five tries (25 s of pauses) and a rate limit (60 s) together
BACK_OFF = wait_random_exponential(multiplier=0.5, max=5)

REFUSED_SECONDS = 600.0
"""How long a refusal is remembered: Discord bans an address by its bad answers within this time."""
NOT_AGAIN = "not asked again so soon after Discord answered 403"
CHANNEL_WIDE_403 = frozenset({50001, 50013})  # codes of a 403 that holds for the whole channel

FAILURES = (discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError)
"""All that a call can raise. aiohttp raises `RuntimeError` for a closed session; a time-out is an `OSError`."""

TOO_MANY_REQUESTS = 429
TOO_MANY_THREADS = 160006
PASSING_STATUSES = frozenset({408, 425, TOO_MANY_REQUESTS})  # the statuses from 400 to 499 after which a retry may help
BAN_SECONDS = 60.0  # the pause during a ban of the address, which names no time itself
MAX_QUOTED_CHARS = 200  # characters of Discord's own message that are passed on
_RETRIED_BY_DISCORD_PY = frozenset({500, 502, 504, 524})

_REASONS = {
    10003: "the channel no longer exists",
    10008: "the message no longer exists",
    50001: "the bot cannot see the channel (View Channel)",
    50013: "the bot lacks a permission there (Create Public Threads or Send Messages in Threads)",
    50035: "Discord does not accept the form of the request",
    50083: "the thread is archived",
    160005: "the thread is locked",
    TOO_MANY_THREADS: "the server has too many active threads",
}
"""Discord's JSON error codes (API reference, "Opcodes and Status Codes")."""


def is_worth_repeating(error: BaseException) -> bool:
    if isinstance(error, discord.DiscordServerError):
        return error.status not in _RETRIED_BY_DISCORD_PY
    return isinstance(error, (aiohttp.ClientError, OSError))


def is_permanent(status: int) -> bool:
    """Return True if the same request would get the same answer again."""
    return 400 <= status < 500 and status not in PASSING_STATUSES  # noqa: PLR2004 (client errors, RFC 9110)


def is_passing(error: BaseException) -> bool:
    """Return True if a call that failed may work later."""
    return not (isinstance(error, discord.HTTPException) and is_permanent(error.status))


def seconds_to_wait(error: BaseException) -> float:
    """Return the seconds to leave Discord alone after a failure."""
    if isinstance(error, discord.RateLimited):
        return error.retry_after
    banned = isinstance(error, discord.HTTPException) and error.status == TOO_MANY_REQUESTS
    return BAN_SECONDS if banned else 0.0


class RecentRefusals:
    """Places in which Discord refused something within the last ten minutes (`REFUSED_SECONDS`)."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}

    def note(self, place_id: int) -> None:
        at = now()
        self._until = {id_: until for id_, until in self._until.items() if until > at}
        self._until[place_id] = at + REFUSED_SECONDS

    def is_recent(self, place_id: int) -> bool:
        return self._until.get(place_id, 0) > now()


class ForbiddenPlaces(RecentRefusals):
    """Places that answered 403. Call `clear` when permissions have changed: the cause may be gone."""

    def clear(self) -> None:
        self._until.clear()


class CrowdedChannels(RecentRefusals):
    """Channels in whose server no further thread could be opened. Threads are archived over hours, without an event."""


async def with_retries(request: Callable[[], Awaitable[T]], *, wait: wait_base = BACK_OFF) -> T:
    """Return the answer to `request()`, repeated where that can help.

    discord.py itself waits out rate limits of at most a minute, and repeats a request up to five times on 500, 502, 504
    and 524. Repeated here are other server errors and broken connections. A 429 that gets this far is a ban of the
    address or a very long wait. Repeating it would add to the 10,000 bad answers in ten minutes that ban an address
    (Discord API reference, "Invalid Request Limit").

    Raises:
        discord.DiscordException, aiohttp.ClientError, OSError, RuntimeError: the last failure (`FAILURES`).
    """

    async def once() -> T:
        async with asyncio.timeout(CALL_SECONDS):
            return await request()

    retrying = AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS), wait=wait, retry=retry_if_exception(is_worth_repeating), reraise=True
    )
    return await retrying(once)


def reason(error: BaseException) -> str:
    """Describe a failure of a call, without the content of the request."""
    if isinstance(error, discord.HTTPException):
        return _REASONS.get(error.code) or f"Discord answered {error.status} (code {error.code}{_explained(error)})"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"Discord answered {error.status}"
    if isinstance(error, discord.RateLimited):
        return f"Discord asks to wait {error.retry_after:.0f} s"
    if isinstance(error, TimeoutError):
        return "Discord did not answer in time"
    if isinstance(error, FAILURES):
        return f"Discord could not be reached ({type(error).__name__})"
    return f"Discord's answer cannot be read ({type(error).__name__})"


def _explained(error: discord.HTTPException) -> str:
    """Return the first line of Discord's message; empty for a proxy's page. Further lines may repeat the request."""
    first = error.text.partition("\n")[0].strip()
    return f": {first[:MAX_QUOTED_CHARS]}" if first.isprintable() and first and not first.startswith("<") else ""


PORTAL = "https://discord.com/developers/applications"
STATUS_PAGE = "https://discordstatus.com"

CLOSE_REMEDIES = {
    4004: f"Discord refuses the token (discord.token). Reset it in the developer portal ({PORTAL}, Bot › Reset Token) "
    "and set it as APP__DISCORD__TOKEN in .env",
    4011: "Discord demands sharding of bots in more than 2,500 servers, which Millrace does not do: leave some servers",
    4014: f"Discord refuses the message content intent. Switch on Message Content Intent in the developer portal "
    f"({PORTAL}, Bot › Privileged Gateway Intents)",
}
"""The message for each gateway close code that no retry mends (API reference, "Gateway Close Event Codes")."""

_STATUS_REMEDIES = {
    403: f"Look whether the application is disabled in the developer portal ({PORTAL}), and whether a proxy or Discord "
    "blocks the address of this machine",
}
"""By the status of an HTTP answer."""
_OTHER_REMEDY = f"Update Millrace, in case Discord no longer takes what it sends, and look at {STATUS_PAGE}"

UNAUTHORIZED = 401


def refusal(error: BaseException) -> str | None:
    """Return the message for the operator when a retry cannot help, else None."""
    if isinstance(error, discord.LoginFailure):
        return CLOSE_REMEDIES[4004]
    if isinstance(error, discord.ConnectionClosed):
        if error.code == 1000:  # noqa: PLR2004 (a normal closure)
            return None
        # discord.py raises this only for codes after which Discord refuses to reconnect.
        otherwise = f"Discord closed the gateway for good (close code {error.code}). {_OTHER_REMEDY}"
        return CLOSE_REMEDIES.get(error.code, otherwise)
    if isinstance(error, discord.HTTPException | aiohttp.ClientResponseError) and is_permanent(error.status):
        if error.status == UNAUTHORIZED:
            return CLOSE_REMEDIES[4004]
        return f"No connection to Discord: {reason(error)}. {_STATUS_REMEDIES.get(error.status, _OTHER_REMEDY)}"
    return None
