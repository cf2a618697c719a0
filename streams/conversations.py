"""From events to batches, and what takes note of events and of results."""

from __future__ import annotations

import logging
from collections.abc import Callable

from reactivex import Observable
from reactivex import operators as ops

from clock import now, utc_clock
from model.batches import Batch, Key
from model.events import Event, Posted
from model.outcomes import Ignored, Reason, Result
from operators import Amend, quiet_window, spread
from operators.screen import Screened
from operators.step import Gauge, named
from services.conversations import History, InFlight, People, Seen
from services.telemetry import about_message

log = logging.getLogger(__name__)


def remembered(events: Observable[Event], history: History, people: People, seen: Seen) -> Observable[Event]:
    """The same events, after history, people and the catch-up marks have observed them."""

    def observe(event: Event) -> None:
        history.observe(event)
        people.observe(event)
        if isinstance(event, Posted):
            seen.arrived(event.message)

    return events.pipe(ops.do_action(observe))


def settled(
    ends: Observable[Result], in_flight: InFlight, seen: Seen, tell: Callable[[Result], None]
) -> Observable[Result]:
    """The same results, after nothing holds their messages any more and `tell` got them."""

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
        if isinstance(item, Posted) and log.isEnabledFor(logging.INFO):
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


def waiting(item: Screened) -> tuple[Posted | Amend[Key, Posted], ...]:
    return (item,) if isinstance(item, Posted | Amend) else ()


def where_and_who(spoken: Posted) -> Key:
    return Key(spoken.message.channel_id, spoken.message.author.id)


def batch_of(spoken: list[Posted]) -> Batch:
    messages = sorted((item.message for item in spoken), key=lambda message: message.id)
    return Batch(tuple(messages), now())
