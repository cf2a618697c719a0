"""A reply is posted by the owner of the channel that was asked in, and its thread is another partition: whoever owns
that has to know of it, for votes and for what is asked next.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from nats.aio.client import Client
from pydantic import TypeAdapter, ValidationError

from clock import rfc3339
from clock.backoff import Backoff
from services.conversations import Post, Posts
from transport.connection import AWAY, streams_of
from transport.fence import MESSAGE_ID, TRY_SECONDS
from transport.layout import MESSAGES

POSTED = "MILLRACE_POSTED"
"""The type of the line; Discord has none that begins so."""
TRIES = 8

_POST = TypeAdapter(Post)

log = logging.getLogger(__name__)


class AnnouncedPosts(Posts):
    """`Posts` of one partition, which tells another of those in its threads."""

    def __init__(self, earlier: Iterable[Post], path: Path | None, announce: Callable[[Post], Awaitable[None]]) -> None:
        super().__init__(earlier, path)
        self._announce = announce

    async def add(self, post: Post) -> None:
        """As `Posts.add`; returns when the thread's owner will hear of it."""
        await super().add(post)
        if post.opened_thread:
            await self._announce(post)

    async def noted(self, post: Post) -> None:
        """Record what another partition has posted in a thread of this one."""
        if self.about(post.message_id) is None:
            await super().add(post)


def announcing(client: Client) -> Callable[[Post], Awaitable[None]]:
    """Puts a post into the stream of its thread, before what people write there next."""

    async def announce(post: Post) -> None:
        line = json.dumps({"at": rfc3339(post.at, digits=6), "t": POSTED, "d": asdict(post)}).encode()
        headers, backoff = {MESSAGE_ID: f"P:{post.message_id}"}, Backoff(0.1, TRY_SECONDS)
        for _ in range(TRIES):
            try:
                await streams_of(client).publish(
                    f"messages.{post.place_id}", line, TRY_SECONDS, MESSAGES, headers=headers
                )
            except AWAY:
                await asyncio.sleep(backoff.pause())
            else:
                return
        log.error("a reply in thread %d was not told to its partition: votes on it do not count", post.place_id)

    return announce


def post_of(payload: object) -> Post | None:
    """What was announced; None for what is none."""
    try:
        return _POST.validate_python(payload)
    except ValidationError:
        log.error("what was told of a reply cannot be read, and is left out")  # noqa: TRY400 (a line for the operator)
        return None
