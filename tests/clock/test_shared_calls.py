import asyncio

import pytest

from clock.cancellation import SharedCalls


class Counted:
    def __init__(self, error: Exception | None = None) -> None:
        self.calls = 0
        self.cancelled = 0
        self.error = error

    async def __call__(self) -> int:
        self.calls += 1
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return self.calls


async def test_calls_with_one_key_at_one_time_share_one_call() -> None:
    shared, call = SharedCalls(), Counted()
    results = await asyncio.gather(shared.share("a", call), shared.share("a", call), shared.share("b", call))
    assert call.calls == 2
    assert results[0] == results[1]


async def test_nothing_is_kept_once_a_call_has_ended() -> None:
    shared, call = SharedCalls(), Counted()
    assert await shared.share("a", call) == 1
    assert await shared.share("a", call) == 2


async def test_all_who_wait_hear_of_the_failure() -> None:
    shared, call = SharedCalls(), Counted(ValueError("no"))
    results = await asyncio.gather(shared.share("a", call), shared.share("a", call), return_exceptions=True)
    assert [str(result) for result in results] == ["no", "no"]
    assert call.calls == 1


async def test_one_who_gives_up_does_not_take_the_answer_from_the_others() -> None:
    shared, call = SharedCalls(), Counted()
    first = asyncio.create_task(shared.share("a", call))
    second = asyncio.create_task(shared.share("a", call))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 1
    assert call.cancelled == 0
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_call_that_nobody_waits_for_any_more_is_cancelled() -> None:
    shared, call = SharedCalls(), Counted()
    only = asyncio.create_task(shared.share("a", call))
    await asyncio.sleep(0.001)
    only.cancel()
    await asyncio.gather(only, return_exceptions=True)
    await asyncio.sleep(0)
    assert call.cancelled == 1
    assert await shared.share("a", call) == 2
