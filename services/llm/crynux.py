"""An OpenAI-compatible endpoint: one attempt, through ChatCrynux (imported at the first call), and a cheap check."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import aiohttp

import clock
from services.llm.endpoint import EndpointSettings, Reply, Request
from services.llm.errors import TimedOut, Unavailable

if TYPE_CHECKING:
    from services.llm.chat import Chat

PROBE_SECONDS = 5.0


class CrynuxEndpoint:
    """Makes its client at the first call. All calls, and `aclose`, belong on one ordinary loop."""

    def __init__(self, settings: EndpointSettings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._chat: Chat | None = None
        self._closed = False

    async def complete(self, request: Request) -> Reply:
        chat = await self._opened()
        limit = self._settings.timeout_seconds
        try:
            # The client's own limit is per read: a server that drips bytes would hold a call for ever.
            async with asyncio.timeout(limit):
                return await chat.ask(request)
        except TimeoutError:
            who = f"{self._settings.name}, step {request.step}"
            raise TimedOut(f"{who}: no answer within {limit:g} s; raise timeout_seconds, or look at its load") from None

    async def aclose(self) -> None:
        async with self._opening:
            self._closed = True
            if self._chat is not None:
                await self._chat.aclose()

    async def _opened(self) -> Chat:
        async with self._opening:
            if self._closed:
                raise Unavailable(f"{self._settings.name}: already closed; no calls during shutdown")
            if self._chat is None:
                # In a thread: the import alone would stall the gateway's heartbeat for a second.
                self._chat = await asyncio.to_thread(_open, self._settings)
            return self._chat


def import_client() -> None:
    """Import what the first call would otherwise wait for. Blocks for seconds: call it in a thread."""
    import services.llm.chat  # noqa: F401, PLC0415  # pyright: ignore[reportUnusedImport] (the import is the purpose)


def _open(settings: EndpointSettings) -> Chat:
    from services.llm.chat import Chat  # noqa: PLC0415 (1.1 s and 91 MB, wanted only when a call is made)

    return Chat(settings)


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
