"""One step of a branch: failures and refusals become outcomes, and outcomes pass through."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from reactivex import Observable

from clock import now
from model.batches import Part
from model.outcomes import Outcome, OutcomeKind
from operators.map_async import map_async
from operators.selecting import pass_through
from services.assistant import Inquiry, Unanswered, end
from services.conversations import CalledOff
from services.telemetry import about

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Inquiry | Unanswered)

Gauge = Callable[[str, int], object]
"""Called with the name of an operator and how many items it is working on."""
Item = Inquiry | Unanswered | Outcome
Step = Callable[[Observable[Item]], Observable[Item]]


class TookTooLong(Exception):
    """The answer chain exceeded its time limit."""


def step(
    name: str,
    fn: Callable[[T], Coroutine[Any, Any, Inquiry | Unanswered | Outcome]],
    max_concurrent: int,
    gauge: Gauge | None = None,
    *,
    passing: tuple[type, ...] = (Outcome, Unanswered),
) -> Step:
    """Await `fn` for each inquiry; pass outcomes through, and what is `Unanswered`.

        --q1----q2----o3-----|
        [ step("gate", gate) ]      gate(q2) raises
        ----q1----o2--o3-----|      o2 = failed("… at gate")

    An inquiry whose token is cancelled ends as `cancelled`, one that ran out of time as `failed`.
    """

    async def timed(inquiry: T) -> Inquiry | Unanswered | Outcome:
        about.set(inquiry.part)
        if not log.isEnabledFor(logging.DEBUG):
            return await fn(inquiry)
        began = now()
        try:
            return await fn(inquiry)
        finally:
            log.debug("%s took %.0f ms", name, (now() - began) * 1000)

    through: Callable[..., Any] = pass_through(
        passing,
        map_async(
            timed,
            on_failure=lambda inquiry, error: failure(inquiry, name, error),
            max_concurrent=max_concurrent,
            token=lambda inquiry: inquiry.token,
            gauge=named(gauge, name),
        ),
    )
    return cast("Step", through)


def named(gauge: Gauge | None, name: str) -> Callable[[int], object] | None:
    """The gauge of one operator; None where nothing is measured."""
    return None if gauge is None else lambda count: gauge(name, count)


def failure(inquiry: Inquiry | Unanswered, name: str, error: Exception) -> Outcome:
    """The outcome of an inquiry that a step could not finish."""
    outcome = failure_of(inquiry.part, name, error)
    return end(inquiry.inquiry if isinstance(inquiry, Unanswered) else inquiry, outcome.result, outcome.reason)


def failure_of(part: Part, name: str, error: Exception) -> Outcome:
    """The outcome of a part that was cancelled, or that failed at the step `name`."""
    if isinstance(error, CalledOff):
        return Outcome(part, now(), OutcomeKind.CANCELLED, error.reason)
    about.set(part)
    log.warning("%s failed: %s: %s", name, type(error).__name__, error, exc_info=None if expected(error) else error)
    return Outcome(part, now(), OutcomeKind.FAILED, f"{type(error).__name__} at {name}")


def expected(error: Exception) -> bool:
    """Whether an error comes from outside the program, so that its message is enough; others are bugs."""
    return type(error).__module__.split(".")[0] in {"services", "operators"} or isinstance(
        error, TimeoutError | OSError
    )


@contextmanager
def in_flight(gauge: Gauge | None, name: str) -> Generator[None]:
    """Report one item in flight at the operator `name` while the block runs; one at a time."""
    report = named(gauge, name)
    if report is not None:
        report(1)
    try:
        yield
    finally:
        if report is not None:
            report(0)
