"""Tasks that are told to end more than once."""

from __future__ import annotations

import asyncio

from clock import BackgroundTasks, cancel_and_wait


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
    await cancel_and_wait(task)
    assert (task.cancelled(), told) == (True, 3)


async def test_what_tasks_raise_at_their_end_is_dropped() -> None:
    async def failing() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            raise ValueError

    task = asyncio.create_task(failing())
    await asyncio.sleep(0)
    await cancel_and_wait(task)
    await cancel_and_wait()
    assert isinstance(task.exception(), ValueError)


async def test_tasks_that_nobody_waits_for_run_until_they_end_or_are_closed() -> None:
    ended: list[str] = []

    async def work(name: str, seconds: float) -> None:
        try:
            await asyncio.sleep(seconds)
        finally:
            ended.append(name)

    tasks = BackgroundTasks()
    tasks.start(work("short", 0), name="short")
    tasks.start(work("long", 3600))
    await asyncio.sleep(0.01)
    assert ended == ["short"]
    await tasks.close()
    assert ended == ["short", "long"]
    await tasks.close()
