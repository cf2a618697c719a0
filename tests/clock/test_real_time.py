import asyncio
import threading
import time
from contextvars import ContextVar

import pytest

from clock import VirtualLoop, run_in_real_time
from tests.watched_loop import outlast, run_watched

about: ContextVar[str] = ContextVar("about", default="nothing")


async def at_once() -> str:
    return "done"


def test_a_call_takes_no_virtual_time() -> None:
    async def main(waits: threading.Event) -> float:
        assert await run_in_real_time(lambda: outlast(waits))
        return asyncio.get_running_loop().time()

    assert run_watched(main) == 0


async def test_calls_of_one_instant_resume_in_the_order_they_were_made() -> None:
    came: list[int] = []
    ended = [asyncio.Event() for _ in range(4)]
    waits_for = {0: 3, 3: 2, 2: 1}

    async def outside(number: int) -> int:
        if number in waits_for:
            await ended[waits_for[number]].wait()
        ended[number].set()
        return number

    async def call(number: int) -> None:
        came.append(await run_in_real_time(lambda: outside(number)))

    await asyncio.gather(*map(call, range(4)))
    assert came == [0, 1, 2, 3]


async def test_a_thread_does_not_wait_for_a_call_that_was_made_before_it() -> None:
    order: list[str] = []
    thread_is_through = asyncio.Event()

    async def call() -> None:
        await run_in_real_time(thread_was_seen)
        order.append("call")

    async def thread() -> None:
        await asyncio.to_thread(str)
        order.append("thread")
        thread_is_through.set()

    seen = threading.Event()

    async def thread_was_seen() -> None:
        assert await asyncio.to_thread(seen.wait, 30)

    async def tell() -> None:
        await thread_is_through.wait()
        seen.set()

    await asyncio.gather(call(), thread(), tell())
    assert order == ["thread", "call"]


async def test_what_a_call_leads_to_comes_before_the_next_call_resumes() -> None:
    order: list[str] = []

    async def call(name: str) -> None:
        await run_in_real_time(at_once)
        order.append(f"{name} resumes")
        for _ in range(3):
            await asyncio.sleep(0)
        order.append(f"{name} is through")

    await asyncio.gather(call("a"), call("b"))
    assert order == ["a resumes", "a is through", "b resumes", "b is through"]


def test_timers_wait_for_the_calls_made_before_them() -> None:
    async def main(waits: threading.Event) -> tuple[list[str], float]:
        order: list[str] = []
        timer = asyncio.create_task(asyncio.sleep(0.001))
        timer.add_done_callback(lambda _: order.append("timer"))
        assert await run_in_real_time(lambda: outlast(waits))
        order.append("call")
        await timer
        return order, asyncio.get_running_loop().time()

    assert run_watched(main) == (["call", "timer"], 0.001)


async def test_time_outs_inside_a_call_are_real() -> None:
    async def call() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    began = time.perf_counter()
    with pytest.raises(TimeoutError):
        await run_in_real_time(call)
    assert time.perf_counter() - began < 0.5


def test_time_outs_around_a_call_do_not_run_meanwhile() -> None:
    async def main(waits: threading.Event) -> bool:
        async with asyncio.timeout(0.001):
            return await run_in_real_time(lambda: outlast(waits))

    assert run_watched(main)


async def test_an_error_outside_is_raised_here() -> None:
    async def call() -> None:
        await asyncio.sleep(0)
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError, match="refused"):
        await run_in_real_time(call)


async def test_a_cancelled_call_is_cancelled_outside_too_and_lets_the_clock_go_on() -> None:
    loop, ended = asyncio.get_running_loop(), threading.Event()

    async def call() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(run_in_real_time(call))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(ended.wait, 1)
    await asyncio.sleep(7)
    assert loop.time() == 7


async def test_calls_in_a_row_do_not_wait_for_one_that_was_given_up() -> None:
    endless = asyncio.create_task(run_in_real_time(lambda: asyncio.Event().wait()))
    await asyncio.sleep(0)
    next_one = asyncio.create_task(run_in_real_time(at_once))
    await asyncio.sleep(0)
    endless.cancel()
    assert await next_one == "done"
    assert endless.cancelled()


async def test_a_call_sees_the_context_it_was_made_in() -> None:
    async def call() -> str:
        return about.get()

    about.set("part 7")
    assert await run_in_real_time(call) == "part 7"


async def test_calls_run_on_one_ordinary_loop_in_a_thread_of_its_own() -> None:
    async def where() -> tuple[asyncio.AbstractEventLoop, str]:
        return asyncio.get_running_loop(), threading.current_thread().name

    first, second = await run_in_real_time(where), await run_in_real_time(where)
    assert first == second
    assert not isinstance(first[0], VirtualLoop)
    assert first[1] == "real_time"


def test_on_an_ordinary_loop_a_call_is_awaited_on_the_spot() -> None:
    async def where() -> str:
        return threading.current_thread().name

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        assert runner.run(run_in_real_time(where)) == threading.current_thread().name
