"""A limit of time, and a process that is paused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from clock import within


async def endless() -> str:
    await asyncio.Event().wait()
    return "never"


async def test_a_call_that_outlasts_its_limit_since_the_process_was_paused_is_made_again() -> None:
    """Else whoever wakes up takes the model for dead, and so do all questions of the next half minute."""
    times, ends = iter([100.0, 160.0]), iter([endless(), asyncio.sleep(0, "answered")])

    def call() -> Awaitable[str]:
        return next(ends)

    assert await within(0.001, call, lambda: next(times)) == "answered"


@pytest.mark.parametrize(("times", "made"), [([100.0, 100.1], 1), ([100.0, 160.0], 2)], ids=["in time", "paused"])
async def test_a_call_that_outlasts_its_limit_otherwise_or_again_is_late(times: list[float], made: int) -> None:
    told, calls = iter(times), list[str]()

    def call() -> Awaitable[str]:
        calls.append("made")
        return endless()

    with pytest.raises(TimeoutError):
        await within(0.001, call, lambda: next(told))
    assert len(calls) == made
