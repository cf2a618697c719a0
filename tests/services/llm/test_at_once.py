"""A bound on calls that many graphs share."""

from __future__ import annotations

import asyncio
from typing import cast

from services.llm import ConcurrencyLimit
from services.llm.endpoint import Endpoint, Reply, Request


class Slow:
    def __init__(self) -> None:
        self.now = self.most = 0

    async def complete(self, _request: Request) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return cast("Reply", None)

    async def aclose(self) -> None: ...


async def test_no_more_than_so_many_calls_run_at_a_time() -> None:
    slow = Slow()
    few = ConcurrencyLimit(cast("Endpoint", slow), 3)
    await asyncio.gather(*(few.complete(cast("Request", None)) for _ in range(10)))
    assert slow.most == 3
