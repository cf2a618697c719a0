"""A subscribed graph, and a way to end it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import Generator
from types import FrameType

from reactivex import Observable

from model.outcomes import Result
from services.conversations import InFlight
from services.telemetry import number_of

LAST_WORDS_SECONDS = 5.0
"""How long replies that are just being posted may go on after everything else was called off."""

log = logging.getLogger(__name__)


def collect_rarely() -> None:
    """Have the garbage collector look less often: history is long-lived, and at Python's defaults it is gone through
    again and again. Two replays of 10,000 messages each took 2 % and 8 % less CPU with these figures.
    """
    gc.set_threshold(20_000, 20, 50)


def yield_often() -> None:
    """Have threads that compute give way to the event loop after a millisecond, instead of Python's five: a loop that
    comes back from waiting may have to ask for its turn more than once, and Discord's heartbeat is on it (pitfall 38).
    """
    sys.setswitchinterval(0.001)


@contextlib.contextmanager
def terminated_as_interrupted() -> Generator[None]:
    """Have SIGTERM do what Ctrl-C does, so that a command which is told to end either way puts its things away."""

    def interrupt(_number: int, frame: FrameType | None) -> None:
        interrupted = signal.getsignal(signal.SIGINT)
        # Ignored in what a shell script has put into the background, where SIGTERM is to end it all the same.
        (interrupted if callable(interrupted) else signal.default_int_handler)(signal.SIGINT, frame)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Running:
    """Subscribes to a graph at once; `drain` ends it."""

    def __init__(self, ends: Observable[Result], in_flight: InFlight) -> None:
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_flight = in_flight
        self._subscription = ends.subscribe(on_error=self._fail, on_completed=self._complete)

    async def drain(self, grace_seconds: float) -> bool:
        """Wait for the graph to complete, its source having done so. True when all was finished within the grace.

        What is not finished then ends as cancelled("shutdown"), and what hangs even so is cut off.

        Raises:
            Exception: the bug that ended the graph.
        """
        try:
            if await self._wait(grace_seconds):
                return True
            log.warning(
                "shutdown: %s still in hand after %g s, left for catch-up",
                number_of(len(self._in_flight), "message"),
                grace_seconds,
            )
            self._in_flight.stop()
            await self._wait(LAST_WORDS_SECONDS)
            return False
        finally:
            self._subscription.dispose()

    async def _wait(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self.finished)
            return True
        return False

    def _fail(self, error: Exception) -> None:
        if not self.finished.done():
            self.finished.set_exception(error)

    def _complete(self) -> None:
        if not self.finished.done():
            self.finished.set_result(None)
