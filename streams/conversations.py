"""Operators at both ends of the graph: from events to batches; book-keeping of results; and votes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Never, cast

from reactivex import Observable
from reactivex import operators as ops

from clock import now, utc_clock
from dataflow import Amend, Keep, concat_map_iterable, map_async, quiet_window
from dataflow.metering import Gauge, operator_gauge
from model.events import Event, Posted, Reaction, Ready, Typing
from model.messages import Batch, Key, Message
from model.outcomes import Ignored, Reason, Result
from operators.inferred_votes import InferredVote
from operators.screen import ScreenedItem
from services.conversations import ConversationTracker, History, InFlight, People, TypingTracker, Watermarks
from services.discord import render
from services.search import looks_finished
from services.telemetry import about_message

log = logging.getLogger(__name__)


def observe(
    events: Observable[Event], history: History, people: People, watermarks: Watermarks, typists: TypingTracker
) -> Observable[Event]:
    """Pass events on after updating the history, the people, the watermarks and who is typing."""

    def on_event(event: Event) -> None:
        history.observe(event)
        if isinstance(event, Posted):
            watermarks.note_arrival(event.message.channel_id, event.message.id)
            typists.note_message(event.message)
        elif isinstance(event, Typing):
            typists.note(event)
        elif isinstance(event, Ready):
            people.bot_id = event.bot_id

    return events.pipe(ops.do_action(on_event))


def release(
    results: Observable[Result],
    in_flight: InFlight,
    watermarks: Watermarks,
    sinks: Sequence[Callable[[Result], object]],
) -> Observable[Result]:
    """Pass results on after releasing their messages, moving the watermarks, and calling all `sinks`."""

    def on_result(result: Result) -> None:
        # The first delivery of a duplicate may still be in flight; a duplicate part comes only from catch-up.
        if not (isinstance(result, Ignored) and result.reason is Reason.DUPLICATE and result.part_number is None):
            in_flight.release(result)
            watermarks.note_result(result)
        for sink in sinks:
            sink(result)

    return results.pipe(ops.do_action(on_result))


@dataclass(frozen=True, slots=True)
class WindowRules:
    """When a batch closes, in seconds.

    Attributes:
        quiet: after its author's last message.
        settle: after that message, if the author's typing is known, stopped, and the text looks finished.
        longest: after its first message, at the latest.
    """

    quiet: float = 60.0
    settle: float = 15.0
    longest: float = 600.0


def batches(
    screened: Observable[ScreenedItem],
    tracker: ConversationTracker,
    typists: TypingTracker,
    rules: WindowRules,
    gauge: Gauge | None,
) -> Observable[Batch]:
    """Collect each person's messages in one place until the person is quiet, the messages are very many, or one is of a
    kind that does not settle. While typing, a person is not quiet.

    screened --m1-m2-----m3-k-k-----------|      k = Keep: the author is typing
    batches  ----------B1------------B2---|      B1 = [m1, m2]
    """

    def waiting(item: ScreenedItem) -> tuple[Posted | Amend[Key, Posted] | Keep[Key], ...]:
        # For every message: no more than a look at the level where INFO is off.
        if isinstance(item, Posted) and log.isEnabledFor(logging.INFO):
            log.info("discord.user_batch_wait: %g s", rules.quiet, extra=about_message(item.message))
        return (item,) if isinstance(item, Posted | Amend | Keep) else ()

    def quiet_seconds(window: Sequence[Posted]) -> float:
        is_full = len(window) >= MAX_MESSAGES or sum(len(item.message.text) for item in window) >= MAX_CHARS
        if is_full or not tracker.kind_of(window[-1].message.id).settles:
            return 0.0
        finished = typists.reports_typing(key_of(window[-1]), window[-1].at) and looks_finished(text_of(window))
        return min(rules.settle, rules.quiet) if finished else rules.quiet

    return screened.pipe(
        concat_map_iterable(waiting),
        quiet_window(
            rules.quiet,
            key_of,
            max_seconds=rules.longest,
            quiet_seconds=quiet_seconds,
            time_of=lambda admitted: admitted.at,
            clock=utc_clock,
            gauge=operator_gauge(gauge, "quiet_window"),
        ),
        ops.map(batch_of),
    )


def key_of(admitted: Posted) -> Key:
    return Key(admitted.message.channel_id, admitted.message.author.id)


MAX_MESSAGES, MAX_CHARS = 50, 40_000
"""A batch closes with the message that reaches one of them: a flood must not be read, sent to a model and stored as one
question.
"""
JUDGED_CHARS = 4_000
"""A longer text counts as unfinished: judging it anew with each message would cost too much."""


def text_of(admitted: Iterable[Posted]) -> str:
    """Return the text of a window, with placeholders for files; empty if it is longer than `JUDGED_CHARS`."""
    messages = in_order(admitted)
    short = sum(len(message.text) + 1 for message in messages) <= JUDGED_CHARS
    return "\n".join(render(message, {}) for message in messages) if short else ""


def in_order(admitted: Iterable[Posted]) -> list[Message]:
    return sorted((item.message for item in admitted), key=lambda message: message.id)


def batch_of(admitted: list[Posted]) -> Batch:
    return Batch(tuple(in_order(admitted)), now())


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
