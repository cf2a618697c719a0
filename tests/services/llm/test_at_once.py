"""A bound on calls that many graphs share."""

from __future__ import annotations

import asyncio

from services.llm.endpoint import Reply, Request
from services.llm.resilience import ResilientEndpoint
from tests.services.llm.asking import reply_of, request_of, settings_of


class Slow:
    def __init__(self) -> None:
        self.now = self.most = 0

    async def complete(self, request: Request) -> Reply:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(1)
        self.now -= 1
        return reply_of()

    async def aclose(self) -> None: ...


async def test_no_more_than_so_many_calls_run_at_a_time() -> None:
    slow = Slow()
    few = ResilientEndpoint(slow, settings_of(""), at_once=3)
    await asyncio.gather(*(few.complete(request_of()) for _ in range(10)))
    assert slow.most == 3
