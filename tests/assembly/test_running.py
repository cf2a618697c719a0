"""What runs beside a run."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
import reactivex as rx
from reactivex import operators as ops

from assembly.running import GraphRun, in_background
from clock import run_blocking
from dataflow import map_async
from model.outcomes import Reason, Result
from services.conversations import InFlight, WorkCancelled


async def raising(error: Exception) -> None:
    await asyncio.sleep(0)
    raise error


async def test_background_work_that_ends_by_itself_is_heard_of(caplog: pytest.LogCaptureFixture) -> None:
    async with in_background(raising(ValueError("a bug"))):
        await asyncio.sleep(1)
        assert "what ran in the background has ended" in caplog.text
    [record] = caplog.records
    assert (record.levelname, str(record.exc_info and record.exc_info[1])) == ("CRITICAL", "a bug")


async def test_background_work_that_is_cancelled_or_called_off_is_no_news(caplog: pytest.LogCaptureFixture) -> None:
    async with in_background(raising(WorkCancelled(Reason.SHUTDOWN))), in_background(asyncio.sleep(60)):
        await asyncio.sleep(1)
    assert caplog.records == []


@pytest.mark.real_time
async def test_what_is_being_written_when_a_run_is_cut_off_is_written_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assembly.running.CANCELLED_GRACE_SECONDS", 0)
    begun, go_on = threading.Event(), threading.Event()
    written = tmp_path / "written"

    def write() -> None:
        begun.set()
        assert go_on.wait(30)
        written.touch()

    async def keeps(_: int) -> Result:
        await run_blocking(write)
        raise AssertionError("it was cut off")

    def failed(_: int, error: Exception) -> Result:
        raise error

    run = GraphRun(
        rx.of(1).pipe(ops.concat(rx.never()), map_async(keeps, on_failure=failed, max_concurrent=1)), InFlight()
    )
    assert await run_blocking(begun.wait, 30)
    asyncio.get_running_loop().call_later(0.05, go_on.set)
    assert not await run.drain(0)
    assert written.exists()
