"""Holds a finished answer back while a team member is typing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from clock import now
from services.assistant import Inquiry
from services.conversations import Typists

HOLD_SECONDS = 20.0
"""At most, once for each answer: who types for longer may be writing to somebody else."""

log = logging.getLogger(__name__)


def hold(typists: Typists) -> Callable[[Inquiry], Coroutine[Any, Any, Inquiry]]:
    """Wait while a team member is typing where the question was asked, or in its thread, for at most `HOLD_SECONDS`.

    If they answer meanwhile, that cancels the inquiry, as at any other time. The wait does not count against the time
    of the chain.
    """

    async def held(inquiry: Inquiry) -> Inquiry:
        # A thread has the id of the message that it was opened on.
        places = {inquiry.part.place.id, *inquiry.part.message_ids, inquiry.reply_place_id or 0}
        began = now()
        if typists.team_types_until(places) <= began:
            return inquiry
        with inquiry.token.paused(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HOLD_SECONDS):
                while (more := typists.team_types_until(places) - now()) > 0:  # noqa: ASYNC110 (it may have become later)
                    await asyncio.sleep(more)
        inquiry.decisions["hold"] = {"seconds": round(now() - began, 1)}
        log.info("hold: %.1f s while a team member was typing", now() - began)
        return inquiry

    return held
