"""One step of a branch: its failures and refusals are outcomes, and outcomes go by."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from reactivex import Observable

from clock import now
from clock.cancel_token import CancelToken
from model.batches import Part
from model.outcomes import Outcome, OutcomeKind
from operators.map_async import map_async
from operators.pass_through import pass_through
from services.assistant import Inquiry, end
from services.conversations import CalledOff
from services.telemetry import about

log = logging.getLogger(__name__)


class TookTooLong(Exception):
    """The chain was not through in the time it may take."""


Gauge = Callable[[str, int], object]
"""Told the name of an operator and how many items it is working on."""


def ignore(_name: str, _count: int) -> None:
    """The gauge of nobody who looks."""


Step = Callable[[Observable[Inquiry | Outcome]], Observable[Inquiry | Outcome]]


def step(
    name: str,
    fn: Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]],
    max_concurrent: int,
    gauge: Gauge = ignore,
) -> Step:
    """Await `fn` for each inquiry; let outcomes by.

        --q1----q2----o3-----|
        [ step("gate", gate) ]      gate(q2) raises
        ----q1----o2--o3-----|      o2 = failed("… at gate")

    An inquiry whose token is cancelled ends as `cancelled`, one that ran out of time as `failed`.
    """

    def begun(inquiry: Inquiry) -> Coroutine[Any, Any, Inquiry | Outcome]:
        about.set(inquiry.part)
        return timed(inquiry) if log.isEnabledFor(logging.DEBUG) else fn(inquiry)

    async def timed(inquiry: Inquiry) -> Inquiry | Outcome:
        began = now()
        try:
            return await fn(inquiry)
        finally:
            log.debug("%s took %.0f ms", name, (now() - began) * 1000)

    def failed(inquiry: Inquiry, error: Exception) -> Inquiry | Outcome:
        return failure(inquiry, name, error)

    return pass_through(
        Outcome,
        map_async(
            begun,
            on_failure=failed,
            max_concurrent=max_concurrent,
            token=token_of,
            gauge=named(gauge, name),
        ),
    )


def named(gauge: Gauge, name: str) -> Callable[[int], object] | None:
    """The gauge of one operator; None where nobody looks."""
    return None if gauge is ignore else lambda count: gauge(name, count)


def token_of(inquiry: Inquiry) -> CancelToken:
    return inquiry.token


def failure(inquiry: Inquiry, name: str, error: Exception) -> Outcome:
    """How an inquiry ends that a step could not finish."""
    told = failure_of(inquiry.part, name, error)
    return end(inquiry, told.result, told.reason)


def failure_of(part: Part, name: str, error: Exception) -> Outcome:
    """How a part ends that was called off, or that something went wrong with."""
    if isinstance(error, CalledOff):
        return Outcome(part, now(), OutcomeKind.CANCELLED, error.reason)
    about.set(part)
    log.warning("%s failed: %s: %s", name, type(error).__name__, error, exc_info=None if expected(error) else error)
    return Outcome(part, now(), OutcomeKind.FAILED, f"{type(error).__name__} at {name}")


def expected(error: Exception) -> bool:
    """Whether an error tells of the world outside, so that its message is enough; others are bugs."""
    return type(error).__module__.split(".")[0] in {"services", "operators"} or isinstance(
        error, TimeoutError | OSError
    )
