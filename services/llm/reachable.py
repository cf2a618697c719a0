"""Checks cheaply whether an endpoint answers: for `--check` and start-up."""

from __future__ import annotations

import asyncio
import json

import aiohttp

import clock
from services.llm.endpoint import EndpointSettings

PROBE_SECONDS = 5.0


async def unreachable_because(settings: EndpointSettings, *, timeout_seconds: float = PROBE_SECONDS) -> str | None:
    """Ask for the list of models, which costs nothing. None if that works, else one sentence saying what is wrong."""
    try:
        trouble = await clock.real_time(lambda: _trouble(settings, timeout_seconds))
    except TimeoutError:
        trouble = f"did not answer within {timeout_seconds:g} s"
    except (aiohttp.ClientError, ValueError):
        # Their texts repeat the address, which may hold a password.
        trouble = "cannot be reached; check base_url and that the server runs"
    return None if trouble is None else f"{settings.name} {trouble}"


async def _trouble(settings: EndpointSettings, timeout_seconds: float) -> str | None:
    headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    address = f"{settings.base_url.rstrip('/')}/models"
    async with asyncio.timeout(timeout_seconds), aiohttp.request("GET", address, headers=headers) as response:
        status = response.status
        if status in {401, 403}:
            return f"does not accept the key (HTTP {status}); check api_key"
        if status == 429:  # noqa: PLR2004 (too many requests: it answers)
            return None
        if status != 200:  # noqa: PLR2004 (OK)
            return f"does not list its models (HTTP {status}); check base_url, which usually ends in /v1"
        try:
            json.loads(await response.read())
        except ValueError:
            return "answers with something that is no JSON; check base_url, which usually ends in /v1"
        return None
