"""What measures a run, where `metrics.port` asks for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from assembly.errors import Unusable
from assembly.llm import Observe
from model.outcomes import Result
from operators.step import Gauge
from services.llm import ObserveTokens
from settings import MetricsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Meters:
    """Called with each result, count of items in flight, LLM call, its tokens, and fetched page; None: not measured."""

    result: Callable[[Result], object] | None = None
    gauge: Gauge | None = None
    observe: Observe | None = None
    tokens: ObserveTokens | None = None
    fetched: Callable[[str], object] | None = None


@asynccontextmanager
async def measuring(settings: MetricsSettings, health: Callable[[], str | None]) -> AsyncGenerator[Meters]:
    """Meters for one run, served while the block runs; without any where `metrics.port` is 0.

    `health` says what is wrong with the run in a few words, or None.

    Raises:
        Unusable: the port cannot be listened on.
    """
    if not settings.port:
        yield Meters()
        return
    # Only now: importing these takes longer than many a command.
    from services.telemetry.exporter import CONTENT_TYPE, CannotListen, Metrics, serve_metrics  # noqa: PLC0415

    metrics = Metrics()
    try:
        async with serve_metrics(settings.host, settings.port, health, metrics.render, CONTENT_TYPE):
            yield Meters(
                result=metrics.end,
                gauge=metrics.gauge,
                observe=metrics.observe,
                tokens=metrics.tokens,
                fetched=metrics.fetched,
            )
    except CannotListen as error:
        raise Unusable(str(error)) from None
