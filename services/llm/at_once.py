"""Limit the calls of one endpoint that run at a time, over all graphs."""

from __future__ import annotations

import asyncio

from services.llm.endpoint import Endpoint, Reply, Request


class ConcurrencyLimit:
    """Asks `inner`, at most `most` calls at a time; the others wait in order, within the time of their answer."""

    def __init__(self, inner: Endpoint, most: int) -> None:
        self._inner = inner
        self._turns = asyncio.Semaphore(most)

    async def complete(self, request: Request) -> Reply:
        async with self._turns:
            return await self._inner.complete(request)

    async def aclose(self) -> None:
        await self._inner.aclose()
