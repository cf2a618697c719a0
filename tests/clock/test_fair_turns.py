"""Work of several people, in turn."""

from __future__ import annotations

import asyncio

from clock import FairTurns


async def work(turns: FairTurns, begun: list[str], name: str) -> None:
    async with turns.turn(name[0]):
        begun.append(name)
        await asyncio.sleep(1)


async def test_one_piece_of_each_at_a_time_and_each_in_turn() -> None:
    turns, begun = FairTurns(2), list[str]()
    tasks = [asyncio.create_task(work(turns, begun, name)) for name in ("a1", "a2", "a3", "a4", "b1", "c1", "b2")]
    for seconds, expected in enumerate((["a1", "b1"], ["c1", "a2"], ["b2", "a3"], ["a4"])):
        await asyncio.sleep(0.5 if not seconds else 1)
        assert begun[2 * seconds :] == expected
    await asyncio.gather(*tasks)


async def test_who_is_called_off_leaves_the_turn_to_others() -> None:
    turns, begun = FairTurns(1), list[str]()
    first, second, third = (asyncio.create_task(work(turns, begun, name)) for name in ("a1", "b1", "c1"))
    await asyncio.sleep(0.5)
    second.cancel()  # it waits
    first.cancel()  # it is at work, and `b1` is the next
    await third
    assert begun == ["a1", "c1"]
    await work(turns, begun, "b2")
    assert begun == ["a1", "c1", "b2"]


async def test_a_turn_that_comes_when_it_is_called_off_goes_to_the_next() -> None:
    turns, begun = FairTurns(1), list[str]()
    async with turns.turn("a"):
        second, third = (asyncio.create_task(work(turns, begun, name)) for name in ("b1", "c1"))
        await asyncio.sleep(0)
    second.cancel()
    await third
    assert begun == ["c1"]
