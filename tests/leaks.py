"""What a test must not leave behind on its loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from clock import VirtualLoop


@pytest.fixture(autouse=True)
async def crashes() -> AsyncIterator[list[BaseException]]:
    """No task, no timer, and no exception that only the loop heard of.

    A test that provokes such an exception asks for this list and takes it out.
    """
    loop = asyncio.get_running_loop()
    heard: list[BaseException] = []
    if not isinstance(loop, VirtualLoop):  # a test that is not async, and makes its own loop if it needs one
        yield heard
        return

    def hear(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        heard.append(context.get("exception") or RuntimeError(context["message"]))

    loop.set_exception_handler(hear)
    yield heard
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    assert not tasks, f"left at work: {tasks}"
    on_the_clock = loop._scheduled  # pyright: ignore[reportPrivateUsage]  # asyncio has no public list of timers
    timers = [timer for timer in on_the_clock if not timer.cancelled()]
    assert not timers, f"left on the clock: {timers}"
    assert not heard, f"raised where nobody looked: {heard}"
