"""A second look at the draft (with `enable_verification`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from model.outcomes import Outcome, Reason
from services.assistant import Assistant, Inquiry, skipped

log = logging.getLogger(__name__)


def verify(assistant: Assistant) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Reject a draft that is not good enough to post."""

    async def verified(inquiry: Inquiry) -> Inquiry | Outcome:
        result = await assistant.verify(inquiry.conversation, inquiry.draft, inquiry.read_sources, inquiry.usage)
        inquiry.decisions["verify"] = {"good_enough": result.is_good_enough, "issues": result.issues}
        log.info("verify: good_enough=%s issues=%d", result.is_good_enough, len(result.issues))
        return inquiry if result.is_good_enough else skipped(inquiry, Reason.REJECTED)

    return verified
