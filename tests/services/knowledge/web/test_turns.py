from __future__ import annotations

import asyncio

import pytest

import clock
from clock import VirtualLoop
from services.knowledge.web.client import Turns


@pytest.mark.parametrize("start", [0.0, 1_792_540_800.123])
@pytest.mark.parametrize("rate", [0.1, 1, 2, 3, 7, 49, 1000])
def test_turns_come_evenly_and_in_order_whatever_the_clock_says(start: float, rate: float) -> None:
    turns = Turns(rate)
    taken: list[tuple[int, float]] = []

    async def take(number: int) -> None:
        await turns.take("mill.example")
        taken.append((number, clock.now() - start))

    async def take_all() -> None:
        async with asyncio.timeout(1000), asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(take(number))

    loop = VirtualLoop(start)
    try:
        loop.run_until_complete(take_all())
    finally:
        loop.close()
    assert [number for number, _ in taken] == list(range(20))
    assert [at for _, at in taken] == pytest.approx([number / rate for number in range(20)], rel=0.01, abs=1e-4)


async def test_hosts_do_not_wait_for_each_other() -> None:
    turns = Turns(0.5)
    begun = clock.now()
    await asyncio.gather(*(turns.take(host) for host in ("one.example", "two.example", "TWO.example.")))
    assert clock.now() - begun == 2


async def test_hosts_that_have_their_turn_back_are_forgotten() -> None:
    turns = Turns(1)
    for number in range(5):
        await turns.take(f"{number}.example")
    assert len(turns._hosts) == 5  # pyright: ignore[reportPrivateUsage]
    await asyncio.sleep(2)
    await turns.take("last.example")
    assert len(turns._hosts) == 1  # pyright: ignore[reportPrivateUsage]


async def test_a_host_that_asks_for_longer_pauses_gets_them_and_shorter_ones_again() -> None:
    turns = Turns(1)

    async def seconds_of_three() -> float:
        begun = clock.now()
        for _ in range(3):
            await turns.take("mill.example")
        return clock.now() - begun

    turns.slow_down("MILL.example.", 10)
    assert await seconds_of_three() == 20
    turns.slow_down("mill.example", 10)
    assert await seconds_of_three() == 30
    await asyncio.sleep(60)
    turns.slow_down("mill.example", 0)
    assert await seconds_of_three() == 2
