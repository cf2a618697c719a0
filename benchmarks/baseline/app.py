"""Run the graph until its source ends or we are told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable

from reactivex import Observable
from reactivex.subject import Subject

from benchmarks.baseline.graph import Services, Sinks, graph
from benchmarks.baseline.model import Message

GRACE_SECONDS = 30.0


async def run(source: AsyncIterator[Message], services: Services, sinks: Sinks) -> bool:
    """Feed the graph, then drain it. True when everything was finished in time."""
    messages: Subject[Message] = Subject()
    running = Running(graph(messages, services, sinks))  # wire first, feed after
    feeding = asyncio.create_task(feed(source, messages))
    stop_on_signal(feeding.cancel)
    await asyncio.wait({feeding, running.finished}, return_when=asyncio.FIRST_COMPLETED)
    feeding.cancel()
    messages.on_completed()  # no more input: open windows flush, work in hand goes on
    in_time = await running.drain(GRACE_SECONDS)
    if feeding.done() and not feeding.cancelled():
        feeding.result()  # a source that broke must not look like one that ended
    return in_time


async def feed(source: AsyncIterator[Message], messages: Subject[Message]) -> None:
    async for message in source:
        messages.on_next(message)


class Running:
    """A subscribed graph, and a way to end it."""

    def __init__(self, outflow: Observable[object]) -> None:
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._subscription = outflow.subscribe(
            on_error=self.finished.set_exception,
            on_completed=lambda: self.finished.set_result(None),
        )

    async def drain(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self.finished)
        except TimeoutError:
            return False
        else:
            return True
        finally:
            self._subscription.dispose()  # cancels whatever is still in flight


def stop_on_signal(stop: Callable[[], object]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
