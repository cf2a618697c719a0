"""Posting to Discord over REST."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import discord
from discord.http import HTTPClient, handle_message_parameters
from tenacity.wait import wait_base

from services.discord.live.calls import BACK_OFF, FAILURES, LACKING, NOT_AGAIN, Forbidden, patiently, reason
from services.discord.protocols import PostFailed

T = TypeVar("T")

ALREADY_A_THREAD = 160004
ARCHIVE_AFTER_MINUTES = 1440
MAX_NONCE = 25
"""Discord takes no longer nonce (API reference, "Create Message")."""


class DiscordPoster:
    """`Poster`. Repeating a call after a broken connection cannot post twice: a message carries its
    nonce, and a thread that is already there is used.
    """

    def __init__(self, http: HTTPClient, *, wait: wait_base = BACK_OFF) -> None:
        self._http = http
        self._wait = wait
        self._forbidden = Forbidden()

    async def open_thread(self, channel_id: int, message_id: int, name: str) -> int:
        failed = f"no thread on message {message_id} in channel {channel_id}"
        if self._forbidden.lately(channel_id):
            raise PostFailed(f"{failed}: {NOT_AGAIN}")

        def request() -> Awaitable[object]:
            return self._http.start_thread_with_message(
                channel_id, message_id, name=name, auto_archive_duration=ARCHIVE_AFTER_MINUTES
            )

        try:
            await patiently(request, wait=self._wait)
        except discord.HTTPException as error:
            if error.code in LACKING:
                self._forbidden.note(channel_id)
            if error.code != ALREADY_A_THREAD:
                raise PostFailed(f"{failed}: {reason(error)}") from error
        except FAILURES as error:
            raise PostFailed(f"{failed}: {reason(error)}") from error
        # A thread on a message has that message's id (API reference, "Start Thread from Message").
        return message_id

    async def send(self, place_id: int, text: str, *, nonce: str, reply_to: int | None = None) -> int:
        """As the Protocol says.

        Raises:
            PostFailed: Discord refused, or could not be reached.
            ValueError: the nonce is longer than 25 characters, which Discord would refuse.
        """
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
        ) as params:
            sent = await self._post(
                lambda: self._http.send_message(place_id, params=params), f"nothing sent to {place_id}"
            )
        return int(sent["id"])

    async def react(self, place_id: int, message_id: int, emoji: str) -> None:
        await self._post(
            lambda: self._http.add_reaction(place_id, message_id, emoji),
            f"no reaction to message {message_id} in {place_id}",
        )

    async def unreact(self, place_id: int, message_id: int, emoji: str) -> None:
        await self._post(
            lambda: self._http.remove_own_reaction(place_id, message_id, emoji),
            f"no reaction taken back from message {message_id} in {place_id}",
        )

    async def _post(self, request: Callable[[], Awaitable[T]], what: str) -> T:
        try:
            return await patiently(request, wait=self._wait)
        except FAILURES as error:
            raise PostFailed(f"{what}: {reason(error)}") from error
