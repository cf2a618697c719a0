"""Runs a graph to its end: signals, draining, meters and settings of the interpreter."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from reactivex import Observable
from reactivex import operators as ops
from reactivex.subject import Subject

from assembly import Unusable
from clock import DAY, cancel_and_wait, wait_for_blocking_work, with_bounded_shutdown
from services.telemetry import number_of

if TYPE_CHECKING:
    from aiohttp.web import Application

    from assembly.answering import ObserveDuration
    from assembly.health import HealthMonitor
    from dashboard import FlowMeter
    from dataflow.metering import Gauge
    from model.events import Event
    from model.outcomes import Result
    from services.conversations import InFlight
    from services.discord import Dispatch
    from services.llm import ObserveCalls, ObserveTokens
    from settings import MetricsSettings, Settings
    from sinks.results import ResultCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """Callbacks of the meters of one run; each is None if nothing is measured.

    Attributes:
        result: called with each result.
        gauge, on_duration, tokens: as in the types of these callbacks.
        fetched: called with the result of each request for a web page.
        flow: the dashboard's figures of the operators; it also gets results and gauges.
        owned: called with the partitions of this process, and the messages in flight in each.
        incidents: called with the kinds of incidents, and which of them are open.
        exposed: returns the content of `/metrics`.
        health: collects what is known of the health of the run, also if nothing is measured; None in commands.
    """

    result: Callable[[Result], object] | None = None
    gauge: Gauge | None = None
    on_duration: ObserveDuration | None = None
    tokens: ObserveTokens | None = None
    fetched: Callable[[str], object] | None = None
    flow: FlowMeter | None = None
    owned: Callable[[Mapping[int, int]], object] | None = None
    incidents: Callable[[Mapping[str, bool]], object] | None = None
    exposed: Callable[[], bytes] | None = None
    health: HealthMonitor | None = None

    @property
    def on_call(self) -> ObserveCalls | None:
        """The callback that hears of each call of a model."""
        return None if self.health is None else self.health.on_call

    @property
    def results(self) -> list[Callable[[Result], object]]:
        """The callbacks that are called with each result."""
        return [each for each in (self.result, None if self.flow is None else self.flow.add) if each is not None]


def meters_of(settings: Settings, role: str = "", health: HealthMonitor | None = None) -> Meters:
    """Make the meters of a run; only `health` if `metrics.port` is 0. `role`: of this process, if there are more."""
    if not settings.metrics.port:
        return Meters(health=health)
    # Imported late: that takes longer than many a command.
    from services.telemetry.exporter import Metrics  # noqa: PLC0415

    metrics, flow = Metrics(role), None
    if settings.dashboard.enabled:
        from dashboard import FlowMeter  # noqa: PLC0415 (as above)

        flow = FlowMeter(time.perf_counter, metrics.gauge)
    return Meters(
        result=metrics.count_result,
        gauge=flow or metrics.gauge,
        on_duration=metrics.observe_call,
        tokens=metrics.tokens,
        fetched=metrics.count_fetch,
        flow=flow,
        owned=metrics.set_partitions if role else None,
        incidents=metrics.incidents,
        exposed=metrics.render,
        health=health,
    )


@asynccontextmanager
async def serving(
    settings: MetricsSettings,
    meters: Meters,
    health: Callable[[], str | None],
    *,
    ready: Callable[[], str | None] | None = None,
    add_pages: Callable[[Application], object] | None = None,
    pace: float = 1.0,
) -> AsyncGenerator[None]:
    """Serve the metrics for as long as the block runs, if anything is measured.

    `health` and `ready` say what is wrong with the run, and what it waits for, in a few words, or None. `pace`: loop
    seconds per real second. Raises Unusable: the port cannot be listened on.
    """
    if meters.exposed is None:
        yield
        return
    from services.telemetry.exporter import CannotListen, serve_metrics  # noqa: PLC0415 (as above)

    host, port = settings.host, settings.port
    try:
        async with serve_metrics(host, port, health, meters.exposed, ready=ready, add_pages=add_pages, pace=pace):
            yield
    except CannotListen as error:
        raise Unusable(str(error)) from None


T = TypeVar("T")

M_ARENA_MAX = -8
M_MMAP_THRESHOLD = -3
"""Constants of glibc's `malloc.h`."""
LARGE_BYTES = 128 * 1024
"""Blocks from this size on are returned to the system as soon as they are freed. glibc begins with this too, but raises
it with each larger block that is freed, up to 32 MB, and later blocks leave holes.
"""
CANCELLED_GRACE_SECONDS = 5.0
"""How long replies that are being posted may take after everything else was cancelled."""
REPLAY_DRAIN_SECONDS = 30 * DAY
"""Virtual seconds after the end of a recording: work that still runs is waited for, and has limits of its own."""

