"""Answers one conversation at a time outside of the graph. A module of its own, since `streams.answers` imports the
parts that post.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import reactivex as rx

from clock import now
from model.messages import Author, AuthorType, Message, Part, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind
from model.servers import Servers
from operators.answering import AnswerRules
from operators.pointing import RecentReplies
from operators.step import Item, StepOperator, in_order
from services.assistant import Inquiry, Unanswered, links_block, outcome_of, skip_outcome
from services.llm import Usage
from streams.chain import ServerContext, chain

if TYPE_CHECKING:
    from model.conversations import Conversation
    from services.conversations import PersonalWork

log = logging.getLogger(__name__)


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
    """`reply_text` is None where there is no answer.

    `debug` says how it came about, for callers, logs and reports; it is not for posting. It holds the decisions by step
    (`model.steps.DECISIONS`), `result` (an `OutcomeKind`), `reason` (None: there is an answer), `latency_ms`,
    `llm_calls`, `tokens` by step and kind, and for an answer its `level`.
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
        # The last step, `point`, makes an outcome or an answer of each `Unanswered`.
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

    async def _run(self, steps: StepOperator, inquiry: Inquiry) -> Item:
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
