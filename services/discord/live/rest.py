"""Reading and posting over Discord's REST API, through discord.py's HTTP client."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar, cast

import discord
from discord.http import HTTPClient, MultipartParameters, handle_message_parameters
from tenacity.wait import wait_base

from clock import SharedCalls
from model.messages import Message, Place
from services.discord import wire
from services.discord.live.calls import (
    BACK_OFF,
    CHANNEL_WIDE_403,
    FAILURES,
    NOT_AGAIN,
    TOO_MANY_THREADS,
    CrowdedChannels,
    ForbiddenPlaces,
    is_passing,
    reason,
    seconds_to_wait,
    with_retries,
)
from services.discord.protocols import PAGE_SIZE, LookupFailed, PostFailed

T = TypeVar("T")

log = logging.getLogger(__name__)

CONCURRENT_CALLS = 8
"""Well below the 50 requests a second that Discord grants a bot (API reference, "Global Rate Limit")."""
ALREADY_A_THREAD = 160004
ARCHIVE_AFTER_MINUTES = 1440
MAX_NONCE = 25  # Discord takes no longer nonce (API reference, "Create Message")


class RestFetcher:
    """`Fetcher`, and the undecoded reads that catch-up needs.

    404 means "it is not there" and is an answer; every other failure raises `LookupFailed`, after the retries of
    `services.discord.live.calls`. Identical concurrent reads share one request. `decode_place` makes a place of a
    channel's payload; the method of the stream's `Decoder` knows which threads are forum posts and which channels are
    private.
    """

    def __init__(
        self,
        http: HTTPClient,
        *,
        decode_place: Callable[[Mapping[str, object]], Place] | None = None,
        forbidden: ForbiddenPlaces | None = None,
        wait: wait_base = BACK_OFF,
    ) -> None:
        self._http = http
        self._decode_place = decode_place or wire.Decoder().place
        self._wait = wait
        self._slots = asyncio.Semaphore(CONCURRENT_CALLS)
        self._shared = SharedCalls()
        self._forbidden = forbidden or ForbiddenPlaces()

    async def message(self, channel_id: int, message_id: int) -> Message | None:
        key = ("message", channel_id, message_id)
        payload = await self._read(channel_id, key, lambda: self._http.get_message(channel_id, message_id))
        return None if payload is None else _decoded(wire.read_message, payload)

    async def messages(
        self, channel_id: int, *, before: int | None = None, after: int | None = None, around: int | None = None
    ) -> Sequence[Message]:
        found: list[Message] = []
        for payload in await self.payloads(channel_id, before=before, after=after, around=around):
            try:
                found.append(wire.read_message(payload))
            except wire.OddPayload as odd:
                log.warning("channel %d: a message cannot be read and is left out: %s", channel_id, odd)
        return found

    async def payloads(
        self, channel_id: int, *, before: int | None = None, after: int | None = None, around: int | None = None
    ) -> Sequence[Mapping[str, Any]]:
        """Like `messages`, but as undecoded payloads; oldest first."""
        key = ("messages", channel_id, before, after, around)
        page = await self._read(
            channel_id,
            key,
            lambda: self._http.logs_from(channel_id, PAGE_SIZE, before=before, after=after, around=around),
        )
        return sorted(map(_mapping, page or ()), key=lambda payload: int(payload["id"]))

    async def role_ids(self, guild_id: int, user_id: int) -> tuple[int, ...]:
        key = ("member", guild_id, user_id)
        payload = await self._read(guild_id, key, lambda: self._http.get_member(guild_id, user_id))
        return () if payload is None else tuple(int(role) for role in payload["roles"])

    async def is_thread_member(self, thread_id: int, user_id: int) -> bool:
        key = ("thread member", thread_id, user_id)
        return await self._read(thread_id, key, lambda: self._http.get_thread_member(thread_id, user_id)) is not None

    async def place(self, place_id: int) -> Place | None:
        payload = await self._read(place_id, ("place", place_id), lambda: self._http.get_channel(place_id))
        return None if payload is None else _decoded(self._decode_place, payload)

    async def active_threads(self, guild_id: int) -> Sequence[Mapping[str, Any]]:
        """Return the undecoded threads of a guild that are active and that the bot can view. Raises LookupFailed."""
        found = await self._read(guild_id, ("threads", guild_id), lambda: self._http.get_active_threads(guild_id))
        return [] if found is None else [_mapping(thread) for thread in found["threads"]]

    async def _read(self, owner_id: int, key: Hashable, request: Callable[[], Awaitable[T]]) -> T | None:
        """Make a read that concurrent callers share. `owner_id`: the channel or guild whose permissions it needs."""
        if self._forbidden.is_recent(owner_id):
            raise LookupFailed(f"{owner_id}: {NOT_AGAIN}", is_passing=False)
        return await self._shared.share(key, lambda: self._ask(owner_id, request))

    async def _ask(self, owner_id: int, request: Callable[[], Awaitable[T]]) -> T | None:
        try:
            async with self._slots:
                return await with_retries(request, wait=self._wait)
        except discord.NotFound:
            return None
        except FAILURES as error:
            if isinstance(error, discord.Forbidden):
                self._forbidden.note(owner_id)
            raise LookupFailed(f"{owner_id}: {reason(error)}", is_passing=is_passing(error)) from error


def _decoded(decode: Callable[[Mapping[str, object]], T], payload: object) -> T:
    try:
        return decode(_mapping(payload))
    except wire.OddPayload as odd:
        raise LookupFailed(f"Discord's answer cannot be read: {odd}") from odd


def _mapping(payload: object) -> Mapping[str, Any]:
    # discord.py types payloads as TypedDicts; for decoding they are untrusted mappings.
    return cast("Mapping[str, Any]", payload)


class DiscordPoster:
    """`Poster`. A repeated call cannot post twice: a message carries its nonce, and an existing thread is used."""

    def __init__(
        self,
        http: HTTPClient,
        *,
        forbidden: ForbiddenPlaces | None = None,
        crowded: CrowdedChannels | None = None,
        wait: wait_base = BACK_OFF,
    ) -> None:
        self._http = http
        self._wait = wait
        self._forbidden = forbidden or ForbiddenPlaces()
        self._crowded = crowded or CrowdedChannels()

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        failure_text = f"no thread on message {message_id} in channel {channel_id}"
        if self._forbidden.is_recent(channel_id):
            raise PostFailed(f"{failure_text}: {NOT_AGAIN}")
        try:
            await self._post(
                lambda: self._http.start_thread_with_message(
                    channel_id, message_id, name=name, auto_archive_duration=ARCHIVE_AFTER_MINUTES
                ),
                failure_text,
            )
        except PostFailed as failure:
            self._note(channel_id, failure)
            if getattr(failure.__cause__, "code", None) != ALREADY_A_THREAD:
                raise
        # A thread on a message has that message's id (API reference, "Start Thread from Message").
        return message_id

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        """See `Poster.send`. Raises ValueError: the nonce is longer than 25 characters, which Discord would refuse."""
        if len(nonce) > MAX_NONCE:
            raise ValueError(f"nonce {nonce!r} is longer than {MAX_NONCE} characters")
        reference = discord.utils.MISSING
        if reply_to is not None:
            # The question may be deleted by now; the answer is posted all the same.
            target = discord.MessageReference(message_id=reply_to, channel_id=place_id, fail_if_not_exists=False)
            reference = target.to_message_reference_dict()
        with handle_message_parameters(
            text,
            nonce=nonce,  # discord.py adds enforce_nonce
            allowed_mentions=discord.AllowedMentions.none(),
            message_reference=reference,
            flags=discord.MessageFlags(suppress_embeds=True),  # an asker may give the address of any picture
        ) as params:
            return await self._send(place_id, params)

    async def send_view(self, place_id: int, view: discord.ui.LayoutView, *, nonce: str) -> int:
        """Post a message that consists of components. Raises as `send`."""
        nobody = discord.AllowedMentions.none()
        with handle_message_parameters(view=view, nonce=nonce, allowed_mentions=nobody) as params:
            return await self._send(place_id, params)

    async def edit_view(self, place_id: int, message_id: int, view: discord.ui.LayoutView) -> None:
        """Replace the components of a message. Raises PostFailed."""
        nobody, failure_text = discord.AllowedMentions.none(), f"message {message_id} in {place_id} not changed"
        with handle_message_parameters(view=view, allowed_mentions=nobody) as params:
            await self._post(lambda: self._http.edit_message(place_id, message_id, params=params), failure_text)

    async def _send(self, place_id: int, params: MultipartParameters) -> int:
        try:
            sent = await self._post(
                lambda: self._http.send_message(place_id, params=params), f"nothing sent to {place_id}"
            )
        except PostFailed as failure:
            self._note(place_id, failure)
            raise
        try:
            return int(sent["id"])
        except (KeyError, TypeError, ValueError):
            raise PostFailed(f"sent to {place_id}, but Discord's answer cannot be read", is_passing=True) from None

    async def delete(self, place_id: int, message_id: int) -> None:
        failure_text = f"message {message_id} in {place_id} not deleted"
        try:
            await self._post(lambda: self._http.delete_message(place_id, message_id), failure_text)
        except PostFailed as failure:
            if not isinstance(failure.__cause__, discord.NotFound):
                raise

    async def delete_thread(self, thread_id: int) -> None:
        failure_text = f"thread {thread_id} not deleted"
        try:
            await self._post(lambda: self._http.delete_channel(thread_id), failure_text)
        except PostFailed as failure:
            if isinstance(failure.__cause__, discord.Forbidden):
                raise PostFailed(f"{failure_text}: the bot lacks Manage Threads there") from failure.__cause__
            if not isinstance(failure.__cause__, discord.NotFound):
                raise

    async def react(self, place_id: int, message_id: int, emoji: str) -> None:
        failure_text = f"no reaction to message {message_id} in {place_id}"
        await self._post(lambda: self._http.add_reaction(place_id, message_id, emoji), failure_text)

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        failure_text = f"no reaction taken back from message {message_id} in {place_id}"
        await self._post(lambda: self._http.remove_own_reaction(place_id, message_id, emoji), failure_text)

    def _note(self, place_id: int, failure: PostFailed) -> None:
        code = getattr(failure.__cause__, "code", None)
        if code in CHANNEL_WIDE_403:
            self._forbidden.note(place_id)
        elif code == TOO_MANY_THREADS:
            self._crowded.note(place_id)

    async def _post(self, request: Callable[[], Awaitable[T]], failure_text: str) -> T:
        try:
            return await with_retries(request, wait=self._wait)
        except FAILURES as error:
            raise PostFailed(
                f"{failure_text}: {reason(error)}", is_passing=is_passing(error), retry_after=seconds_to_wait(error)
            ) from error
