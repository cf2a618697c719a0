"""Watermarks: for each channel and thread, the id up to which NATS has all messages. After a restart a gateway fetches
later messages from Discord.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from nats.js.kv import KeyValue

from clock import DAY, cancel_and_wait
from services.conversations import Watermark, Watermarks
from transport.streams import SEEN, read_stream

WRITE_SECONDS = 0.5
WRITE_AT_ONCE = 32
QUIET_SECONDS = 30 * DAY
"""A watermark is dropped after its place was quiet for so long; then the watermark of the server applies."""
MAX_PLACES = 10_000
"""Watermarks of one server, since they share one value of at most half a megabyte. The longest quiet are dropped."""

log = logging.getLogger(__name__)


class PublishWatermarks:
    """The watermarks of this process's servers, raised as NATS confirms messages. Made by `open_watermarks`."""

    def __init__(self, bucket: KeyValue, stored: Mapping[int, Mapping[int, int]]) -> None:
        """`stored`: the watermarks in the bucket, by server, then by place (minus its id for the server itself)."""
        self._bucket = bucket
        self._by_server: dict[int, Watermarks] = {}
        for guild_id, places in stored.items():
            self._seen_of(guild_id, {place_id: Watermark(through) for place_id, through in places.items()})
        self._changed: set[int] = set()
        self._has_failed = False

    def by_place(self) -> Mapping[int, int]:
        """Return the watermark of each place; that of -guild_id is for places of the server without one."""
        return {place_id: through for seen in self._by_server.values() for place_id, through in seen.by_place().items()}

    def note_guild(self, guild_id: int, at: float) -> None:
        """Note that the bot is in a server. No message in it after `at` may be missed, also in new places."""
        self._seen_of(guild_id).note_guild(guild_id, at)

    def note_publishing(self, guild_id: int, place_id: int, message_id: int) -> Callable[[], None]:
        """Note that a message is being published. Call the returned function once NATS has it."""
        seen = self._seen_of(guild_id)
        seen.note_arrival(place_id, message_id)
        return lambda: seen.note_done(place_id, (message_id,))

    def _seen_of(self, guild_id: int, stored: Mapping[int, Watermark] | None = None) -> Watermarks:
        if guild_id not in self._by_server:
            self._by_server[guild_id] = Watermarks(stored, on_change=lambda: self._changed.add(guild_id))
        return self._by_server[guild_id]

    async def save(self) -> None:
        """Write the watermarks that have changed. The next call repeats failed writes; the first failure is logged."""
        changed, self._changed = self._changed, set()
        turn, is_away = asyncio.Semaphore(WRITE_AT_ONCE), False

        async def write(guild_id: int) -> None:
            nonlocal is_away
            async with turn:
                if is_away:  # each further write would wait as long for an answer
                    self._changed.add(guild_id)
                    return
                try:
                    await self._bucket.put(str(guild_id), self._render(guild_id))
                except (Error, TimeoutError) as error:
                    self._changed.add(guild_id)
                    if not self._has_failed:
                        log.warning("watermarks: not written (%s); trying until they are", error)
                    self._has_failed = is_away = True
                else:
                    self._has_failed = False

        await asyncio.gather(*map(write, changed))

    def _render(self, guild_id: int) -> bytes:
        seen = self._by_server[guild_id]
        seen.forget_quiet(QUIET_SECONDS, MAX_PLACES)
        fields = {str(place_id): str(through) for place_id, through in seen.by_place().items()}
        return json.dumps(fields, separators=(",", ":")).encode()


@asynccontextmanager
async def open_watermarks(
    streams: JetStreamContext,
    *,
    is_ours: Callable[[int], bool] = lambda _: True,
    write_seconds: float = WRITE_SECONDS,
) -> AsyncGenerator[PublishWatermarks]:
    """Read the watermarks at the start; write them soon after each change and at the end. `is_ours`: whether a server
    belongs to a shard of this process. Raises nats.errors.Error: NATS does not answer.
    """
    bucket = await streams.key_value(SEEN)
    watermarks = PublishWatermarks(bucket, await _read(streams, is_ours))

    async def keep_writing() -> None:
        while True:
            await asyncio.sleep(write_seconds)
            await watermarks.save()

    writing = asyncio.create_task(keep_writing())
    try:
        yield watermarks
    finally:
        await cancel_and_wait(writing)
        await watermarks.save()


async def _read(streams: JetStreamContext, is_ours: Callable[[int], bool]) -> dict[int, dict[int, int]]:
    """Read the watermarks in the bucket, by server and place. Damaged entries are logged and left out: their messages
    are fetched from Discord again.
    """
    stored: dict[int, dict[int, int]] = {}
    prefix = f"$KV.{SEEN}."
    try:
        async for entry in read_stream(streams, f"KV_{SEEN}", f"{prefix}>"):
            key = entry.subject.removeprefix(prefix)
            try:
                if not is_ours(guild_id := int(key)):
                    continue
                read = cast("dict[str, Any]", json.loads(entry.data))
                stored[guild_id] = {int(place_id): int(through) for place_id, through in read.items()}
            except (ValueError, TypeError, AttributeError, RecursionError):
                log.warning("watermarks: the entry %.40r is damaged and left out", key)
    except NotFoundError:
        pass
    return stored
