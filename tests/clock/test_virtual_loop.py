import asyncio
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clock import Deadlock, VirtualLoop
from tests.watched_loop import run_watched

T = TypeVar("T")

YEAR_2026 = 1_767_225_600.0
A_DAY = 86_400.0


def run(main: Callable[[], Coroutine[Any, Any, T]], start: float = 0.0, *, speed: float | None = None) -> T:
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start, speed=speed)) as runner:
        return runner.run(main())


def time_now() -> float:
    return asyncio.get_running_loop().time()


def test_three_days_take_no_time() -> None:
    began = time.perf_counter()
    run(lambda: asyncio.sleep(3 * A_DAY))
    assert time.perf_counter() - began < 0.5


@given(st.floats(0, 4e9), st.lists(st.floats(0, 1e6), max_size=4))
def test_timers_fire_on_their_instant_at_any_time_of_any_year(start: float, pauses: list[float]) -> None:
    """A nanosecond, asyncio's own tolerance, is nothing beside the seconds since 1970."""

    async def main() -> None:
        for pause in pauses:
            due = time_now() + pause
            await asyncio.sleep(pause)
            assert time_now() == due

    run(main, start)


def test_the_clock_starts_where_it_is_told() -> None:
    async def main() -> float:
        return time_now()

    assert run(main, YEAR_2026) == YEAR_2026


@given(st.lists(st.integers(0, 3), max_size=20))
def test_timers_of_one_instant_fire_in_the_order_they_were_set(seconds: list[int]) -> None:
    fired: list[tuple[int, int]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for number, second in enumerate(seconds):
            loop.call_at(second, fired.append, (second, number))
        await asyncio.sleep(4)

    run(main)
    assert fired == sorted(fired)
    assert len(fired) == len(seconds)


async def test_what_is_overdue_is_done_at_once_and_the_clock_never_goes_back() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    await asyncio.sleep(10)
    loop.call_at(3, done.set)
    await done.wait()
    assert loop.time() == 10


async def test_a_cancelled_timer_moves_no_clock() -> None:
    loop = asyncio.get_running_loop()
    loop.call_later(100, pytest.fail).cancel()
    await asyncio.sleep(1)
    assert loop.time() == 1


async def test_thousands_of_cancelled_timers_are_cleared_away_and_the_others_keep_their_order() -> None:
    loop, fired = asyncio.get_running_loop(), list[int]()
    timers = [loop.call_later(5, fired.append, number) for number in range(1000)]
    for number, timer in enumerate(timers):
        if number % 10:
            timer.cancel()
    await asyncio.sleep(6)
    assert fired == list(range(0, 1000, 10))


async def test_a_timer_is_equal_to_itself_alone() -> None:
    loop = asyncio.get_running_loop()
    one, other = loop.call_at(5, int), loop.call_at(5, int)
    assert one == one  # noqa: PLR0124 (equality is what is tested)
    assert one != other
    assert len({one, other}) == 2
    one.cancel()
    other.cancel()


def test_a_closed_loop_takes_no_timers() -> None:
    loop = VirtualLoop()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, int)


def test_waiting_for_nothing_is_a_deadlock() -> None:
    with pytest.raises(Deadlock, match="nothing left to run"):
        run(lambda: asyncio.Event().wait())


def test_a_loop_that_met_a_deadlock_closes_cleanly_and_cancels_who_waited() -> None:
    cancelled: list[bool] = []

    async def main() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    with pytest.raises(Deadlock):
        run(main)
    assert cancelled == [True]


def test_threads_hold_the_clock() -> None:
    async def main(waits: threading.Event) -> None:
        beat = asyncio.create_task(asyncio.sleep(3600))
        assert await asyncio.to_thread(waits.wait, 5)
        assert time_now() == 0
        await beat
        assert time_now() == 3600

    run_watched(main)


async def test_threads_come_back_in_the_order_they_were_sent() -> None:
    came: list[int] = []
    ended = [threading.Event() for _ in range(3)]
    waits_for = {0: 2, 2: 1}

    def outside(number: int) -> None:
        assert number not in waits_for or ended[waits_for[number]].wait(5)
        ended[number].set()

    async def send(number: int) -> None:
        await asyncio.to_thread(outside, number)
        came.append(number)

    await asyncio.gather(*map(send, range(3)))
    assert came == [0, 1, 2]


