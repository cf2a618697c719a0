"""Whether the event loop comes round: the probe of every benchmark that runs in real time.

Discord's own heartbeat is on that loop, and so is everybody else's question. What other programs on the machine take
counts as well, since nobody can tell it apart: where it matters, the best of some runs is judged. On a virtual loop,
which stops on purpose, there is nothing to probe.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

MOST_SECONDS = 0.020
_BEAT = 0.001


class Heartbeat:
    """Asks for its turn every millisecond.

    Attributes:
        worst: how late it came at worst, in seconds.
        own: how much CPU the loop's thread took at most between two beats; the rest of `worst` is waiting, for threads
            or for other programs.
        last: when it came last.
    """

    def __init__(self) -> None:
        self.worst = self.own = 0.0
        self.last = time.perf_counter()

    async def beat(self) -> None:
        self.last, worked = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(_BEAT)
            moment, working = time.perf_counter(), time.thread_time()
            self.worst = max(self.worst, moment - self.last - _BEAT)
            self.own = max(self.own, working - worked)
            self.last, worked = moment, working


@asynccontextmanager
async def beating() -> AsyncGenerator[Heartbeat]:
    """A heartbeat for as long as the block runs."""
    heart = Heartbeat()
    task = asyncio.get_running_loop().create_task(heart.beat())
    await asyncio.sleep(0)  # it has begun
    try:
        yield heart
        await asyncio.sleep(2 * _BEAT)  # the end of the block may have held the loop
    finally:
        task.cancel()


def not_held(what: str, *hearts: Heartbeat) -> tuple[bool, str]:
    """The requirement, for `verdict`: that the best of these runs did not hold the loop for longer than it may."""
    best = min(hearts, key=lambda heart: heart.worst)
    told = f"held for {best.worst * 1000:.0f} ms, of which its own work {min(best.own, best.worst) * 1000:.0f}"
    return best.worst <= MOST_SECONDS, f"event loop, {what}: {told}, wanted at most {MOST_SECONDS * 1000:g}"
