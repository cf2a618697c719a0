"""Whether this is a question, and one that sources could answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from clock import now
from model.outcomes import Outcome, Reason
from operators.step import TookTooLong
from services.assistant import Assistant, Inquiry, skipped
from services.llm import Budget

log = logging.getLogger(__name__)


def gate(
    assistant: Assistant, budget: Budget, chain_seconds: float
) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Pass answerable questions, with the query to search for.

    Here the chain is counted against the budget, and its `chain_seconds` begin.
    """

    async def gated(inquiry: Inquiry) -> Inquiry | Outcome:
        user_id, at = inquiry.part.author.id, now()
        exhausted = budget.begin_chain(user_id, at)
        if exhausted is not None:
            if budget.first_time(exhausted, user_id, at):
                log.warning("%s is used up: nothing is answered until there is room again", exhausted)
            return skipped(inquiry, Reason.BUDGET)
        inquiry.token.expire_in(chain_seconds, TookTooLong(f"the answer took longer than {chain_seconds:g} s"))
        result = await assistant.gate(inquiry.conversation, inquiry.usage, files=inquiry.files)
        answerable = result.is_question and result.is_answerable
        inquiry.decisions["gate"] = {"answerable": answerable, "reason": result.reason}
        log.info("gate: answerable=%s reason=%r", answerable, result.reason)
        if not answerable:
            return skipped(inquiry, Reason.NOT_ANSWERABLE)
        query = (result.rewrite_query or "").strip() or inquiry.conversation.last_user_text
        return inquiry._replace(query=query)

    return gated
