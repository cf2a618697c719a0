"""The bucket `people`: requests to be forgotten, opt-outs, the key for pseudonyms, and small flags that all processes
share.

Its keys, beside those of `SharedFlags`:

    opt-outs.42     who opted out; empty, for a minute, once that is over
    forget.42       a request to be forgotten, until each scope has carried it out
    feedback-key    the key for the pseudonyms of those who vote, the same in all partitions
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from nats.aio.client import Client
from nats.js.errors import NotFoundError
from pydantic import TypeAdapter

from clock import now
from services.documents.store import StoreUnavailable
from transport.connection import streams_of
from transport.errors import ServerAway
from transport.key_value import KeyBucket, SubjectWatcher
from transport.streams import DAY_SECONDS, PEOPLE

# Requests to be forgotten

FORGET = "forget"
SETTLED_SECONDS = 60
"""How long a completed request stays in the bucket, for processes that were disconnected and hold data in memory."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ForgetPart:
    """What one process has done for a request: in which scopes, and what was found there."""

    by: str
    scopes: tuple[str, ...]
    found: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Attributes:
    id: another for each request of a person.
    at: seconds since 1970.
    left: the scopes that are still to be dealt with.
    parts: what was done so far.
    """

    user_id: int
    id: str
    at: float
    left: tuple[str, ...]
    parts: tuple[ForgetPart, ...] = ()


_REQUEST = TypeAdapter(ForgetRequest)


class ForgetRequests:
    """The requests in the bucket, as they were last read.

        forget.42    {"id": "5f2c…", "at": 1795415000.5, "left": ["p03", "team"], "parts": [{"by": "host-1", …}]}

    Whoever owns a scope of `left` removes what it has of the person, then takes the scope out of the list and adds what
    it has done, if the entry has not changed since it was read. Who takes a scope over looks for requests first.

    Attributes:
        by_user: those that are not carried out yet, or were a moment ago.
        on_change: called with each that is new, or has come further.
    """

    def __init__(self, bucket: KeyBucket) -> None:
        self.by_user: dict[int, ForgetRequest] = {}
        self.on_change: Callable[[ForgetRequest], object] = lambda _request: None
        self._bucket, self._changed = bucket, asyncio.Event()

    def left(self, request: ForgetRequest) -> tuple[str, ...]:
        """The scopes that are still to be dealt with; none where another request of the person has taken its place."""
        known = self.by_user.get(request.user_id)
        return known.left if known is not None and known.id == request.id else ()

    def receive(self, user_id: int, value: bytes) -> None:
        """Take over an entry of the bucket."""
        request = _parsed(user_id, value)
        if request is None:
            self.by_user.pop(user_id, None)
        else:
            self.by_user[user_id] = request
            self._changed.set()
            self.on_change(request)

    async def make(self, user_id: int, scopes: Collection[str]) -> ForgetRequest:
        """Ask that a person be forgotten in all of `scopes`, whatever an earlier request reached. Raises OSError."""
        request = ForgetRequest(user_id, uuid.uuid4().hex, now(), tuple(scopes))
        await self._bucket.put(_key(user_id), _rendered(request))
        return request

    async def done(self, request: ForgetRequest, part: ForgetPart) -> None:
        """Remove the scopes that are done from a request, and add what was done. Raises OSError: the bucket could not
        be changed.
        """
        while True:
            value, revision = await self._bucket.get(_key(request.user_id))
            there = _parsed(request.user_id, value)
            # The person has made another request since, or the answer to the write was lost.
            if there is None or there.id != request.id or part in there.parts:
                return
            left = tuple(scope for scope in there.left if scope not in part.scopes)
            after = _rendered(replace(there, left=left, parts=(*there.parts, part)))
            if await self._bucket.put(_key(request.user_id), after, revision, None if left else SETTLED_SECONDS):
                return

    async def request_and_wait(
        self,
        user_id: int,
        scopes: Collection[str],
        seconds: float,
        *,
        owned: Collection[str],
        processes: Collection[str],
    ) -> ForgetRequest:
        """Make a request for all `scopes`, and wait until those that are `owned` are dealt with and all `processes`
        have done their part, but no longer than `seconds`. Gives what has become of it. Raises OSError: it could not
        be made.
        """
        request = await self.make(user_id, scopes)

        def is_enough() -> bool:
            known = self.by_user.get(user_id)
            if known is None or known.id != request.id:
                return not owned and not processes
            return not set(owned) & set(known.left) and set(processes) <= {part.by for part in known.parts}

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not is_enough():
                    self._changed.clear()
                    await self._changed.wait()
        value, _ = await self._bucket.get(_key(user_id))
        there = _parsed(user_id, value)
        return there if there is not None and there.id == request.id else replace(request, left=())


def _key(user_id: int) -> str:
    return f"{FORGET}.{user_id}"


def _rendered(request: ForgetRequest) -> bytes:
    return _REQUEST.dump_json(request, exclude={"user_id"})


def _parsed(user_id: int, value: bytes) -> ForgetRequest | None:
    if not value:
        return None
    try:
        return _REQUEST.validate_python({**json.loads(value), "user_id": user_id})
    except (ValueError, TypeError, RecursionError):
        log.error("people: %s is damaged; let the person wish it again", _key(user_id))  # noqa: TRY400 (a line for the operator)
        return None


# Opt-outs, and the bucket

OPT_OUTS, FEEDBACK_KEY = "opt-outs", "feedback-key"
GONE_SECONDS = 60
"""How long it is said that a key is gone. Who has not listened for longer reads everything again."""


class SharedOptOuts:
    """`services.conversations.OptOutRegistry`, kept in the bucket: whatever a process changes, all hear.

    Attributes:
        on_added: called with the id of each person who opts out, in any process, and of those who had before.
    """

    def __init__(self, bucket: KeyBucket) -> None:
        self.on_added: Callable[[int], object] = lambda _user_id: None
        self._bucket = bucket
        self._ids: set[int] = set()

    def __contains__(self, user_id: object) -> bool:
        return user_id in self._ids

    async def add(self, user_id: int) -> None:
        """Opt somebody out, here at once. Raises OSError: NATS does not answer, and nobody else has heard of it."""
        self.set_opted_out(user_id, out=True)
        await self._bucket.put(f"{OPT_OUTS}.{user_id}", b"true")

    async def discard(self, user_id: int) -> None:
        """Opt somebody in again. Raises OSError: as `add`."""
        self.set_opted_out(user_id, out=False)
        await self._bucket.purge_with_ttl(f"{OPT_OUTS}.{user_id}", GONE_SECONDS)

    def set_opted_out(self, user_id: int, *, out: bool) -> None:
        """Take over an entry of the bucket."""
        if not out:
            self._ids.discard(user_id)
        elif user_id not in self._ids:
            self._ids.add(user_id)
            self.on_added(user_id)


class SharedPeople:
    """The bucket, followed; made by `open_people`."""

    def __init__(self, client: Client) -> None:
        self._bucket = KeyBucket(streams_of(client), PEOPLE)
        self.opt_outs = SharedOptOuts(self._bucket)
        self.forget_requests = ForgetRequests(self._bucket)

    async def feedback_key(self, proposed: bytes) -> bytes:
        """The key of all processes; `proposed` becomes it where there is none yet. Raises OSError."""
        if await self._bucket.put(FEEDBACK_KEY, proposed, 0):
            return proposed
        return (await self._bucket.get(FEEDBACK_KEY))[0]

    def receive(self, key: str, value: bytes) -> None:
        """Take over an entry of the bucket, for `SubjectWatcher`."""
        kind, _, user = key.partition(".")
        if not user.isdecimal():
            return
        if kind == OPT_OUTS:
            self.opt_outs.set_opted_out(int(user), out=bool(value))
        elif kind == FORGET:
            self.forget_requests.receive(int(user), value)


async def is_kept_there(client: Client) -> bool:
    """Return whether the servers have the bucket: some process has run with them. Raises as the client."""
    try:
        await streams_of(client).key_value(PEOPLE)
    except NotFoundError:
        return False
    return True


@asynccontextmanager
async def open_people(client: Client) -> AsyncGenerator[SharedPeople]:
    """Read at the start, and kept up to date for as long as the block runs. Raises OSError: NATS does not answer."""
    people = SharedPeople(client)
    async with SubjectWatcher(client, f"KV_{PEOPLE}", f"$KV.{PEOPLE}.", people.receive).watching():
        yield people


# Flags


class SharedFlags:
    """`SharedNotes` (services.documents.store.protocol) in the bucket `people`."""

    def __init__(self, client: Client) -> None:
        """`client`: on the loop on which this is used."""
        self._client, self._bucket = client, KeyBucket(streams_of(client), PEOPLE)
        self._watching = AsyncExitStack()

    async def follow(self, prefix: str, heard: Callable[[str, bytes | None], None]) -> None:
        start = f"$KV.{PEOPLE}.{prefix}"
        watcher = SubjectWatcher(self._client, f"KV_{PEOPLE}", start, lambda key, value: heard(key, value or None))
        try:
            await self._watching.enter_async_context(watcher.watching())
        except ServerAway as error:
            raise StoreUnavailable(str(error)) from error

    async def put(self, key: str, value: bytes | None) -> None:
        # A mark tells those who follow; after a day nothing says any more that there was one.
        await (self._bucket.purge_with_ttl(key, DAY_SECONDS) if value is None else self._bucket.put(key, value))

    async def aclose(self) -> None:
        await self._watching.aclose()
