"""A virtual loop that says when it waits: for tests of what happens, or does not, while work outside goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from clock import VirtualLoop

T = TypeVar("T")


class WatchedLoop(VirtualLoop):
    """`waits` is set when nothing is left to do but wait for what is outside of the loop."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = threading.Event()

    def _idle(self) -> float:
        seconds = super()._idle()
        if seconds > 0:
            self.waits.set()
        return seconds


def run_watched(main: Callable[[threading.Event], Coroutine[Any, Any, T]]) -> T:
    """Run `main`, given `waits`, on such a loop."""
    loop = WatchedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main(loop.waits))


async def outlast(waits: threading.Event) -> bool:
    """Work outside that ends when the loop has come to wait for it."""
    return await asyncio.to_thread(waits.wait, 5)
