"""The interfaces `Fetcher` and `Poster`, with the `Poster` of replays; and the state of the connection.

`services.discord.live` implements the interfaces over REST.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from clock import now
from model.messages import DISCORD_EPOCH_MS, Message, Place
from model.processes import UserError

SYNTHETIC_ID = 1 << 21
"""A bit that is set in the ids of replays, among the bits of Discord's worker number, so that no real id is equal."""

PAGE_SIZE = 100
"""The most messages that Discord returns for one request (API reference, "Get Channel Messages")."""

log = logging.getLogger(__name__)


class LookupFailed(Exception):
    """Discord could not be asked (500, time-out, no permission), which is not the same as "not there". `is_passing`: a
    retry may help; False without permission.
    """

    def __init__(self, message: str, *, is_passing: bool = True) -> None:
        super().__init__(message)
        self.is_passing = is_passing


class Fetcher(Protocol):
    """REST reads. Each call is one request, retried; each raises `LookupFailed`."""

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        """Return a message; None: it no longer exists."""
        ...

    async def messages(
        self, channel_id: int, *, before: int | None = None, after: int | None = None, around: int | None = None
    ) -> Sequence[Message]:
        """Return at most `PAGE_SIZE` messages of a channel or thread, oldest first; none if it is gone."""
        ...

    async def role_ids(self, guild_id: int, user_id: int) -> tuple[int, ...]:
        """Return the roles of a member; empty for somebody who has left."""
        ...

    async def is_thread_member(self, thread_id: int, user_id: int) -> bool:
        """Return True if a person is a member of a thread. False also for a thread that no longer exists."""
        ...

    async def place(self, place_id: int) -> Place | None:
        """Return a channel or thread; None: it no longer exists."""
        ...


class PostFailed(Exception):
    """A reply could not be posted: the message says what Discord refused, and where. `is_passing`: a retry may help;
    this attempt may have worked all the same. `retry_after`: the seconds that Discord asks to wait.
    """

    def __init__(self, message: str, *, is_passing: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.is_passing = is_passing
        self.retry_after = retry_after


class TakenBack(PostFailed):
    """Discord refuses a piece of a reply; the pieces posted before are deleted."""


class Undelivered(PostFailed):
    """A reply is neither posted in full nor deleted. The next start completes it."""


class Poster(Protocol):
    """Writes to Discord. Its posts can mention nobody. Each call raises `PostFailed`."""

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        """Open a public thread on a message, or use the existing one. Returns its id."""
        ...

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        """Post one piece of at most 2,000 characters. A repeated call with the same `nonce` posts nothing new."""
        ...

    async def delete(self, place_id: int, message_id: int) -> None:
        """Delete a message of the bot's own; a missing one is no failure."""
        ...

    async def delete_thread(self, thread_id: int) -> None:
        """Delete a thread and its messages, which needs Manage Threads; a missing one is no failure."""
        ...

    async def react(self, place_id: int, message_id: int, emoji: str) -> None: ...

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        """Remove the bot's own reaction; a missing one is no failure."""
        ...


class Access(Protocol):
    """The bot's permissions to post."""

    def why_not_allowed(self, channel_id: int, thread_id: int | None) -> str | None:
        """Say why the bot may not answer in a thread (None: a new one) of a channel; None: it may, for all it knows."""
        ...


class DryRunPoster:
    """A `Poster` that only logs what it would post. Each replay has the same message ids, made from the loop's time."""

    def __init__(self) -> None:
        self._last = 0

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        log.info("would open a thread in %d on message %d: %r", channel_id, message_id, name)
        return message_id

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        log.info("would post %d characters in %d (nonce %s, reply to %s)", len(text), place_id, nonce, reply_to)
        log.debug("would post: %s", text)
        self._last = max(self._last + 1, (int(now() * 1000) - DISCORD_EPOCH_MS) << 22 | SYNTHETIC_ID)
        return self._last

    async def delete(self, place_id: int, message_id: int) -> None:
        log.info("would delete %d in %d", message_id, place_id)

    async def delete_thread(self, thread_id: int) -> None:
        log.info("would delete the thread %d", thread_id)

    async def react(self, place_id: int, message_id: int, emoji: str) -> None:
        log.info("would react to %d in %d with %s", message_id, place_id, emoji)

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        log.info("would take %s back from %d in %d", emoji, message_id, place_id)


PATIENCE_SECONDS = 180.0
"""`/healthz` answers 200 unless the gateway has been away for longer than this."""


class GatewayRefused(UserError):
    """Discord refuses this bot, and a retry cannot help. The message is one line that names the setting to change."""


class GatewayHealth:
    """The state of the gateway connection. All times are in seconds since 1970, UTC.

    Attributes:
        since: when the connection last began or ended.
        refusal: why Discord refuses the bot for good; empty: it does not, as far as is known.
        on_refusal: called when that becomes known.
    """

    def __init__(self, at: float) -> None:
        self.connected = False
        self.refusal = ""
        self.on_refusal: Callable[[], object] = lambda: None
        self.since = at
        self._last_frame_at = at

    def note_connected(self, at: float) -> None:
        """Note that a session has begun or was resumed."""
        self.connected, self.since, self._last_frame_at = True, at, at

    def note_disconnected(self, at: float) -> None:
        """Note that the connection is lost. Only the first of several failures counts."""
        if self.connected:
            self.connected, self.since = False, at

    def refuse(self, why: str) -> None:
        """Note that Discord refuses the bot for good, so that the process will end. `why`: one line without secrets."""
        self.refusal = why
        self.on_refusal()

    def note_frame(self, at: float) -> None:
        """Note that a frame came. Even on a quiet server, a heartbeat is acknowledged every 41 s."""
        self._last_frame_at = at

    def lost_since(self, at: float) -> float | None:
        """Return since when there is no connection, or no frame for `PATIENCE_SECONDS`; None while all is well."""
        if not self.connected:
            return self.since
        return self._last_frame_at if at - self._last_frame_at > PATIENCE_SECONDS else None

    def problem(self, at: float) -> str | None:
        """Say why the gateway counts as dead; None while it is alive."""
        seconds = at - (self._last_frame_at if self.connected else self.since)
        state = "connected, but silent" if self.connected else "disconnected"
        return f"{state} for {seconds:.0f} s" if seconds > PATIENCE_SECONDS else None
