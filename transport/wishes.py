"""Wishes to be forgotten, carried out by everybody who keeps something: now, or when its scope has an owner again.

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
"""How long a wish that is carried out stays: for who was not listening, and keeps something beside the scopes."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wish:
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
class PartDone:
    """What one process has done for a wish: in which scopes, and what was found there."""

    by: str
    scopes: tuple[str, ...]
    found: Mapping[str, Any]


@dataclass(slots=True)
class Answered:
    """What has come of a wish until now."""

    parts: list[PartDone] = field(default_factory=list[PartDone])
    left: tuple[str, ...] = ()


_KEPT, _PART = TypeAdapter(_Kept), TypeAdapter(PartDone)


class Wishes:
    """The wishes in the bucket, as they were last heard of.

    Attributes:
        by_user: those that are not carried out yet, or were a moment ago.
        on_change: called with each that is new, or has come further.
    """

    def __init__(self, client: Client, bucket: KeyBucket) -> None:
        self.by_user: dict[int, Wish] = {}
        self.on_change: Callable[[Wish], object] = lambda _wish: None
        self._client, self._bucket = client, bucket

    def left(self, wish: Wish) -> tuple[str, ...]:
        """The scopes that are still to be dealt with; none where another wish of the person has taken its place."""
        known = self.by_user.get(wish.user_id)
        return known.left if known is not None and known.id == wish.id else ()

    def heard(self, user_id: int, value: bytes) -> None:
        """What the bucket says."""
        wish = _parsed(user_id, value)
        if wish is None:
            self.by_user.pop(user_id, None)
        else:
            self.by_user[user_id] = wish
            self.on_change(wish)

    async def make(self, user_id: int, scopes: Collection[str], wish_id: str = "") -> Wish:
        """Wish that a person be forgotten in all of `scopes`, whatever an earlier wish has reached. Raises OSError."""
        wish = Wish(user_id, wish_id or uuid.uuid4().hex, now(), tuple(scopes))
        async with patience():
            await self._bucket.put(_key(user_id), _rendered(wish))
        return wish

    async def done(self, wish: Wish, part: PartDone) -> None:
        """Take scopes out of a wish, and tell who waits for it. Raises OSError: the bucket does not know of it."""
        async with patience():
            while True:
                value, revision = await self._bucket.get(_key(wish.user_id))
                there = _parsed(wish.user_id, value)
                if there is None or there.id != wish.id:
                    break  # what is wished since then is another one's to do
                left = tuple(scope for scope in there.left if scope not in part.scopes)
                if left == there.left:
                    break
                seconds = None if left else SETTLED_SECONDS
                if await self._bucket.put(_key(wish.user_id), _rendered(replace(there, left=left)), revision, seconds):
                    break
            await self._client.publish(f"{ANSWERS}.{wish.id}", json.dumps(asdict(part)).encode())

    async def carried_out(
        self,
        user_id: int,
        scopes: Collection[str],
        seconds: float,
        *,
        owned: Collection[str],
        processes: Collection[str],
    ) -> Answered:
        """Make a wish for all `scopes`, and wait until those that are `owned` are dealt with and all `processes` have
        answered, but no longer than `seconds`. Raises OSError: it could not be made.
        """
        answered, wish_id, enough = Answered(), uuid.uuid4().hex, asyncio.Event()
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

        listening = await self._client.subscribe(f"{ANSWERS}.{wish_id}", cb=heard)
        try:
            wish = await self.make(user_id, scopes, wish_id)
            if missing or silent:
                with suppress(TimeoutError):
                    await asyncio.wait_for(enough.wait(), seconds)
            async with patience():
                value, _ = await self._bucket.get(_key(user_id))
        finally:
            await listening.unsubscribe()
        there = _parsed(user_id, value)
        answered.left = there.left if there is not None and there.id == wish.id else ()
        return answered


def _key(user_id: int) -> str:
    return f"{FORGET}.{user_id}"


def _rendered(wish: Wish) -> bytes:
    return json.dumps({"id": wish.id, "at": wish.at, "left": wish.left}).encode()


def _parsed(user_id: int, value: bytes) -> Wish | None:
    if not value:
        return None
    try:
        kept = _KEPT.validate_json(value)
    except ValidationError:
        log.error("people: %s is damaged; let the person wish it again", _key(user_id))  # noqa: TRY400 (a line for the operator)
        return None
    return Wish(user_id, kept.id, kept.at, kept.left)
