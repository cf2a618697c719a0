"""From batches to parts, and from parts to inquiries and capture jobs."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable

from reactivex import Observable
from reactivex import operators as ops

from dataflow.basics import concat_map_iterable
from dataflow.map_async import map_async
from dataflow.metering import Gauge, operator_gauge, operator_watch
from dataflow.serialize_by_key import serialize_by_key
from model.messages import Batch, Destination, Key, Message, Part
from model.outcomes import Ignored, Outcome, Reason
from model.servers import Servers
from operators.step import failure_of
from services.assistant import CaptureJob, Inquiry, skip_outcome
from services.conversations import ConversationTracker, History, InFlight, People, Router, RoutingResult
from services.llm import Usage
from services.telemetry import current_part, number_of

log = logging.getLogger(__name__)


def cut(
    people: People, history: History, tracker: ConversationTracker, in_flight: InFlight
) -> Callable[[Observable[Batch]], Observable[Part]]:
    """Cut each batch where the person turns to another conversation, and number the parts.

    --[m1, m2→x, m3, m4→y]--------|
    [ cut                 ]              x and y are messages of two conversations, m1 begins a third
    --([m1] [m2, m3] [m4])--------|      an intro line of a team member goes with the message after it

    A batch is also cut where its replies go to another place: words to a private question must not be in one part with
    public ones.
    """
    numbers = itertools.count(1)

    def parts(batch: Batch) -> list[Part]:
        author_type = people.type_of(batch.messages[0].author, history.guild_of(batch.messages[0]))
        place = history.place(batch.messages[0].channel_id)
        pieces = itertools.groupby(batch.messages, lambda each: (tracker.conversation_of(each.id), other_place(each)))
        made = [Part(next(numbers), tuple(piece), author_type, place, batch.closed_at) for _, piece in pieces]
        for part in made:
            in_flight.begin(part)
        return made

    return concat_map_iterable(parts)


def other_place(message: Message) -> int | None:
    """Return the place that a message replies to, if that is not its own."""
    reply = message.reply_to
    return None if reply is None or reply.gone or reply.channel_id == message.channel_id else reply.channel_id


ROUTED_AT_ONCE = 64
"""Parts whose reply targets may be looked up at the same time."""

RoutedItem = Inquiry | CaptureJob | Ignored | Outcome


def route(
    router: Router, usages: Servers[Usage], gauge: Gauge | None = None
) -> Callable[[Observable[Part]], Observable[RoutedItem]]:
    """Send each part where the routing table says; one person's parts in one place stay in order.

        --p1-p2-----p3--------|
        [ route               ]
        ---q1-c2-----i3-------|      an inquiry, a capture job, an `Ignored`

    `usages` count the LLM calls and tokens of each server's inquiries. A part whose look-up fails ends as `failed`.
    """

    async def routed(part: Part) -> tuple[Key, RoutedItem]:
        current_part.set(part)
        log.info("discord.user_batch_process_start: %s", number_of(len(part.messages), "message"))
        return part.key, item_of(part, await router.route(part), usages[part.guild_id])

    def failed(part: Part, error: Exception) -> tuple[Key, RoutedItem]:
        return part.key, failure_of(part, "route", error)

    def operator(parts: Observable[Part]) -> Observable[RoutedItem]:
        in_order = serialize_by_key(
            lambda part: part.key,
            map_async(
                routed,
                on_failure=failed,
                max_concurrent=ROUTED_AT_ONCE,
                gauge=operator_gauge(gauge, "route"),
                watch=operator_watch(gauge, "route"),
            ),
            key_of_result=lambda result: result[0],
            max_active=ROUTED_AT_ONCE,
        )
        return parts.pipe(in_order, ops.map(lambda result: result[1]))

    return operator


def item_of(part: Part, routing: RoutingResult, usage: Usage | None) -> RoutedItem:
    """Return the item that a routed part becomes: a capture job, an inquiry, an `Ignored`, or an outcome."""
    if routing.to is Destination.CAPTURE:
        return CaptureJob(part)
    if routing.to is Destination.NOTHING:
        return ignored(part, routing.end_reason or Reason.NOT_ADDRESSED)
    inquiry = Inquiry(part, routing.addressed, Usage(usage), decisions={})
    return inquiry if routing.end_reason is None else skip_outcome(inquiry, routing.end_reason)


def ignored(part: Part, reason: Reason) -> Ignored:
    return Ignored(reason, part.messages[0].channel_id, part.message_ids, part.number)
