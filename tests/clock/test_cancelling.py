"""Tasks that are told to end more than once."""

from __future__ import annotations

import asyncio

from clock import cancelled


async def test_a_task_that_forgets_a_cancellation_is_told_again() -> None:
    told = 0

    async def forgetful() -> None:
        nonlocal told
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                told += 1
                if told == 3:
                    raise

    task = asyncio.create_task(forgetful())
    await asyncio.sleep(0)
    await cancelled(task)
    assert (task.cancelled(), told) == (True, 3)


async def test_what_tasks_raise_at_their_end_is_dropped() -> None:
    async def failing() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise ValueError

    task = asyncio.create_task(failing())
    await asyncio.sleep(0)
    await cancelled(task)
    await cancelled()
    assert isinstance(task.exception(), ValueError)
