"""Whom the dataflow asks about Discord, and who posts: live over the gateway and REST, or rehearsed in a replay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from model.messages import Message, Place


class LookupFailed(Exception):
    """Discord could not be asked (500, time-out, no permission), which is not the same as "not there"."""


class Fetcher(Protocol):
    """The few REST reads behind history. Each call is one request, retried; each raises `LookupFailed`."""

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
    """Writes to Discord. Nothing it sends can mention anybody. Each call raises `PostFailed`."""

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        """A public thread on a message, or the one that is already there. Gives its id."""
        ...

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        """One piece of at most 2,000 characters. Sent again with the same `nonce`, it is posted once."""
        ...

    async def react(self, place_id: int, message_id: int, emoji: str) -> None: ...

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        """Take the bot's own reaction back; one that is not there is no failure."""
        ...
