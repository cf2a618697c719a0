"""Who the bot is, by a question to Discord that connects nothing: for `--check`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
from discord.http import Route

import clock
from services.discord.live.refusals import CLOSED
from services.telemetry import why_unreached

PROBE_SECONDS = 10.0
MESSAGE_CONTENT = 1 << 18 | 1 << 19
"""Flags of an application that have the intent, in servers of any number or in few (API reference, "Application")."""

_BAD_TOKEN, _NO_INTENT = 4004, 4014


@dataclass(frozen=True, slots=True)
class Identity:
    """What Discord says.

    Attributes:
        name, user_id: of the bot; empty and 0 where it did not say.
        refused: why a start would be refused, and what to do.
        unknown: why Discord could not be asked; a start tries again until it can.
    """

    name: str = ""
    user_id: int = 0
    refused: str | None = None
    unknown: str | None = None


async def identity(token: str, *, timeout_seconds: float = PROBE_SECONDS) -> Identity:
    try:
        return await clock.real_time(lambda: _asked(token, timeout_seconds))
    except TimeoutError:
        return Identity(unknown=f"Discord did not answer within {timeout_seconds:g} s: check this machine's network")
    except (aiohttp.ClientError, OSError) as error:
        return Identity(unknown=f"Discord cannot be reached: {why_unreached(error)}")
    except (ValueError, TypeError, KeyError):
        return Identity(unknown="what answers is not Discord: check for a proxy in between")


async def _asked(token: str, timeout_seconds: float) -> Identity:
    headers = {"Authorization": f"Bot {token}"}
    async with asyncio.timeout(timeout_seconds), aiohttp.ClientSession(headers=headers, trust_env=True) as session:
        me = await _get(session, "/users/@me")
        application = me if isinstance(me, Identity) else await _get(session, "/applications/@me")
    if isinstance(me, Identity):
        return me
    name, user_id = str(me["username"]), int(me["id"])
    if isinstance(application, Identity):
        return Identity(name, user_id, application.refused, application.unknown)
    missing = not int(application["flags"]) & MESSAGE_CONTENT
    return Identity(name, user_id, refused=CLOSED[_NO_INTENT] if missing else None)


async def _get(session: aiohttp.ClientSession, path: str) -> Mapping[str, Any] | Identity:
    async with session.get(f"{Route.BASE}{path}", allow_redirects=False) as response:
        if response.status == 401:  # noqa: PLR2004 (Unauthorized)
            return Identity(refused=CLOSED[_BAD_TOKEN])
        if response.status != 200:  # noqa: PLR2004 (OK)
            return Identity(unknown=f"Discord answers with HTTP {response.status}: try again later")
        return cast("Mapping[str, Any]", dict(await response.json(content_type=None)))
