"""Questions in, answers or the reasons for none out: in the graph (`answers`), for one conversation outside of it
(`Answerer`), for replies that an earlier run left half posted (`unfinished`), and for answers that wait for a person
(`approvals`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import reactivex as rx
from reactivex import Observable, compose
from reactivex import operators as ops
from reactivex.abc import ObserverBase

from clock import now
from dataflow import concat_map_iterable, map_async, of_type, serialize_by_key
from dataflow.metering import operator_watch
from model.conversations import Conversation
from model.events import Event, Ready
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind, Reason
from model.servers import Servers
from operators.answering import gather, hold, permit
from operators.approving import approve
from operators.pointing import RecentReplies, remember_replies
from operators.step import Item, Step, failure_of, in_order, in_turn, step
from services.assistant import Inquiry, Unanswered, links_block, outcome_of, skip_outcome
from services.conversations import DraftAction, DraftRequest, Drafts, InFlight, Outbox, PersonalWork, StartedReply
from services.llm import Usage
from streams.chain import AnswerRules, ServerContext, chain, for_server

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
        approving = for_server(lambda at: approve(at.search, s.drafts, s.in_flight, at.approval, at.library), s.servers)
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


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The place and author of a conversation; ids are 0 where there is none. `can_view`: the author can view the
    channel; `addressed`: the bot was asked, and not everybody.
    """

    guild_id: int = 0
    channel_id: int = 0
    message_id: int = 0
    author_id: int = 0
    from_team: bool = False
    can_view: bool = False
    addressed: bool = True


@dataclass(frozen=True, slots=True)
class AIResult:
    """`reply_text` is None where there is no answer. `debug` holds the decisions by step, `result`, `reason`, `level`,
    `latency_ms`, `llm_calls` and `tokens`; it is not for posting.
    """

    should_reply: bool
    reply_text: str | None
    citations: tuple[str, ...]
    debug: dict[str, Any] = field(default_factory=dict[str, Any])


class Answerer:
    """Runs the operators of the live graph for one conversation at a time, as for `--ask` and private questions."""

    def __init__(self, server: ServerContext, rules: AnswerRules, personal_work: PersonalWork | None = None) -> None:
        """`server`: in which the question is asked. Only the asker reads the answers, so nothing counts as repeated.
        `personal_work`: as for `in_order`.
        """
        self.server = server
        self._work = personal_work
        self._chain = chain(Servers({None: replace(server, recent_replies=RecentReplies())}), rules, public=False)

    async def find(self, conversation: Conversation, context: RequestContext | None = None) -> Inquiry | Outcome:
        """Select the sources that an answer would be made from; never raises.

        Returns the inquiry with `query`, the question as it is searched for, and `selected`, the ids of the sources
        (none: it may be about the thread's files), or the outcome that says why there is no answer. It counts as a
        chain against the budget, and not as an answer.
        """
        found = await self._run(
            in_order(self._chain.find, personal_work=self._work),
            _inquiry(conversation, context, Usage(self.server.usage)),
        )
        return skip_outcome(*found) if isinstance(found, Unanswered) else found

    async def generate_reply(self, conversation: Conversation, context: RequestContext | None = None) -> AIResult:
        """Answer, or say why not; never raises."""
        began, usage = now(), Usage(self.server.usage)
        # `point` leaves no `Unanswered`.
        ended = await self._run(
            in_order(*self._chain, personal_work=self._work), _inquiry(conversation, context, usage)
        )
        result = cast("Inquiry | Outcome", ended)
        debug: dict[str, Any] = {
            **result.decisions,
            "latency_ms": round((now() - began) * 1000),
            "llm_calls": usage.calls.total(),
            "tokens": {f"{step}.{kind}": count for (step, kind), count in usage.tokens.items()},
        }
        if isinstance(result, Outcome):
            return AIResult(
                False, None, result.sources, {**debug, "result": str(result.result), "reason": result.reason}
            )
        self.server.budget.answered(now())
        text = result.draft + links_block(result.links)
        debug |= {"result": "replied", "reason": None, "level": str(result.level)}
        return AIResult(True, text, result.shown_sources, debug)

    async def _run(self, steps: Step, inquiry: Inquiry) -> Item:
        try:
            return await rx.just(inquiry).pipe(steps)
        except Exception as error:
            log.exception("the answer chain failed")
            return outcome_of(inquiry, OutcomeKind.FAILED, f"{type(error).__name__} at chain")
        finally:
            inquiry.token.close()


def _inquiry(conversation: Conversation, context: RequestContext | None, usage: Usage) -> Inquiry:
    context = context or RequestContext()
    guild_id, text = context.guild_id or None, conversation.asked_text or conversation.last_user_text
    message = Message(context.message_id, context.channel_id, Author(context.author_id, ""), text, now(), guild_id)
    place = Place(context.channel_id, PlaceKind.CHANNEL, guild_id=guild_id)
    author_type = AuthorType.TEAM_MEMBER if context.from_team else AuthorType.COMMUNITY_USER
    return Inquiry(
        Part(1, (message,), author_type, place, now()),
        addressed=context.addressed,
        usage=usage,
        decisions={},
        conversation=conversation,
        # The question may be about files in this place.
        reply_place_id=context.channel_id or None,
        asker_can_view=context.can_view,
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
