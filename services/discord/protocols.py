"""Reading from Discord and posting: the two seams, and the `Poster` of replays and dry runs.

`services.discord.live` implements both over REST.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from clock import now
from model.messages import DISCORD_EPOCH_MS, Message, Place

MADE_UP = 1 << 21
"""Set in made-up ids, among the bits in which Discord puts a worker's number, so that they meet no real id."""

log = logging.getLogger(__name__)


class LookupFailed(Exception):
    """Discord could not be asked (500, time-out, no permission), which is not the same as "not there"."""


class Fetcher(Protocol):
    """REST reads. Each call is one request, retried; each raises `LookupFailed`."""

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        """None: it no longer exists."""
        ...

    async def messages(
        self,
        channel_id: int,
        *,
        limit: int = 100,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
    ) -> Sequence[Message]:
        """At most `limit` (≤ 100) messages of a channel or thread, oldest first; empty if it is gone."""
        ...

    async def role_ids(self, guild_id: int, user_id: int) -> tuple[int, ...]:
        """The roles of a member; empty for somebody who has left."""
        ...

    async def is_thread_member(self, thread_id: int, user_id: int) -> bool:
        """False also for a thread that no longer exists."""
        ...

    async def place(self, place_id: int) -> Place | None:
        """A channel or thread; None: it no longer exists."""
        ...


class PostFailed(Exception):
    """A reply could not be posted: the message says what Discord refused, and where."""


class Poster(Protocol):
    """Writes to Discord. Its posts can mention nobody. Each call raises `PostFailed`."""

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        """A public thread on a message, or the one that is already there. Gives its id."""
        ...

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        """One piece of at most 2,000 characters. Sent again with the same `nonce`, it is posted once."""
        ...

    async def react(self, place_id: int, message_id: int, emoji: str) -> None: ...

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        """Remove the bot's own reaction; a missing one is no failure."""
        ...


class Rehearsal:
    """Posts nowhere. Ids are made of the loop's time, so that each replay has the same ones."""

    def __init__(self) -> None:
        self._last = 0

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        log.info("would open a thread in %d on message %d: %r", channel_id, message_id, name)
        return message_id

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        log.info("would post %d characters in %d (nonce %s, reply to %s)", len(text), place_id, nonce, reply_to)
        log.debug("would post: %s", text)
        self._last = max(self._last + 1, (int(now() * 1000) - DISCORD_EPOCH_MS) << 22 | MADE_UP)
        return self._last

    async def react(self, place_id: int, message_id: int, emoji: str) -> None:
        log.info("would react to %d in %d with %s", message_id, place_id, emoji)

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        log.info("would take %s back from %d in %d", emoji, message_id, place_id)
