"""Questions in, answers or the reasons for none out: in the graph (`answers`), for replies that an earlier run left
half posted (`unfinished`), and for answers that wait for a person (`approvals`). `streams.answerer` is for one
conversation outside of the graph.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import reactivex as rx
from reactivex import Observable, compose
from reactivex import operators as ops
from reactivex.abc import ObserverBase

from dataflow import concat_map_iterable, map_async, of_type, serialize_by_key
from dataflow.metering import operator_watch
from model.events import Edited, Event, Ready
from model.outcomes import Outcome, OutcomeKind, Reason
from operators.answering import AnswerRules, gather, hold, permit
from operators.approving import require_approval
from operators.pointing import remember_replies
from operators.step import failure_of, in_order, in_turn, step
from services.assistant import Inquiry, skip_outcome
from services.conversations import DraftAction, DraftRequest, Drafts, InFlight, Outbox, StartedReply
from streams.chain import chain, for_server

if TYPE_CHECKING:
    from streams.wiring import Services

log = logging.getLogger(__name__)


def answers(
    inquiries: Observable[Inquiry],
    services: Services,
    reply: Callable[[Inquiry], Coroutine[Any, Any, Outcome]],
    rules: AnswerRules,
    gathered: ObserverBase[Inquiry],
) -> Observable[Outcome]:
    """Emit one outcome for each inquiry, from gather, permit, the chain, hold, approve and reply. Inquiries of one
    asker in one place are answered one after another.

    `gathered` receives each inquiry that is gathered and permitted, and completes with the answers.

    inquiries  --a1-a2-b1--------------------|
    answers    ---------a1---b1----a2--------|      a2 sees the answer to a1

    chain      --a--b-------c----------------|      at b and c a team member is typing
    hold       --a-------b-------o-----------|      b goes on when the typing stops; the team's reply ends c as o
    reply      ---a-------b------o-----------|      or held, where a person has to approve
    """
    s, most = services, rules.max_concurrent_answers
    replying = for_server(lambda each: remember_replies(reply, each.recent_replies), s.servers)
    gathering = gather(s.context, s.history, s.posts, s.in_flight, s.images, rules.thread_reuse_seconds)

    permitting = permit(s.access)

    async def permitted(inquiry: Inquiry) -> Inquiry | Outcome:
        item = await permitting(inquiry)
        if isinstance(item, Inquiry):
            gathered.on_next(item)
        return item

    answered = in_order(
        step("gather", gathering, most, s.gauge),
        step("permit", permitted, most, s.gauge),
        *chain(s.servers, rules, s.gauge),
        step("hold", hold(s.typists), most, s.gauge),
        personal_work=s.in_flight.work,
    )
    # Not in `in_order`, whose steps may begin again: a draft is stored, and a reply posted, once.
    replied = step("reply", replying, most, s.gauge)
    if any(each.approval.is_on for each in s.servers.values()):
        approving = for_server(
            lambda at: require_approval(at.search, s.drafts, s.in_flight, at.approval, at.library), s.servers
        )
        replied = in_turn(step("approve", approving, most, s.gauge), replied)
    queue = operator_watch(s.gauge, "queue")
    return inquiries.pipe(
        serialize_by_key(
            lambda inquiry: inquiry.part.key,
            compose(answered, replied, of_type(Outcome)),
            key_of_result=lambda outcome: outcome.part.key,
            max_active=most,
            max_waiting=rules.max_waiting_answers,
            on_overflow=lambda inquiry: skip_outcome(inquiry, Reason.OVERLOADED),
            on_waiting=None if queue is None else queue.on_waiting,
        ),
        ops.do_action(on_completed=gathered.on_completed),
    )


MAX_FINISHING = 8


def unfinished(
    events: Observable[Event], outbox: Outbox, finish: Callable[[StartedReply], Coroutine[Any, Any, Outcome | None]]
) -> Observable[Outcome]:
    """Once the bot is connected, finish the replies that an earlier run has begun, and emit their outcomes; none for a
    reply of which nothing was posted.

    events      --Ready--m1---Ready--|
    unfinished  ---------o1-o2-------|
    """

    def left(_: Ready) -> Iterable[StartedReply]:
        return outbox.unfinished

    def failed(reply: StartedReply, error: Exception) -> Outcome:
        return failure_of(reply.part(), "reply", error)

    return events.pipe(
        of_type(Ready),
        ops.take(1),
        concat_map_iterable(left),
        map_async(finish, on_failure=failed, max_concurrent=MAX_FINISHING),
        of_type(Outcome),
    )


DRAFTS_AT_ONCE = 16


class HandledRequest(NamedTuple):
    draft_id: int
    outcome: Outcome | None


SHOW_EDIT_SECONDS = 5.0
"""The review channel shows an edited question so long after the last of several edits."""


def approvals(
    events: Observable[Event],
    outcomes: Observable[Outcome],
    drafts: Drafts,
    in_flight: InFlight,
    handle: Callable[[DraftRequest], Coroutine[object, object, Outcome | None]],
) -> Observable[Outcome]:
    """Emit one outcome for each draft when it ends. Requests about one draft are handled one after another. Once
    `events` has completed, no more requests are taken, and the drafts that still wait are kept.

    events     --Ready---------------|      a draft of an earlier run is taken up
    outcomes   -------h---k----------|      two answers are held
    requests   ----r-----------p-d---      p: a person posts h; d: the question of k is deleted
    approvals  -----------------o-x--|
    """

    def offered(outcome: Outcome) -> Iterator[DraftRequest]:
        if outcome.result is OutcomeKind.HELD:
            yield DraftRequest(outcome.part.last.id, DraftAction.RESUME)

    async def handled(request: DraftRequest) -> HandledRequest:
        return HandledRequest(request.draft_id, await handle(request))

    def failed(request: DraftRequest, error: Exception) -> HandledRequest:
        log.error("draft %d: %s was not carried out", request.draft_id, request.action, exc_info=error)
        return HandledRequest(request.draft_id, None)

    taken_up = False

    def resumed(event: Event) -> Iterator[DraftRequest]:
        nonlocal taken_up
        if isinstance(event, Ready) and not taken_up:
            taken_up = True
            yield from drafts.resume(in_flight)
        if isinstance(event, Edited) and drafts.has_held(event.message_id):
            for draft in drafts.waiting:
                if event.message_id in draft.reply.asked_ids:
                    drafts.schedule(SHOW_EDIT_SECONDS, DraftRequest(draft.id, DraftAction.SHOW))

    earlier = events.pipe(ops.do_action(on_completed=drafts.close), concat_map_iterable(resumed))
    handling = serialize_by_key(
        lambda request: request.draft_id,
        map_async(handled, on_failure=failed, max_concurrent=DRAFTS_AT_ONCE),
        key_of_result=lambda result: result.draft_id,
        max_active=DRAFTS_AT_ONCE,
    )
    return rx.merge(earlier, outcomes.pipe(concat_map_iterable(offered)), drafts.requests).pipe(
        handling,
        concat_map_iterable(lambda result: () if result.outcome is None else (result.outcome,)),
        ops.finally_action(drafts.abandon),
    )
