"""A Poster that posts nowhere: for replays and dry runs."""

from __future__ import annotations

import logging

from clock import now
from model.messages import DISCORD_EPOCH_MS

MADE_UP = 1 << 21
"""Set in made-up ids, in the bits where Discord puts a worker's number, so that they meet no real id."""

log = logging.getLogger(__name__)


class Rehearsal:
    """Gives what it is asked to post an id made of the loop's time, so that a replay gives the same ones."""

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
