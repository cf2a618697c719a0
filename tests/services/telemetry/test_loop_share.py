"""However many requests arrive, the event loop is there for answers."""

from __future__ import annotations

import asyncio

import pytest

from services.telemetry.connections import LOOP_BURST_SECONDS, LOOP_SHARE, REQUEST_SECONDS, LoopShare
from services.telemetry.exporter import serve_metrics


def least_seconds(requests: int) -> float:
    return (requests * REQUEST_SECONDS - LOOP_BURST_SECONDS) / LOOP_SHARE


async def take(share: LoopShare) -> None:
    async with share.turn():
        pass


async def test_a_few_requests_do_not_wait_and_many_take_their_share() -> None:
    share, loop = LoopShare(), asyncio.get_running_loop()
    began = loop.time()
    for _ in range(10):
        await take(share)
    assert loop.time() == began
    await asyncio.gather(*(take(share) for _ in range(2000)))
    assert loop.time() - began >= least_seconds(2000)
    await asyncio.sleep(LOOP_BURST_SECONDS / LOOP_SHARE + 1)
    rested = loop.time()
    await take(share)
    assert loop.time() == rested


@pytest.mark.virtual_sockets
async def test_a_flood_of_scrapes_takes_its_share() -> None:
    loop, count = asyncio.get_running_loop(), 600
    async with serve_metrics("127.0.0.1", 0, lambda: None, lambda: b"") as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        began, answered = loop.time(), 0
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * count)
        while answered < count:
            answered += (await reader.read(65536)).count(b"HTTP/1.1 200 OK")
        assert loop.time() - began >= least_seconds(count)
        writer.close()
