"""However many requests arrive, the event loop is there for answers."""

from __future__ import annotations

import asyncio

import pytest

from services.telemetry.connections import LOOP_BURST_SECONDS, LOOP_SHARE, REQUEST_SECONDS, LoopShare
from services.telemetry.exporter import serve_metrics


def least_seconds(requests: int) -> float:
    return (requests * REQUEST_SECONDS - LOOP_BURST_SECONDS) / LOOP_SHARE


async def take(share: LoopShare) -> None:
    assert await share.wait(lambda: False)


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


async def test_whoever_is_gone_keeps_nobody_waiting() -> None:
    share, loop = LoopShare(), asyncio.get_running_loop()
    await asyncio.gather(*(take(share) for _ in range(1000)))
    began = loop.time()
    assert not any(await asyncio.gather(*(share.wait(lambda: True) for _ in range(1000))))
    assert loop.time() == began
    await take(share)
    assert loop.time() - began <= 2 * REQUEST_SECONDS / LOOP_SHARE


async def test_a_request_that_waits_takes_none_of_the_time_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form that never comes would count what the bot does meanwhile, and many of them let nobody else in."""
    share, loop, spent = LoopShare(), asyncio.get_running_loop(), 0.0
    monkeypatch.setattr("services.telemetry.connections.time.thread_time", lambda: spent)

    async def work(come: asyncio.Event, own: float) -> str:
        nonlocal spent
        spent += own
        await come.wait()
        return "done"

    coming = asyncio.Event()
    slow = [asyncio.ensure_future(share.counted(work(coming, 0.0))) for _ in range(100)]
    await asyncio.sleep(0)
    spent += 10.0
    coming.set()
    assert await asyncio.gather(*slow) == ["done"] * 100
    began = loop.time()
    await take(share)
    assert loop.time() == began
    await share.counted(work(coming, 10.0))
    await share.counted(work(coming, 10.0))
    await share.counted(work(coming, 10.0))
    await take(share)
    assert loop.time() > began, "its own time counts, up to a bound"


async def test_what_ends_or_cancels_a_request_reaches_its_work() -> None:
    share, ended = LoopShare(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")

    running = asyncio.ensure_future(share.counted(work()))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await share.counted(work())
    assert ended == ["work", "work"]


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
