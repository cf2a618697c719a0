"""Work with people's texts stops when they withdraw them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from services.conversations import PersonalWork, Withdrawn

ADA, BOB = 1, 2


async def started(work: Callable[[], Awaitable[str]]) -> asyncio.Task[str]:
    async def run() -> str:
        return await work()

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    return task


async def test_only_work_with_the_texts_of_whoever_withdraws_them_stops() -> None:
    personal = PersonalWork()

    def on(*people: int) -> Callable[[], Awaitable[str]]:
        async def work() -> str:
            with personal.handling(people):
                await asyncio.sleep(1)
            return "done"

        return work

    tasks = [await started(on(*people)) for people in ((ADA,), (BOB, ADA), (BOB,), ())]
    personal.withdraw(ADA)
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(end) for end in ends] == [Withdrawn, Withdrawn, str, str]
    assert [end.user_id for end in ends if isinstance(end, Withdrawn)] == [ADA, ADA]
    personal.withdraw(BOB)  # nothing is held any more


async def test_people_may_become_more_while_the_work_runs() -> None:
    personal, people = PersonalWork(), {BOB}

    async def work() -> str:
        with personal.handling(people):
            people.add(ADA)
            await asyncio.sleep(1)
        return "done"

    task = await started(work)
    personal.withdraw(ADA)
    with pytest.raises(Withdrawn):
        await task


async def test_what_is_committed_goes_on() -> None:
    personal = PersonalWork()

    async def work() -> str:
        with personal.handling({ADA}) as token:
            token.commit()
            await asyncio.sleep(1)
        return "done"

    task = await started(work)
    personal.withdraw(ADA)
    assert await task == "done"


async def test_a_task_that_somebody_else_cancels_is_cancelled() -> None:
    personal = PersonalWork()

    async def work() -> str:
        with personal.handling({ADA}):
            await asyncio.sleep(1)
        return "done"

    for withdrawn in (False, True):
        task = await started(work)
        if withdrawn:
            personal.withdraw(ADA)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_after_a_withdrawal_the_task_can_go_on() -> None:
    personal = PersonalWork()

    async def work() -> str:
        with suppress(Withdrawn), personal.handling({ADA}):
            await asyncio.sleep(1)
        async with asyncio.timeout(1):  # which counts how often the task was cancelled
            await asyncio.sleep(0.5)
        return "went on"

    task = await started(work)
    personal.withdraw(ADA)
    assert await task == "went on"


async def test_a_cancellation_that_was_lost_on_the_way_counts_at_the_end() -> None:
    personal = PersonalWork()

    async def work() -> str:
        with personal.handling({ADA}), suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        return "done"

    task = await started(work)
    personal.withdraw(ADA)
    with pytest.raises(Withdrawn):
        await task


async def test_nothing_begins_with_archived_texts_of_somebody_who_is_being_forgotten() -> None:
    personal = PersonalWork()

    def begins(*people: int, archived: bool) -> bool:
        try:
            with personal.handling(people, archived=archived):
                return True
        except Withdrawn:
            return False

    with personal.forgetting(ADA), personal.forgetting(ADA):
        assert not begins(BOB, ADA, archived=True)
        assert begins(BOB, archived=True)
        assert begins(ADA, archived=False)  # what they write meanwhile is new
    assert begins(ADA, archived=True)
