"""A limit of time, and a process that is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from clock import RetryDeadline, timeout_ignoring_pauses, with_timeout


async def endless() -> str:
    await asyncio.Event().wait()
    return "never"


async def test_a_call_that_outlasts_its_limit_since_the_process_was_paused_is_made_again() -> None:
    """Else whoever wakes up takes the model for dead, and so do all questions of the next half minute."""
    times, ends = iter([100.0, 160.0]), iter([endless(), asyncio.sleep(0, "answered")])

    def call() -> Awaitable[str]:
        return next(ends)

    assert await with_timeout(0.001, call, lambda: next(times)) == "answered"


@pytest.mark.parametrize(("times", "made"), [([100.0, 100.1], 1), ([100.0, 160.0], 2)], ids=["in time", "paused"])
async def test_a_call_that_outlasts_its_limit_otherwise_or_again_is_late(times: list[float], made: int) -> None:
    told, calls = iter(times), list[str]()

    def call() -> Awaitable[str]:
        calls.append("made")
        return endless()

    with pytest.raises(TimeoutError):
        await with_timeout(0.001, call, lambda: next(told))
    assert len(calls) == made


@pytest.fixture
async def pause(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Has the clock of the loop go on while nothing else does."""
    loop = asyncio.get_running_loop()
    real, paused = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + paused[0])

    def wake_after(seconds: float) -> None:
        paused[0] += seconds

    return wake_after


@pytest.mark.real_time
async def test_of_a_pause_a_block_loses_a_second(pause: Callable[[float], None]) -> None:
    async with timeout_ignoring_pauses(10):
        pause(3600)
        await asyncio.sleep(0)
        pause(3600)
        await asyncio.sleep(0)


async def test_a_block_that_takes_longer_than_its_limit_is_late() -> None:
    began = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError):
        async with timeout_ignoring_pauses(2.5):
            await asyncio.sleep(60)
    assert asyncio.get_running_loop().time() - began == pytest.approx(2.5)


def test_patience_ends_with_the_time_in_which_the_process_has_run() -> None:
    times = iter([0.0, 2.0, 3600.0, 3602.0, 3604.0])
    patience = RetryDeadline(10, lambda: next(times))
    assert [patience.is_over() for _ in range(4)] == [False, False, False, True]
