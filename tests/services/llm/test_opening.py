"""An endpoint as the program uses it, on a virtual clock."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

import clock
from services.llm.endpoint import Reply, Request, TimedOut, Unavailable
from services.llm.resilience import FAILURES, ResilientEndpoint, open_endpoint
from tests.loopback import llm_scenes as scenes
from tests.loopback.llm_server import LLMServer
from tests.services.llm.asking import reply_of, request_of, settings_of
from tests.watched_loop import run_watched


@pytest.mark.parametrize(("base_url", "model"), [("", "m"), ("http://127.0.0.1:9/v1", "")])
async def test_an_endpoint_without_address_or_model_is_refused(base_url: str, model: str) -> None:
    with pytest.raises(ValueError, match="both base_url and model"):
        open_endpoint(settings_of(base_url, model=model))


def test_the_virtual_clock_stands_still_during_a_call() -> None:
    async def main(waits: threading.Event) -> None:
        async with LLMServer() as server:
            endpoint = open_endpoint(settings_of(server.base_url))
            ticks: list[float] = []
            ticking = asyncio.get_running_loop().call_later(1, lambda: ticks.append(clock.now()))
            begun = clock.now()
            waits.clear()
            server.then(scenes.late(waits))
            assert (await endpoint.complete(request_of())).text
            assert clock.now() == begun
            assert ticks == []
            ticking.cancel()
            await endpoint.aclose()
            await endpoint.aclose()

    run_watched(main)


async def test_calls_of_one_instant_resume_in_the_order_made() -> None:
    class Uneven:
        def __init__(self) -> None:
            self.quick = asyncio.Event()

        async def complete(self, request: Request) -> Reply:
            if request.step == "slow":
                await self.quick.wait()
            else:
                self.quick.set()
            return reply_of(request.step)

        async def aclose(self) -> None:
            return

    endpoint = ResilientEndpoint(Uneven(), settings_of(""))
    done: list[str] = []

    async def ask(step: str) -> None:
        done.append((await endpoint.complete(request_of(step=step))).text)

    await asyncio.gather(ask("slow"), ask("quick"), ask("slow"), ask("next"))
    assert done == ["slow", "quick", "slow", "next"]


async def test_a_hanging_endpoint_costs_real_time_outs_until_it_is_left_alone() -> None:
    async with LLMServer(otherwise=scenes.hang()) as server:
        endpoint = open_endpoint(settings_of(server.base_url, timeout_seconds=0.2))
        begun, real = clock.now(), time.perf_counter()
        for _ in range(FAILURES):
            with pytest.raises(TimedOut):
                await endpoint.complete(request_of())
        assert FAILURES * 0.2 <= time.perf_counter() - real < 10
        with pytest.raises(Unavailable, match=r"not asked again for (30|29) s"):
            await endpoint.complete(request_of())
        assert len(server.seen) <= FAILURES
        assert clock.now() == begun
        await endpoint.aclose()


async def test_retries_pause_in_real_time_and_take_no_virtual_time() -> None:
    async with LLMServer() as server:
        endpoint = open_endpoint(settings_of(server.base_url, max_retries=1))
        server.then(scenes.status(429, headers={"Retry-After": "0.3"}))
        begun, real = clock.now(), time.perf_counter()
        assert (await endpoint.complete(request_of())).text
        assert time.perf_counter() - real >= 0.25
        assert clock.now() == begun
        assert len(server.seen) == 2
        await endpoint.aclose()


async def test_a_cancelled_call_ends_at_once() -> None:
    async with LLMServer(otherwise=scenes.hang()) as server:
        endpoint = open_endpoint(settings_of(server.base_url))
        call = asyncio.create_task(endpoint.complete(request_of()))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await endpoint.aclose()
