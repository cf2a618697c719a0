"""End questions early whose answer could not be posted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any

from model.outcomes import Outcome, Reason
from services.assistant import Inquiry, skipped
from services.discord import Access

log = logging.getLogger(__name__)


def permit(access: Access | None) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry | Outcome]]:
    """Let an inquiry pass if its answer could be posted, before a model is paid for it; else end it with `CANNOT_POST`.
    A channel is named in the log once, until posting works there again. Without `access` all pass.
    """
    warned: set[int] = set()

    async def permitted(inquiry: Inquiry) -> Inquiry | Outcome:
        place = inquiry.part.place
        lacking = None if access is None else access.lacking(place.channel_id, inquiry.reply_place_id)
        if lacking is None:
            warned.discard(place.channel_id)
            return inquiry
        if place.channel_id not in warned:
            warned.add(place.channel_id)
            log.warning("questions in channel %d stay unanswered: %s", place.channel_id, lacking)
        return skipped(inquiry, Reason.CANNOT_POST)

    return permitted
