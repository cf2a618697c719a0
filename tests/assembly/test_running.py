"""What runs beside a run."""

from __future__ import annotations

import asyncio

import pytest

from assembly.running import in_background
from model.outcomes import Reason
from services.conversations import WorkCancelled


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
