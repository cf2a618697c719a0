from __future__ import annotations

import asyncio
import os
import threading
import time
from contextvars import ContextVar

import pytest

from clock import now, run_blocking

where: ContextVar[str] = ContextVar("where")


async def test_what_the_work_gives_comes_back_and_it_was_done_elsewhere() -> None:
    assert await run_blocking(threading.get_ident) != threading.get_ident()
    assert await run_blocking(divmod, 7, 2) == (3, 1)
    assert await run_blocking(int, "z", base=36) == 35


async def test_what_the_work_raises_comes_back() -> None:
    with pytest.raises(ValueError, match="no number"):
        await run_blocking(int, "no number")


async def test_the_work_knows_what_it_is_about() -> None:
    where.set("here")
    assert await run_blocking(where.get) == "here"


async def test_one_thread_is_enough_for_one_after_another() -> None:
    first = await run_blocking(threading.get_ident)
    assert {await run_blocking(threading.get_ident) for _ in range(50)} == {first}


@pytest.mark.real_time
async def test_work_that_waits_for_other_work_does_not_hold_it_up() -> None:
    both = threading.Barrier(8, timeout=30)
    places = await asyncio.gather(*(run_blocking(both.wait) for _ in range(8)))
    assert sorted(places) == list(range(8))


@pytest.mark.real_time
async def test_cancelling_waits_until_the_work_is_over() -> None:
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert go_on.wait(30)
        over.set()

    task = asyncio.create_task(run_blocking(work))
    assert await run_blocking(begun.wait, 30)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert over.is_set()


@pytest.mark.real_time
async def test_what_cancelled_work_raises_is_dropped_without_a_report() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert go_on.wait(30)
        raise OSError("the disk is full")

    task = asyncio.create_task(run_blocking(work))
    assert await run_blocking(begun.wait, 30)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    await asyncio.sleep(0)
    assert reported == []


async def test_on_a_virtual_clock_work_of_one_instant_is_done_piece_after_piece() -> None:
    """What one piece leaves behind, the next one sees, and none before it does."""
    trace: list[tuple[str, int]] = []

    def work(number: int) -> None:
        trace.append(("begun", number))
        time.sleep(0.01 * (3 - number))  # the first one is slowest
        trace.append(("ended", number))

    async def call(number: int) -> None:
        await run_blocking(work, number)
        trace.append(("back", number))

    await asyncio.gather(*(call(number) for number in range(3)))
    assert [each for each in trace if each[0] != "back"] == [(w, n) for n in range(3) for w in ("begun", "ended")]
    assert [number for what, number in trace if what == "back"] == [0, 1, 2]
    assert now() == 0


def test_an_ordinary_loop_is_served_as_well_and_its_end_waits_for_work_under_way() -> None:
    ended: list[bool] = []
    begun, go_on, over = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        assert go_on.wait(30)
        over.set()

    async def give_up() -> int:
        given_up = asyncio.create_task(run_blocking(work))
        assert await run_blocking(begun.wait, 30)
        given_up.add_done_callback(lambda _: ended.append(over.is_set()))
        asyncio.get_running_loop().call_soon(go_on.set)
        return await run_blocking(int, "42")

    with asyncio.Runner() as runner:
        assert runner.run(give_up()) == 42
    assert ended == [True]


def test_a_loop_that_waited_for_nobody_takes_no_thread_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, over = threading.Event(), threading.Event()
    died: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", died.append)
    served: list[threading.Thread] = []

    def work() -> None:
        served.append(threading.current_thread())
        assert go_on.wait(30)
        over.set()

    async def begin() -> None:
        call = run_blocking(work)
        call.send(None)
        call.close()

    asyncio.run(begin())
    go_on.set()
    assert over.wait(30)
    assert asyncio.run(run_blocking(int, "42")) == 42
    served[0].join(0.05)  # it would end now, if it did
    assert served[0].is_alive()
    assert died == []


def test_a_child_process_has_threads_of_its_own() -> None:
    assert asyncio.run(run_blocking(int)) == 0
    child = os.fork()
    if child == 0:
        os._exit(asyncio.run(run_blocking(int, "7")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
