"""Who can view which thread now."""

from __future__ import annotations

import logging

from services.conversations.history import History
from services.discord import Fetcher, LookupFailed

log = logging.getLogger(__name__)


class Viewing:
    """Decides by what is known of places, and of private threads by their members.

    With a `fetcher` (live) Discord is asked for a member each time. Without one (replay) whoever writes in a private
    thread is one: Discord makes them one by it.
    """

    def __init__(self, history: History, fetcher: Fetcher | None) -> None:
        self.history = history
        self._fetcher = fetcher

    async def can_view(self, user_id: int, place_id: int, *, seen_in: int | None) -> bool:
        """Whether somebody can view a thread. Where that cannot be found out, they cannot.

        `seen_in`: the channel or thread where they have just written, or called a command; None: Discord does not
        say that they can view any.
        """
        try:
            place = await self.history.find_place(place_id)
            if place is None:
                return False
            if place.invited_only:
                return await self._is_member(user_id, place_id, seen_in)
        except LookupFailed as error:
            log.warning("whether %d can view %d is not known, so they cannot: %s", user_id, place_id, error)
            return False
        return place.public or (seen_in is not None and seen_in in {place.id, place.parent_id})

    async def _is_member(self, user_id: int, thread_id: int, seen_in: int | None) -> bool:
        if self._fetcher is None:
            return seen_in == thread_id
        return await self._fetcher.is_thread_member(thread_id, user_id)
