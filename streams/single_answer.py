"""The answer chain for one conversation, outside any stream."""

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
from operators.retrieve import Lookup
from services.assistant import Assistant, Inquiry, links_block
from services.knowledge import Library
from services.llm import Budget, BudgetLimits, Spending, Usage
from streams.answers import chain
from streams.wiring import AnswerRules

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """Whence a conversation comes; 0 where there is no such thing."""

    guild_id: int = 0
    channel_id: int = 0
    message_id: int = 0
    author_id: int = 0
    from_team: bool = False
    can_view: bool = False
    """Discord says that the author can view the channel."""


@dataclass(frozen=True, slots=True)
class AIResult:
    should_reply: bool
    reply_text: str | None
    """With the links below it; None when there is nothing to say."""
    citations: tuple[str, ...]
    debug: dict[str, Any] = field(default_factory=dict[str, Any])
    """Decisions by step, `result`, `reason`, `latency_ms` and `tokens`. Not for posting."""


class Answerer:
    """Runs the same operators as the live graph, for one conversation at a time."""

    def __init__(
        self,
        assistant: Assistant,
        library: Library,
        rules: AnswerRules,
        budget: Budget | None = None,
        usage: Usage | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        """`budget`: what the answers count against; `usage`: that of the run, told of each call; `lookup`: who finds
        things in the files of the thread that is asked in, and in the asker's runbooks. Nobody else reads the answers.
        """
        self._budget = budget or Budget(BudgetLimits(chains_per_user_per_hour=0))
        self._usage = usage or Usage(Spending(self._budget))
        self._chain = chain(assistant, library, self._budget, rules, lookup=lookup, public=False)

    async def generate_reply(self, conversation: Conversation, context: RequestContext | None = None) -> AIResult:
        """Answer, or say why not; never raises."""
        usage = Usage(self._usage)
        inquiry = _inquiry(conversation, context or RequestContext(), usage)
        begun = now()
        try:
            end = await rx.just(inquiry).pipe(self._chain)
        except Exception as error:
            log.exception("the answer chain broke")
            end = Outcome(
                inquiry.part, now(), OutcomeKind.FAILED, f"{type(error).__name__} at chain", decisions=inquiry.decisions
            )
        finally:
            inquiry.token.close()
        if isinstance(end, Inquiry):
            self._budget.answered(now())
        return _result(end, inquiry.usage, round((now() - begun) * 1000))


def _inquiry(conversation: Conversation, context: RequestContext, usage: Usage) -> Inquiry:
    message = Message(
        context.message_id,
        context.channel_id,
        Author(context.author_id, ""),
        conversation.asked_text or conversation.last_user_text,
        now(),
        guild_id=context.guild_id or None,
    )
    place = Place(context.channel_id, PlaceKind.CHANNEL, guild_id=context.guild_id or None)
    author_type = AuthorType.TEAM_MEMBER if context.from_team else AuthorType.COMMUNITY_USER
    part = Part(1, (message,), author_type, place, now())
    return Inquiry(
        part,
        addressed=True,
        usage=usage,
        decisions={},
        conversation=conversation,
        # Where it is asked: files that are there may be asked about.
        reply_place_id=context.channel_id or None,
        asked_in_view=context.can_view,
    )


def _result(end: Inquiry | Outcome, usage: Usage, latency_ms: int) -> AIResult:
    tokens = {f"{step}.{kind}": count for (step, kind), count in usage.tokens.items()}
    debug: dict[str, Any] = {
        **end.decisions,
        "latency_ms": latency_ms,
        "llm_calls": usage.calls.total(),
        "tokens": tokens,
    }
    if isinstance(end, Outcome):
        return AIResult(False, None, end.sources, {**debug, "result": str(end.result), "reason": end.reason})
    text = end.draft + links_block(end.shown_sources)
    return AIResult(True, text, end.shown_sources, {**debug, "result": "replied", "reason": None})
