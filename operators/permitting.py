"""Ends questions that could not be answered where they were asked."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from model.outcomes import Outcome, Reason
from services.assistant import Inquiry, skipped
from services.discord import Access

log = logging.getLogger(__name__)


def permit(access: Access | None) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Let an inquiry through whose answer could be posted: before a model is paid for one. A place is named in the log
    once, until something can be posted there again. Without `access` all are let through.
    """
    told: set[int] = set()

    async def permitted(inquiry: Inquiry) -> Inquiry | Outcome:
        place = inquiry.part.place
        lacking = None if access is None else access.lacking(place.channel_id, inquiry.reply_place_id)
        if lacking is None:
            told.discard(place.channel_id)
            return inquiry
        if place.channel_id not in told:
            told.add(place.channel_id)
            log.warning("questions in channel %d stay unanswered: %s", place.channel_id, lacking)
        return skipped(inquiry, Reason.CANNOT_POST)

    return permitted
