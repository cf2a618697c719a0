"""From events to batches; at the other end, the book-keeping of results; beside them, votes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Never, cast

from reactivex import Observable
from reactivex import operators as ops

from clock import now, utc_clock
from model.batches import Batch, Key
from model.events import Event, Posted, Reaction, Ready
from model.outcomes import Ignored, Reason, Result
from operators import Amend, concat_map_iterable, map_async, quiet_window
from operators.screen import Screened
from operators.step import Gauge, named
from operators.verdicts import InferredVote
from services.conversations import History, InFlight, People, Seen
from services.telemetry import about_message

log = logging.getLogger(__name__)


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

    def waiting(item: Screened) -> tuple[Posted | Amend[Key, Posted], ...]:
        # For every message: no more than a look at the level where INFO is off.
        if isinstance(item, Posted) and log.isEnabledFor(logging.INFO):
            log.info("discord.user_batch_wait: %g s", quiet_seconds, extra=about_message(item.message))
        return (item,) if isinstance(item, Posted | Amend) else ()

    return screened.pipe(
        concat_map_iterable(waiting),
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


def batch_of(admitted: list[Posted]) -> Batch:
    messages = sorted((item.message for item in admitted), key=lambda message: message.id)
    return Batch(tuple(messages), now())


def votes(
    given: Observable[Reaction | InferredVote], keep: Callable[[Reaction | InferredVote], Coroutine[Any, Any, None]]
) -> Observable[Never]:
    """Hand each vote to the sink, in order. Emits nothing; completes when the last one is kept.

    given   --r1--v1--r2--|
    votes   --------------|
    """

    def failed(vote: Reaction | InferredVote, error: Exception) -> None:
        about = vote.message_id if isinstance(vote, Reaction) else vote.post.message_id
        log.error("a vote about message %d was not kept: %s", about, error)

    kept = given.pipe(map_async(keep, on_failure=failed, max_concurrent=1), ops.ignore_elements())
    return cast("Observable[Never]", kept)
