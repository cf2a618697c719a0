"""From events to parts, and where each part goes; at the other end, the book-keeping of results."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from reactivex import Observable
from reactivex import operators as ops

from clock import now, utc_clock
from model.batches import Batch, Key
from model.events import Event, Posted, Ready
from model.outcomes import Ignored, Outcome, Reason, Result
from operators import Amend, map_async, quiet_window, serialize_by_key, spread
from operators.cut import StartedPart
from operators.route import Routed, Router
from operators.screen import Admitted, Screened
from operators.step import Gauge, failure_of, named
from services.assistant import CaptureJob, Inquiry
from services.conversations import History, InFlight, People, Seen
from services.telemetry import about, about_message, number_of

log = logging.getLogger(__name__)

ROUTED_AT_ONCE = 64
"""Parts whose reply targets may be looked up side by side."""
UNBOUNDED = 1 << 62
"""Routing drops nothing: it decides what may be dropped."""


def observed(events: Observable[Event], history: History, people: People, seen: Seen) -> Observable[Event]:
    """The same events, after history, people and the catch-up marks have recorded them."""

    def observe(event: Event) -> None:
        history.observe(event)
        if isinstance(event, Posted):
            seen.arrived(event.message)
        elif isinstance(event, Ready):
            people.bot_id = event.bot_id

    return events.pipe(ops.do_action(observe))


def settled(
    results: Observable[Result], in_flight: InFlight, seen: Seen, sinks: Sequence[Callable[[Result], object]]
) -> Observable[Result]:
    """The same results, after their messages were released, the catch-up marks moved, and all `sinks` called."""

    def settle(result: Result) -> None:
        # The first delivery of a duplicate may still be in flight; a whole part is one only when catch-up repeats it.
        if not (isinstance(result, Ignored) and result.reason is Reason.DUPLICATE and result.part_number is None):
            in_flight.settle(result)
            seen.settled(result)
        for sink in sinks:
            sink(result)

    return results.pipe(ops.do_action(settle))


def batches(
    screened: Observable[Screened], quiet_seconds: float, max_seconds: float, gauge: Gauge | None
) -> Observable[Batch]:
    """What each person wrote in one place until falling quiet.

    screened --m1-m2-----m3--------|
    batches  ----------B1-----B2---|      B1 = [m1, m2]
    """

    def waiting(item: Screened) -> tuple[Admitted | Amend[Key, Admitted], ...]:
        # For every message: no more than a look at the level where INFO is off.
        if isinstance(item, Admitted) and log.isEnabledFor(logging.INFO):
            log.info("discord.user_batch_wait: %g s", quiet_seconds, extra=about_message(item.message))
        return (item,) if isinstance(item, Admitted | Amend) else ()

    return screened.pipe(
        spread(waiting),
        quiet_window(
            quiet_seconds,
            lambda admitted: Key(admitted.message.channel_id, admitted.message.author.id),
            max_seconds=max_seconds,
            at=lambda admitted: admitted.at,
            clock=utc_clock,
            gauge=named(gauge, "quiet_window"),
        ),
        ops.map(batch_of),
    )


def batch_of(admitted: list[Admitted]) -> Batch:
    messages = sorted((item.message for item in admitted), key=lambda message: message.id)
    return Batch(tuple(messages), now())


def routed(
    parts: Observable[StartedPart], router: Router, gauge: Gauge | None
) -> Observable[Inquiry | CaptureJob | Ignored | Outcome]:
    """Each part with its destination; one person's parts in one place stay in order.

    parts    --p1-p2-----p3--------|
    routed   ---q1-c2-----i3-------|      an inquiry, a capture, an `Ignored`
    """

    async def route(started: StartedPart) -> Routed:
        about.set(started.part)
        log.info("discord.user_batch_process_start: %s", number_of(len(started.part.messages), "message"))
        return Routed(started.part.key, await router.route(started))

    def failed(started: StartedPart, error: Exception) -> Routed:
        return Routed(started.part.key, failure_of(started.part, "route", error))

    return parts.pipe(
        serialize_by_key(
            lambda started: started.part.key,
            map_async(route, on_failure=failed, max_concurrent=ROUTED_AT_ONCE, gauge=named(gauge, "route")),
            key_of_result=lambda result: result.key,
            max_active=ROUTED_AT_ONCE,
            max_waiting=UNBOUNDED,
            on_overflow=lambda started: failed(started, OverflowError()),
        ),
        ops.map(lambda result: result.to),
    )