log = logging.getLogger(__name__)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine as `asyncio.run` does, without waiting at the end for threads that hang."""
    with asyncio.Runner(loop_factory=lambda: with_bounded_shutdown(asyncio.new_event_loop())) as runner:
        return runner.run(work)


def collect_garbage_less_often() -> None:
    """Make the garbage collector run less often, because histories live long and are scanned again and again
    otherwise. Two replays of 10,000 messages took 2 % and 8 % less CPU.
    """
    gc.set_threshold(20_000, 20, 50)


def shorten_thread_switches() -> None:
    """Switch threads every millisecond, not every five, so that computing threads do not delay Discord's heartbeat."""
    sys.setswitchinterval(0.001)


def use_one_malloc_arena() -> None:
    """Make glibc use one memory arena for all threads and return large blocks to the system at once (4 MB less after
    three days of the soak test). No effect with other C libraries or where `MALLOC_ARENA_MAX` is set.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    import ctypes  # noqa: PLC0415 (only long runs need it)

    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(M_ARENA_MAX, 1)
        libc.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)


@contextlib.contextmanager
def terminated_as_interrupted() -> Generator[None]:
    """Have SIGTERM, and SIGHUP of a terminal that is closed, do what Ctrl-C does: a command cleans up either way."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:  # the shell and the system may both send it: the second time, the command cleans up
            signal.signal(number, signal.SIG_IGN)
        interrupted = signal.getsignal(signal.SIGINT)
        # SIGINT is ignored in background jobs of a shell script, which SIGTERM is still to end.
        (interrupted if callable(interrupted) else signal.default_int_handler)(signal.SIGINT, frame)

    before = {number: signal.signal(number, interrupt) for number in _ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ending_signals() -> list[signal.Signals]:
    """Return the signals that end a program, but for Ctrl-C. `nohup` has SIGHUP ignored, and so it stays."""
    is_kept_up = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM] if is_kept_up else [signal.SIGTERM, signal.SIGHUP]


@contextlib.contextmanager
def stop_signal() -> Generator[asyncio.Future[None]]:
    """Yield a future that is done on SIGINT, SIGTERM or SIGHUP, which are caught while the block runs."""
    loop = asyncio.get_running_loop()
    stopped: asyncio.Future[None] = loop.create_future()

    def stop() -> None:
        if not stopped.done():
            log.info("stopping: work in flight is finished first")
            stopped.set_result(None)

    signals = (signal.SIGINT, *_ending_signals())
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        yield stopped
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


class GraphRun:
    """Subscribes to a graph at once; `drain` ends it."""

    def __init__(self, results: Observable[Result], in_flight: InFlight) -> None:
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._in_flight = in_flight
        self._subscription = results.subscribe(
            on_error=self.finished.set_exception, on_completed=lambda: self.finished.set_result(None)
        )

    def cut_off(self) -> None:
        """End at once, without further results."""
        self._subscription.dispose()

    async def drain(self, grace_seconds: float) -> bool:
        """Wait for the graph to complete, after its source has. Returns True if all was finished within the grace.

        Then unfinished work ends as cancelled("shutdown"), and work that still hangs is cut off. Raises the bug that
        ended the graph. When this returns, no write of the graph is running.
        """
        try:
            await asyncio.wait({self.finished}, timeout=grace_seconds)
            drained = self.finished.done()
            if not drained:
                unfinished = number_of(len(self._in_flight), "message")
                log.warning("shutdown: %s still in flight after %g s, left for catch-up", unfinished, grace_seconds)
                self._in_flight.stop()
                await asyncio.wait({self.finished}, timeout=CANCELLED_GRACE_SECONDS)
            if self.finished.done():
                self.finished.result()
            return drained
        finally:
            self._subscription.dispose()
            await wait_for_blocking_work()


def _say_why_it_ended(task: asyncio.Task[None]) -> None:
    from services.conversations import WorkCancelled  # noqa: PLC0415 (as in `play`)

    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, WorkCancelled):
        log.critical("what ran in the background has ended; start the program again", exc_info=error)


@contextlib.asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncGenerator[None]:
    """Run `work` while the block runs, and cancel it at the end. An error is logged at once, unless it is cancelled."""
    task = asyncio.create_task(work)
    task.add_done_callback(_say_why_it_ended)
    try:
        yield
    finally:
        await cancel_and_wait(task)


async def play(
    *recordings: Path,
    through: Callable[[Observable[Event]], Observable[Result]],
    in_flight: InFlight,
    counts: ResultCounts,
) -> bool:
    """Play recordings through a graph on the running loop, to the end. Returns True if all work was finished; `counts`
    counts the messages. Raises BadRecording: a file cannot be read, or holds nothing valid.
    """
    from operators.screen import decode  # noqa: PLC0415 (what Discord sends: 50 ms, and most commands read none of it)
    from streams.recording import dispatches  # noqa: PLC0415 (as above)

    source: Subject[Dispatch] = Subject()
    run = GraphRun(through(source.pipe(decode(), ops.do_action(counts.observe))), in_flight)
    async for dispatch in dispatches(*recordings, on_cut_off=counts.note_cut_off):
        source.on_next(dispatch)
    source.on_completed()
    return await run.drain(REPLAY_DRAIN_SECONDS)
