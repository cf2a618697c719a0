"""Whether the event loop comes round: the probe of every benchmark that runs in real time.

Discord's own heartbeat is on that loop, and so is everybody else's question. What other programs on the machine take
counts as well, since nobody can tell it apart: where it matters, the best of some runs is judged. A virtual loop stops
on purpose: there, and where a loop lives within a command, it is the CPU of the longest callback that counts.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from types import CoroutineType

from benchmarks.yardstick import limit_of_a_pause, limit_of_cpu

MAX_SECONDS = 0.020
"""By the yardstick, as all limits."""
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


class Longest:
    """Attributes:
    seconds: the CPU of the longest callback that any loop of this thread ran.
    what: which it was, as its handle tells of it afterwards.
    callbacks: how many it ran.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.what = ""
        self.callbacks = 0

    def forget(self) -> None:
        """Begin anew."""
        self.__init__()


@contextmanager
def longest_callback() -> Generator[Longest]:
    """Time every callback while the block runs, which costs about a microsecond each."""
    longest, here = Longest(), threading.get_ident()
    usual = asyncio.Handle._run  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue]  # noqa: SLF001 (asyncio tells nobody else)

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        usual(handle)
        if threading.get_ident() == here:
            longest.callbacks += 1
            seconds = time.thread_time() - begun
            if seconds > longest.seconds:
                longest.seconds, longest.what = seconds, told(handle)

    setattr(asyncio.Handle, "_run", timed)  # noqa: B010 (as above)
    try:
        yield longest
    finally:
        setattr(asyncio.Handle, "_run", usual)  # noqa: B010 (as above)


def told(handle: asyncio.Handle) -> str:
    """What a callback is: for a task, where its coroutines wait after it."""
    callback: object = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    at = task.get_coro() if isinstance(task, asyncio.Task) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] (whatever it gives)
    steps: list[str] = []
    while isinstance(at, CoroutineType):  # pyright: ignore[reportUnknownArgumentType]
        steps.append(f"{at.cr_code.co_filename.rpartition('/')[2]}:{at.cr_frame.f_lineno if at.cr_frame else 'end'}")
        at = at.cr_await  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return " > ".join(steps) or repr(callback)


def short_enough(what: str, *seconds: float) -> tuple[bool, str]:
    """The requirement, for `verdict`: that the longest callback of the best of these runs is as short as it must be."""
    best, most = min(seconds), limit_of_cpu(MAX_SECONDS)
    told = f"the longest callback takes {best * 1000:.1f} ms of CPU"
    return best <= most, f"event loop, {what}: {told}, wanted at most {most * 1000:.1f}"


def not_held(what: str, *hearts: Heartbeat) -> tuple[bool, str]:
    """The requirement, for `verdict`: that the best of these runs did not hold the loop for longer than it may."""
    best, most = min(hearts, key=lambda heart: heart.worst), limit_of_a_pause(MAX_SECONDS)
    told = f"held for {best.worst * 1000:.0f} ms, of which its own work {min(best.own, best.worst) * 1000:.0f}"
    return best.worst <= most, f"event loop, {what}: {told}, wanted at most {most * 1000:.1f}"
