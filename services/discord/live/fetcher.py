"""Discord's history over REST, as discord.py's HTTP client reads it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, cast

import discord
from discord.http import HTTPClient
from tenacity.wait import wait_base

from clock.shared_calls import SharedCalls
from model.messages import Message, Place
from services.discord import wire
from services.discord.live.calls import BACK_OFF, FAILURES, NOT_AGAIN, Forbidden, patiently, reason
from services.discord.protocols import LookupFailed

T = TypeVar("T")

log = logging.getLogger(__name__)

CONCURRENT_CALLS = 8
"""Well below the 50 requests a second that Discord grants a bot (API reference, "Global Rate Limit")."""


class RestFetcher:
    """`services.discord.protocols.Fetcher`, and the raw reads that catch-up needs.

    404 means "it is not there" and is an answer; every other failure is `LookupFailed`, after the retries of
    `services.discord.live.calls`. Identical reads under way at one time share one request. `place` decodes a channel; a
    `Decoder`'s own knows which threads are forum posts and which channels are private.
    """

    def __init__(
        self,
        http: HTTPClient,
        *,
        place: Callable[[Mapping[str, object]], Place] = wire.place,
        wait: wait_base = BACK_OFF,
    ) -> None:
        self._http = http
        self._place = place
        self._wait = wait
        self._slots = asyncio.Semaphore(CONCURRENT_CALLS)
        self._shared = SharedCalls()
        self._forbidden = Forbidden()

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        payload = await self._read(
            channel_id, ("message", channel_id, message_id), lambda: self._http.get_message(channel_id, message_id)
        )
        return None if payload is None else _decoded(wire.message, payload)

    async def messages(
        self,
        channel_id: int,
        *,
        limit: int = 100,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
    ) -> Sequence[Message]:
        page = await self.payloads(channel_id, limit=limit, before=before, after=after, around=around)
        found: list[Message] = []
        for payload in page:
            try:
                found.append(wire.message(payload))
            except wire.OddPayload as odd:
                log.warning("left an odd message of %d out of its history: %s", channel_id, odd)
        return found

    async def payloads(
        self,
        channel_id: int,
        *,
        limit: int = 100,
        before: int | None = None,
        after: int | None = None,
        around: int | None = None,
    ) -> Sequence[Mapping[str, Any]]:
        """As `messages`, in Discord's own words. Discord sends the newest first; this gives the oldest first."""
        page = await self._read(
            channel_id,
            ("messages", channel_id, limit, before, after, around),
            lambda: self._http.logs_from(channel_id, limit, before=before, after=after, around=around),
        )
        return sorted(map(_mapping, page or ()), key=lambda payload: int(payload["id"]))

    async def role_ids(self, guild_id: int, user_id: int) -> tuple[int, ...]:
        payload = await self._read(
            guild_id, ("member", guild_id, user_id), lambda: self._http.get_member(guild_id, user_id)
        )
        return () if payload is None else tuple(int(role) for role in payload["roles"])

    async def is_thread_member(self, thread_id: int, user_id: int) -> bool:
        key = ("thread member", thread_id, user_id)
        found = await self._read(thread_id, key, lambda: self._http.get_thread_member(thread_id, user_id))
        return found is not None

    async def place(self, place_id: int) -> Place | None:
        payload = await self._read(place_id, ("place", place_id), lambda: self._http.get_channel(place_id))
        return None if payload is None else _decoded(self._place, payload)

    async def active_threads(self, guild_id: int) -> Sequence[Mapping[str, Any]]:
        """The threads and posts of a guild that are not archived and that the bot can see, as Discord describes them.

        Raises:
            LookupFailed: Discord could not be asked.
        """
        found = await self._read(guild_id, ("threads", guild_id), lambda: self._http.get_active_threads(guild_id))
        return [] if found is None else [_mapping(thread) for thread in found["threads"]]

    async def _read(self, owner_id: int, key: Hashable, request: Callable[[], Awaitable[T]]) -> T | None:
        """One shared read. `owner_id` is the channel or guild whose permissions it needs."""
        if self._forbidden.lately(owner_id):
            raise LookupFailed(f"{owner_id}: {NOT_AGAIN}")
        return await self._shared.share(key, lambda: self._ask(owner_id, request))

    async def _ask(self, owner_id: int, request: Callable[[], Awaitable[T]]) -> T | None:
        try:
            async with self._slots:
                return await patiently(request, wait=self._wait)
        except discord.NotFound:
            return None
        except discord.Forbidden as error:
            self._forbidden.note(owner_id)
            raise LookupFailed(f"{owner_id}: {reason(error)}") from error
        except FAILURES as error:
            raise LookupFailed(f"{owner_id}: {reason(error)}") from error


def _decoded(decode: Callable[[Mapping[str, object]], T], payload: object) -> T:
    try:
        return decode(_mapping(payload))
    except wire.OddPayload as odd:
        raise LookupFailed(f"Discord's answer cannot be read: {odd}") from odd


def _mapping(payload: object) -> Mapping[str, Any]:
    # discord.py types payloads as TypedDicts; decoding treats them as the untrusted mappings that they are.
    return cast("Mapping[str, Any]", payload)
