"""Requests to be forgotten (`/privacy forget`): each process deletes in the scopes that it owns, now or as soon as a
scope has an owner again.

    forget.42    {"id": "5f2c…", "at": 1795415000.5, "left": ["p03", "team"]}

`left` are the scopes that nobody has dealt with yet. Whoever owns one deals with it and takes it out, over the revision
that it has read; who takes a scope over looks for it first. Each process also answers whoever waits for the wish.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import TypeAdapter, ValidationError

from clock import now
from transport.bucket import KeyBucket, patience

FORGET = "forget"
ANSWERS = "millrace.forget"
"""Below it each wish has a subject, on which those who have done their part say so."""
SETTLED_SECONDS = 60
"""How long a completed request stays in the bucket, for processes that were disconnected and hold data in memory."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Attributes:
    id: another for each time that somebody wishes it.
    at: seconds since 1970.
    left: the scopes that are still to be dealt with.
    """

    user_id: int
    id: str
    at: float
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    id: str
    at: float
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetPart:
    """What one process has done for a wish: in which scopes, and what was found there."""

    by: str
    scopes: tuple[str, ...]
    found: Mapping[str, Any]


@dataclass(slots=True)
class ForgetAnswers:
    """The answers to a request so far, and the scopes that are still to be done."""

    parts: list[ForgetPart] = field(default_factory=list[ForgetPart])
    left: tuple[str, ...] = ()


_KEPT, _PART = TypeAdapter(_Kept), TypeAdapter(ForgetPart)


class ForgetRequests:
    """The wishes in the bucket, as they were last heard of.

    Attributes:
        by_user: those that are not carried out yet, or were a moment ago.
        on_change: called with each that is new, or has come further.
    """

    def __init__(self, client: Client, bucket: KeyBucket) -> None:
        self.by_user: dict[int, ForgetRequest] = {}
        self.on_change: Callable[[ForgetRequest], object] = lambda _wish: None
        self._client, self._bucket = client, bucket

    def left(self, request: ForgetRequest) -> tuple[str, ...]:
        """The scopes that are still to be dealt with; none where another wish of the person has taken its place."""
        known = self.by_user.get(request.user_id)
        return known.left if known is not None and known.id == request.id else ()

    def heard(self, user_id: int, value: bytes) -> None:
        """What the bucket says."""
        request = _parsed(user_id, value)
        if request is None:
            self.by_user.pop(user_id, None)
        else:
            self.by_user[user_id] = request
            self.on_change(request)

    async def make(self, user_id: int, scopes: Collection[str], request_id: str = "") -> ForgetRequest:
        """ForgetRequest that a person be forgotten in all of `scopes`, whatever an earlier wish has reached. Raises OSError."""
        request = ForgetRequest(user_id, request_id or uuid.uuid4().hex, now(), tuple(scopes))
        async with patience():
            await self._bucket.put(_key(user_id), _rendered(request))
        return request

    async def done(self, request: ForgetRequest, part: ForgetPart) -> None:
        """Remove the scopes that are done from a request, and send the result to the process that waits for it. Raises
        OSError: the bucket could not be changed.
        """
        async with patience():
            while True:
                value, revision = await self._bucket.get(_key(request.user_id))
                there = _parsed(request.user_id, value)
                if there is None or there.id != request.id:
                    break  # what is wished since then is another one's to do
                left = tuple(scope for scope in there.left if scope not in part.scopes)
                if left == there.left:
                    break
                seconds = None if left else SETTLED_SECONDS
                if await self._bucket.put(
                    _key(request.user_id), _rendered(replace(there, left=left)), revision, seconds
                ):
                    break
            await self._client.publish(f"{ANSWERS}.{request.id}", json.dumps(asdict(part)).encode())

    async def request_and_wait(
        self,
        user_id: int,
        scopes: Collection[str],
        seconds: float,
        *,
        owned: Collection[str],
        processes: Collection[str],
    ) -> ForgetAnswers:
        """Make a wish for all `scopes`, and wait until those that are `owned` are dealt with and all `processes` have
        answered, but no longer than `seconds`. Raises OSError: it could not be made.
        """
        answered, request_id, enough = ForgetAnswers(), uuid.uuid4().hex, asyncio.Event()
        missing, silent = set(owned), set(processes)

        async def heard(message: Msg) -> None:
            try:
                part = _PART.validate_json(message.data)
            except ValidationError:
                log.warning("an answer to a wish to be forgotten cannot be read")
                return
            answered.parts.append(part)
            missing.difference_update(part.scopes)
            silent.discard(part.by)
            if not missing and not silent:
                enough.set()

        listening = await self._client.subscribe(f"{ANSWERS}.{request_id}", cb=heard)
        try:
            request = await self.make(user_id, scopes, request_id)
            if missing or silent:
                with suppress(TimeoutError):
                    await asyncio.wait_for(enough.wait(), seconds)
            async with patience():
                value, _ = await self._bucket.get(_key(user_id))
        finally:
            await listening.unsubscribe()
        there = _parsed(user_id, value)
        answered.left = there.left if there is not None and there.id == request.id else ()
        return answered


def _key(user_id: int) -> str:
    return f"{FORGET}.{user_id}"


def _rendered(request: ForgetRequest) -> bytes:
    return json.dumps({"id": request.id, "at": request.at, "left": request.left}).encode()


def _parsed(user_id: int, value: bytes) -> ForgetRequest | None:
    if not value:
        return None
    try:
        kept = _KEPT.validate_json(value)
    except ValidationError:
        log.error("people: %s is damaged; let the person wish it again", _key(user_id))  # noqa: TRY400 (a line for the operator)
        return None
    return ForgetRequest(user_id, kept.id, kept.at, kept.left)
