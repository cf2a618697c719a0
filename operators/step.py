"""One step of a branch: failures and refusals become outcomes, and outcomes pass through."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from reactivex import Observable

from clock import now
from model.batches import Part
from model.messages import Message
from model.outcomes import Outcome, OutcomeKind
from operators.map_async import Watch, map_async
from operators.selecting import pass_through
from services.assistant import Inquiry, Unanswered, end
from services.conversations import CalledOff
from services.telemetry import about, people

log = logging.getLogger(__name__)

T = TypeVar("T", bound=Inquiry | Unanswered)

Gauge = Callable[[str, int], object]
"""Called with the name of an operator and how many items it is working on."""


@runtime_checkable
class Meter(Protocol):
    """A `Gauge` that hears of each item as well; must not fail."""

    def __call__(self, operator: str, count: int) -> object: ...

    def waits(self, operator: str, count: int) -> object:
        """So many items wait for the operator."""
        ...

    def begins(self, operator: str) -> Callable[[Exception | None], object]:
        """As `Watch.begins`."""
        ...


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
        people.set(frozenset(message.author.id for message in (*inquiry.part.messages, *messages_of(inquiry))))
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
            watch=watched(gauge, name),
        ),
    )
    return cast("Step", through)


def messages_of(inquiry: Inquiry | Unanswered) -> Iterable[Message]:
    """What is known of its conversation."""
    return inquiry.messages if isinstance(inquiry, Inquiry) else inquiry.inquiry.messages


def named(gauge: Gauge | None, name: str) -> Callable[[int], object] | None:
    """The gauge of one operator; None where nothing is measured."""
    return None if gauge is None else lambda count: gauge(name, count)


@dataclass(frozen=True, slots=True)
class _OfOne:
    """A meter's `Watch` of one operator."""

    meter: Meter
    name: str

    def waits(self, count: int) -> object:
        return self.meter.waits(self.name, count)

    def begins(self) -> Callable[[Exception | None], object]:
        return self.meter.begins(self.name)


def watched(gauge: Gauge | None, name: str) -> Watch | None:
    """What hears of each item of one operator; None where the gauge only counts them."""
    return _OfOne(gauge, name) if isinstance(gauge, Meter) else None


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
    report, watch = named(gauge, name), watched(gauge, name)
    ended = None if watch is None else watch.begins()
    failed: Exception | None = None
    if report is not None:
        report(1)
    try:
        yield
    except Exception as error:
        failed = error
        raise
    finally:
        if report is not None:
            report(0)
        if ended is not None:
            ended(failed)
