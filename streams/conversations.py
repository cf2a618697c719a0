"""From events to parts, and where each of them goes."""

from __future__ import annotations

import logging
from collections.abc import Callable

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
from services.assistant import Inquiry, Lesson
from services.conversations import History, InFlight, People, Seen
from services.telemetry import about, about_message, number_of

log = logging.getLogger(__name__)

ROUTED_AT_ONCE = 64
"""Parts whose reply targets may be looked up side by side."""
ALL = 1 << 62
"""However many wait to be routed: routing drops nothing, since it is what decides about dropping."""


def remembered(events: Observable[Event], history: History, people: People, seen: Seen) -> Observable[Event]:
    """The same events, once history, people and the catch-up mark have heard of them."""

    def hear(event: Event) -> None:
        history.observe(event)
        if isinstance(event, Posted):
            seen.arrived(event.message)
        elif isinstance(event, Ready):
            people.bot_id = event.bot_id

    return events.pipe(ops.do_action(hear))


def settled(
    ends: Observable[Result], in_flight: InFlight, seen: Seen, tell: Callable[[Result], None]
) -> Observable[Result]:
    """The same ends, once nothing holds their messages any more and `tell` has heard of them."""

    def settle(end: Result) -> None:
        # Of a duplicate, the message itself may still be in hand; as a part, catch-up has brought it in vain.
        if not (isinstance(end, Ignored) and end.reason is Reason.DUPLICATE and end.part_number is None):
            in_flight.settle(end)
            seen.settled(end)
        tell(end)

    return ends.pipe(ops.do_action(settle))


def batches(
    screened: Observable[Screened], quiet_seconds: float, max_seconds: float, gauge: Gauge
) -> Observable[Batch]:
    """What each person wrote in one place until falling quiet.

    spoken   --m1-m2-----m3--------|
    batches  ----------B1-----B2---|      B1 = [m1, m2]
    """

    def tell(item: Screened) -> None:
        # For every message: no more than a look at the level where nobody reads it.
        if isinstance(item, Admitted) and log.isEnabledFor(logging.INFO):
            log.info("discord.user_batch_wait: %g s", quiet_seconds, extra=about_message(item.message))

    return screened.pipe(
        ops.do_action(tell),
        spread(waiting),
        quiet_window(
            quiet_seconds,
            where_and_who,
            max_seconds=max_seconds,
            at=lambda spoken: spoken.at,
            clock=utc_clock,
            gauge=named(gauge, "quiet_window"),
        ),
        ops.map(batch_of),
    )


def waiting(item: Screened) -> tuple[Admitted | Amend[Key, Admitted], ...]:
    return (item,) if isinstance(item, Admitted | Amend) else ()


def where_and_who(spoken: Admitted) -> Key:
    return Key(spoken.message.channel_id, spoken.message.author.id)


def batch_of(spoken: list[Admitted]) -> Batch:
    messages = sorted((item.message for item in spoken), key=lambda message: message.id)
    return Batch(tuple(messages), now())


def routed(
    parts: Observable[StartedPart], router: Router, gauge: Gauge
) -> Observable[Inquiry | Lesson | Ignored | Outcome]:
    """Each part with its destination; one person's parts in one place stay in order.

    parts    --p1-p2-----p3--------|
    routed   ---q1-l2-----i3-------|      an inquiry, a lesson, an `Ignored`
    """

    async def route(begun: StartedPart) -> Routed:
        about.set(begun.part)
        log.info("discord.user_batch_process_start: %s", number_of(len(begun.part.messages), "message"))
        return Routed(begun.part.key, await router.route(begun))

    def failed(begun: StartedPart, error: Exception) -> Routed:
        return Routed(begun.part.key, failure_of(begun.part, "route", error))

    return parts.pipe(
        serialize_by_key(
            lambda begun: begun.part.key,
            map_async(
                route,
                on_failure=failed,
                max_concurrent=ROUTED_AT_ONCE,
                gauge=named(gauge, "route"),
            ),
            key_of_result=lambda result: result.key,
            max_active=ROUTED_AT_ONCE,
            max_waiting=ALL,
            on_overflow=lambda begun: failed(begun, OverflowError()),
        ),
        spread(lambda result: (result.to,)),
    )
