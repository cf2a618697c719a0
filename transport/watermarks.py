"""Watermarks: for each channel and thread, the newest message id up to which everything is in NATS. After a restart a
gateway fetches what came later.
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

from clock import cancelled
from services.conversations import Seen, Watermark
from transport.streams import SEEN, read_stream

WRITE_SECONDS = 0.5
WRITE_AT_ONCE = 32
KEPT_SECONDS = 30 * 86_400.0
"""A watermark is dropped after its place was quiet for so long; then that of the server counts."""
MOST_PLACES = 10_000
"""At most this many places of one server are kept, since they share one value of half a megabyte at most. The longest
quiet are dropped.
"""

log = logging.getLogger(__name__)


class PublishWatermarks:
    """The watermarks of this process's servers: loaded from the bucket `seen`, raised as NATS confirms messages. Made
    by `open_watermarks`.
    """

    def __init__(self, bucket: KeyValue, kept: Mapping[int, Mapping[int, int]], *, kept_seconds: float) -> None:
        """`kept`: by server, then by place (by minus its id for the server itself), how far it had come."""
        self._bucket = bucket
        self._kept_seconds = kept_seconds
        self._by_server: dict[int, Seen] = {}
        for guild_id, places in kept.items():
            self._seen_in(guild_id, {place_id: Watermark(through) for place_id, through in places.items()})
        self._changed: set[int] = set()
        self._failed = False

    def marks(self) -> Mapping[int, int]:
        """Return, for each place, the id up to which NATS has every message. The key -guild_id holds the watermark for
        places of that server that have none.
        """
        return {place_id: through for seen in self._by_server.values() for place_id, through in seen.below().items()}

    def met(self, guild_id: int, at: float) -> None:
        """Note that the bot is in a server. From now on none of its messages may be missed, also in places without one
        so far.
        """
        self._seen_in(guild_id).met(guild_id, at)

    def under_way(self, guild_id: int, place_id: int, message_id: int) -> Callable[[], None]:
        """Note that a message is being published. Call the returned function once NATS has it."""
        seen = self._seen_in(guild_id)
        seen.arrived(place_id, message_id)
        return lambda: seen.close(place_id, (message_id,))

    def _seen_in(self, guild_id: int, kept: Mapping[int, Watermark] | None = None) -> Seen:
        if guild_id not in self._by_server:
            self._by_server[guild_id] = Seen(kept, on_change=lambda: self._changed.add(guild_id))
        return self._by_server[guild_id]

    async def save(self) -> None:
        """Write what has changed. A failed write is a line in the log, and tried again at the next one."""
        changed, self._changed = self._changed, set()
        turn, away = asyncio.Semaphore(WRITE_AT_ONCE), False

        async def write(guild_id: int) -> None:
            nonlocal away
            async with turn:
                if away:  # each of the others would wait as long for an answer
                    self._changed.add(guild_id)
                    return
                try:
                    await self._bucket.put(str(guild_id), self._rendered(guild_id))
                except (Error, TimeoutError) as error:
                    self._changed.add(guild_id)
                    if not self._failed:
                        log.warning("watermarks: not written (%s); trying until they are", error)
                    self._failed = away = True
                else:
                    self._failed = False

        await asyncio.gather(*map(write, changed))

    def _rendered(self, guild_id: int) -> bytes:
        seen = self._by_server[guild_id]
        seen.forget_quiet(self._kept_seconds, MOST_PLACES)
        text = {str(place_id): str(through) for place_id, through in seen.below().items()}
        return json.dumps(text, separators=(",", ":")).encode()


@asynccontextmanager
async def open_watermarks(
    streams: JetStreamContext,
    *,
    ours: Callable[[int], bool] = lambda _: True,
    kept_seconds: float = KEPT_SECONDS,
    write_seconds: float = WRITE_SECONDS,
) -> AsyncGenerator[PublishWatermarks]:
    """Read the watermarks at the start; write them soon after each change and at the end. `ours`: whether a server, by
    its id, belongs to a shard of this process.

    Raises:
        nats.errors.Error: NATS does not answer.
    """
    bucket = await streams.key_value(SEEN)
    made = PublishWatermarks(bucket, await _read(streams, ours), kept_seconds=kept_seconds)

    async def keep_writing() -> None:
        while True:
            await asyncio.sleep(write_seconds)
            await made.save()

    writing = asyncio.create_task(keep_writing())
    try:
        yield made
    finally:
        await cancelled(writing)
        await made.save()


async def _read(streams: JetStreamContext, ours: Callable[[int], bool]) -> dict[int, dict[int, int]]:
    """Read the watermarks of our servers. Damage is reported and left out, which costs a second look at a few
    messages.
    """
    kept: dict[int, dict[int, int]] = {}
    prefix = f"$KV.{SEEN}."
    try:
        async for entry in read_stream(streams, f"KV_{SEEN}", f"{prefix}>"):
            key = entry.subject.removeprefix(prefix)
            try:
                if not ours(guild_id := int(key)):
                    continue
                read = cast("dict[str, Any]", json.loads(entry.data))
                kept[guild_id] = {int(place_id): int(through) for place_id, through in read.items()}
            except (ValueError, TypeError, AttributeError, RecursionError):
                log.warning("watermarks: the entry %.40r is damaged and left out", key)
    except NotFoundError:
        pass
    return kept
