"""A cheap look at whether a Chroma server is there: for `--check`."""

from __future__ import annotations

import asyncio
import importlib.util

import aiohttp

import clock

PROBE_SECONDS = 5.0
MISSING = "needs the extra `chroma`: make extra-chroma"


async def chroma_unreachable_because(address: str, *, timeout_seconds: float = PROBE_SECONDS) -> str | None:
    """Asks for its heartbeat. None: it is there; else what is wrong, and what to do."""
    if importlib.util.find_spec("chromadb") is None:
        return MISSING
    try:
        status = await clock.real_time(lambda: _status(f"{address.rstrip('/')}/api/v2/heartbeat", timeout_seconds))
    except TimeoutError:
        return f"did not answer within {timeout_seconds:g} s"
    except (aiohttp.ClientError, ValueError):
        return "cannot be reached; check documents.store and that the server runs"
    return None if status == 200 else f"is no Chroma server (HTTP {status}); check documents.store"  # noqa: PLR2004 (OK)


async def _status(address: str, timeout_seconds: float) -> int:
    async with asyncio.timeout(timeout_seconds), aiohttp.ClientSession() as session, session.get(address) as response:
        return response.status