async def test_a_result_from_outside_waits_until_all_else_of_the_instant_is_done() -> None:
    loop, order, pool = asyncio.get_running_loop(), list[str](), ThreadPoolExecutor(1)

    async def ask() -> None:
        await loop.run_in_executor(pool, int)
        order.append("thread")

    async def spin() -> None:
        for _ in range(50):
            await asyncio.sleep(0)
        pool.shutdown()  # the thread has ended, and its result is there
        loop.call_at(loop.time(), order.append, "timer")
        order.append("spun")

    await asyncio.gather(ask(), spin())
    assert order == ["spun", "timer", "thread"]


async def test_an_error_in_a_thread_is_raised_where_it_is_awaited() -> None:
    with pytest.raises(ValueError, match="no number"):
        await asyncio.to_thread(lambda: int("no number"))


async def test_an_error_that_nobody_waits_for_any_more_is_not_reported_as_lost() -> None:
    loop = asyncio.get_running_loop()
    work: asyncio.Future[None] = loop.create_future()
    assert isinstance(loop, VirtualLoop)
    due = loop.stop_clock_for(work)
    work.set_exception(ValueError("too late"))
    due.cancel()
    await asyncio.sleep(1)
    assert loop.time() == 1


async def test_who_gives_up_waiting_for_a_thread_sets_the_clock_free() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    work: asyncio.Future[None] = loop.create_future()
    due = loop.stop_clock_for(work)
    loop.call_soon(due.cancel)
    await asyncio.sleep(5)
    assert work.cancelled()
    assert loop.time() == 5


async def test_work_that_is_cancelled_outside_cancels_who_waits_for_it() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    work: asyncio.Future[None] = loop.create_future()
    due = loop.stop_clock_for(work)
    loop.call_soon(work.cancel)
    with pytest.raises(asyncio.CancelledError):
        await due


def test_closing_waits_for_threads_that_are_still_at_work() -> None:
    done: list[str] = []

    async def main(waits: threading.Event) -> None:
        def slow() -> None:
            assert waits.wait(5)
            done.append("written")

        asyncio.get_running_loop().run_in_executor(None, slow)
        await asyncio.sleep(0)

    run_watched(main)
    assert done == ["written"]


async def test_an_executor_of_ones_own_holds_the_clock_as_well() -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as pool:
        name = await loop.run_in_executor(pool, lambda: threading.current_thread().name)
    assert name.startswith("ThreadPool")
    assert loop.time() == 0


@pytest.mark.parametrize("speed", [100.0, 1000.0])
def test_with_a_speed_jumps_take_their_share_of_real_time(speed: float) -> None:
    async def main() -> float:
        await asyncio.sleep(10)
        await asyncio.sleep(0)
        return time_now()

    began = time.perf_counter()
    assert run(main, YEAR_2026, speed=speed) == YEAR_2026 + 10
    took = time.perf_counter() - began
    assert 10 / speed <= took + 0.001
    assert took < 10 / speed + 0.3


def test_what_is_overdue_takes_no_real_time_at_any_speed() -> None:
    async def main() -> None:
        done = asyncio.Event()
        asyncio.get_running_loop().call_at(-A_DAY, done.set)
        await done.wait()

    began = time.perf_counter()
    run(main, speed=1.0)
    assert time.perf_counter() - began < 0.3


@pytest.mark.parametrize("speed", [None, 1.0])
def test_signals_are_heard_while_the_clock_jumps_or_waits(speed: float | None) -> None:
    async def main() -> str:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, heard.set)
        loop.call_soon(os.kill, os.getpid(), signal.SIGTERM)
        for _ in itertools.takewhile(lambda _: not heard.is_set(), range(100)):
            await asyncio.sleep(0.01)
        loop.remove_signal_handler(signal.SIGTERM)
        return "heard" if heard.is_set() else "missed"

    assert run(main, speed=speed) == "heard"


async def test_sockets_work_beside_the_clock() -> None:
    """Real ones are not for virtual time, but the loop's own machinery (self-pipe, subprocesses) needs them."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()
    reading, writing = os.pipe()
    loop.add_reader(reading, heard.set)
    loop.add_reader(reading, heard.set)  # a second time modifies the first
    os.write(writing, b"!")
    await asyncio.gather(heard.wait(), asyncio.sleep(1))
    loop.remove_reader(reading)
    os.close(reading)
    os.close(writing)
