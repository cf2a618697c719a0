"""Whether anybody measures, and with what."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from assembly.errors import Unusable
from assembly.llm import Observe, unobserved
from model.outcomes import Result
from operators.step import Gauge, ignore
from services.llm import ObserveTokens
from settings import MetricsSettings


def uncounted(_end: Result) -> None:
    """Nobody counts."""


def unfetched(_result: str) -> None:
    """Nobody counts pages, either."""


@dataclass(frozen=True, slots=True)
class Meters:
    """Functions to be handed to whatever is to be measured."""

    end: Callable[[Result], object] = uncounted
    """For every end of the outcome stream (`Sinks.ends`)."""
    gauge: Gauge = ignore
    """For `assemble`."""
    observe: Observe = unobserved
    """For `assistant_for`."""
    tokens: ObserveTokens | None = None
    """For `assemble`."""
    fetched: Callable[[str], object] = unfetched
    """For `knowledge_parts`."""


@asynccontextmanager
async def measuring(settings: MetricsSettings, health: Callable[[], str | None]) -> AsyncGenerator[Meters]:
    """Meters for one run, served while the block runs; meters that do nothing where `metrics.port` is 0.

    `health` tells what is wrong with the run in a few words, or None.

    Raises:
        Unusable: the port cannot be had.
    """
    if not settings.port:
        yield Meters()
        return
    # Only now: importing these takes longer than many a command.
    from services.telemetry.exporter import CONTENT_TYPE, CannotListen, Metrics, serve_metrics  # noqa: PLC0415

    metrics = Metrics()
    async with AsyncExitStack() as stack:
        server = serve_metrics(settings.host, settings.port, health, metrics.render, CONTENT_TYPE)
        try:
            await stack.enter_async_context(server)
        except CannotListen as error:
            raise Unusable(str(error)) from None
        yield Meters(metrics.end, metrics.gauge, metrics.observe, metrics.tokens, metrics.fetched)
