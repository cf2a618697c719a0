"""The answer chain for one conversation, outside any stream: for `--ask` and `/ask`."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import reactivex as rx

from clock import now
from model.batches import Part
from model.conversations import Conversation
from model.messages import Author, AuthorType, Message, Place, PlaceKind
from model.outcomes import Outcome, OutcomeKind
from services.assistant import Assistant, Inquiry, end, links_block
from services.documents import Lookup
from services.knowledge import Library
from services.llm import Budget, BudgetLimits, Spending, Usage
from streams.answers import chain
from streams.wiring import AnswerRules

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Where a conversation comes from; ids are 0 where there is none. `can_view`: the author can view the channel."""

    guild_id: int = 0
    channel_id: int = 0
    message_id: int = 0
    author_id: int = 0
    from_team: bool = False
    can_view: bool = False


@dataclass(frozen=True, slots=True)
class AIResult:
    """`reply_text` is None where there is no answer. `debug` holds the decisions by step, `result`, `reason`,
    `latency_ms`, `llm_calls` and `tokens`; it is not for posting.
    """

    should_reply: bool
    reply_text: str | None
    citations: tuple[str, ...]
    debug: dict[str, Any] = field(default_factory=dict[str, Any])


class Answerer:
    """Runs the same operators as the live graph, for one conversation at a time."""

    def __init__(
        self,
        assistant: Assistant,
        library: Library,
        rules: AnswerRules,
        *,
        budget: Budget | None = None,
        usage: Usage | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        """`budget`: what the answers count against; `usage`: of the whole run; `lookup`: searches the files of the
        thread and the asker's runbooks. Only the asker reads the answers.
        """
        self._budget = budget or Budget(BudgetLimits(chains_per_user_per_hour=0))
        self._usage = usage or Usage(Spending(self._budget))
        self._chain = chain(assistant, library, self._budget, rules, lookup=lookup, public=False)

    async def generate_reply(self, conversation: Conversation, context: RequestContext | None = None) -> AIResult:
        """Answer, or say why not; never raises."""
        usage, began = Usage(self._usage), now()
        inquiry = _inquiry(conversation, context or RequestContext(), usage)
        try:
            result = await rx.just(inquiry).pipe(self._chain)
        except Exception as error:
            log.exception("the answer chain failed")
            result = end(inquiry, OutcomeKind.FAILED, f"{type(error).__name__} at chain")
        finally:
            inquiry.token.close()
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
        self._budget.answered(now())
        text = result.draft + links_block(result.shown_sources)
        return AIResult(True, text, result.shown_sources, {**debug, "result": "replied", "reason": None})


def _inquiry(conversation: Conversation, context: RequestContext, usage: Usage) -> Inquiry:
    guild_id, text = context.guild_id or None, conversation.asked_text or conversation.last_user_text
    message = Message(context.message_id, context.channel_id, Author(context.author_id, ""), text, now(), guild_id)
    place = Place(context.channel_id, PlaceKind.CHANNEL, guild_id=guild_id)
    author_type = AuthorType.TEAM_MEMBER if context.from_team else AuthorType.COMMUNITY_USER
    return Inquiry(
        Part(1, (message,), author_type, place, now()),
        addressed=True,
        usage=usage,
        decisions={},
        conversation=conversation,
        # Where it is asked: files that are there may be asked about.
        reply_place_id=context.channel_id or None,
        asked_in_view=context.can_view,
    )
