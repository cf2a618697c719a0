"""The bucket `people`: requests to be forgotten, opt-outs, the key for pseudonyms, and small flags that all processes
share.

Its keys, beside those of `SharedFlags`:

    opt-outs.42     this person has opted out; a marker for a minute after they opted in again
    forget.42       a request to be forgotten, until each scope has carried it out
    feedback-key    the key for the pseudonyms of voters, the same in all partitions
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
from dataclasses import dataclass, field, replace
from typing import Any

from nats.aio.client import Client
from nats.js.errors import NotFoundError
from pydantic import TypeAdapter

from clock import DAY, now
from services.documents.store import StoreUnavailable
from transport.connection import ServerAway, streams_of
from transport.key_value import KeyBucket, SubjectWatcher
from transport.streams import PEOPLE

# Requests to be forgotten

FORGET = "forget"
COMPLETED_SECONDS = 60
"""How long a completed request stays in the bucket, for processes that were disconnected and hold data in memory."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """One process has carried out a request to forget in its `scopes`. `found`: fields of a `ForgetResult`."""

    by: str
    scopes: tuple[str, ...]
    found: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """A person's request to be forgotten.

    Attributes:
        id: a new one for each request.
        at: seconds since 1970.
        left: the scopes that have not carried it out yet.
        parts: the reports so far.
        renamed: the new ids of sources that were called by a word of theirs, by the old ids.
    """

    user_id: int
    id: str
    at: float
    left: tuple[str, ...]
    parts: tuple[ForgetReport, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])


_REQUEST = TypeAdapter(ForgetRequest)


class ForgetRequests:
    """The requests in the bucket, as they were last read.

        forget.42    {"id": "5f2c…", "at": 1795415000.5, "left": ["p03", "team"], "parts": [{"by": "host-1", …}]}

    The owner of a scope in `left` removes the person's data there, then takes the scope out of the list and adds its
    report, if the entry has not changed since it was read. A new owner of a scope handles requests first. The owner of
    the archive first announces the topics that it renames, and all scopes that are done carry the request out again.

    Attributes:
        by_user: requests that are open, or were completed within the last minute.
        on_change: called with each new or changed request.
    """

    def __init__(self, bucket: KeyBucket) -> None:
        self.by_user: dict[int, ForgetRequest] = {}
        self.on_change: Callable[[ForgetRequest], object] = lambda _request: None
        self._bucket, self._changed = bucket, asyncio.Event()

    def scopes_left(self, request: ForgetRequest) -> tuple[str, ...]:
        """Return the scopes that have not carried it out yet; none if the person has made a newer request."""
        current = self.by_user.get(request.user_id)
        return current.left if current is not None and current.id == request.id else ()

    def receive(self, user_id: int, value: bytes) -> None:
        """Take over an entry of the bucket."""
        request = _parse(user_id, value)
        if request is None:
            self.by_user.pop(user_id, None)
        else:
            self.by_user[user_id] = request
            self._changed.set()
            self.on_change(request)

    async def make(self, user_id: int, scopes: Collection[str]) -> ForgetRequest:
        """Make a request for all of `scopes`, also if an earlier one is open. Raises OSError."""
        request = ForgetRequest(user_id, uuid.uuid4().hex, now(), tuple(scopes))
        await self._bucket.put(_key(user_id), _render(request))
        return request

    async def complete(self, request: ForgetRequest, report: ForgetReport) -> None:
        """Add a report to a request, and remove its scopes from `left`. Raises OSError."""
        while True:
            value, revision = await self._bucket.get(_key(request.user_id))
            current = _parse(request.user_id, value)
            # The person has made a newer request, or the report was written and the answer lost.
            if current is None or current.id != request.id:
                return
            if report in current.parts and not {*report.scopes} & {*current.left}:
                return
            # A report about fewer renames than are announced by now does not count as done.
            done = report.scopes if current.renamed == request.renamed else ()
            left = tuple(scope for scope in current.left if scope not in done)
            after = _render(replace(current, left=left, parts=(*current.parts, report)))
            if await self._bucket.put(_key(request.user_id), after, revision, None if left else COMPLETED_SECONDS):
                return

    async def announce_renames(self, request: ForgetRequest, renamed: Mapping[str, str]) -> ForgetRequest:
        """Add new ids of sources, by the old, to a request, and have each scope carry it out again that has done so
        without them. Returns the request as it is then. Raises OSError.
        """
        while True:
            value, revision = await self._bucket.get(_key(request.user_id))
            current = _parse(request.user_id, value)
            if current is None or current.id != request.id:
                return request
            announced = {**current.renamed, **renamed}
            if announced == current.renamed:
                return current
            done = (scope for part in current.parts for scope in part.scopes)
            changed = replace(current, left=tuple(dict.fromkeys((*current.left, *done))), renamed=announced)
            if await self._bucket.put(_key(request.user_id), _render(changed), revision):
                return changed

    async def request_and_wait(
        self,
        user_id: int,
        scopes: Collection[str],
        seconds: float,
        *,
        owned: Collection[str],
        processes: Collection[str],
    ) -> ForgetRequest:
        """Make a request for all `scopes`, and wait until the `owned` ones have carried it out and all `processes` have
        reported, for at most `seconds`. Returns the request as it is then. Raises OSError: it could not be made.
        """
        request = await self.make(user_id, scopes)

        def is_enough() -> bool:
            current = self.by_user.get(user_id)
            if current is None or current.id != request.id:
                return not owned and not processes
            return not set(owned) & set(current.left) and set(processes) <= {report.by for report in current.parts}

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not is_enough():
                    self._changed.clear()
                    await self._changed.wait()
        value, _ = await self._bucket.get(_key(user_id))
        current = _parse(user_id, value)
        return current if current is not None and current.id == request.id else replace(request, left=())


def _key(user_id: int) -> str:
    return f"{FORGET}.{user_id}"


def _render(request: ForgetRequest) -> bytes:
    return _REQUEST.dump_json(request, exclude={"user_id"})


def _parse(user_id: int, value: bytes) -> ForgetRequest | None:
    if not value:
        return None
    try:
        return _REQUEST.validate_python({**json.loads(value), "user_id": user_id})
    except (ValueError, TypeError, RecursionError):
        log.error("people: %s is damaged; let the person wish it again", _key(user_id))  # noqa: TRY400 (a line for the operator)
        return None


# Opt-outs, and the bucket

OPT_OUTS, FEEDBACK_KEY = "opt-outs", "feedback-key"
MARKER_SECONDS = 60
"""How long the marker of a deleted key stays. A process that was disconnected for longer reads all keys again."""


class SharedOptOuts:
    """`services.conversations.OptOutRegistry` in the bucket: all processes see each change. `on_added`: called with the
    id of each person who opts out, in any process, or has opted out before.
    """

    def __init__(self, bucket: KeyBucket) -> None:
        self.on_added: Callable[[int], object] = lambda _user_id: None
        self._bucket = bucket
        self._ids: set[int] = set()

    def __contains__(self, user_id: object) -> bool:
        return user_id in self._ids

    async def add(self, user_id: int) -> None:
        """Opt somebody out, in this process at once. Raises OSError: other processes do not know of it."""
        self.set_opted_out(user_id, out=True)
        await self._bucket.put(f"{OPT_OUTS}.{user_id}", b"true")

    async def discard(self, user_id: int) -> None:
        """Opt somebody in again. Raises OSError: as `add`."""
        self.set_opted_out(user_id, out=False)
        await self._bucket.purge_with_ttl(f"{OPT_OUTS}.{user_id}", MARKER_SECONDS)

    def set_opted_out(self, user_id: int, *, out: bool) -> None:
        """Take over an entry of the bucket."""
        if not out:
            self._ids.discard(user_id)
        elif user_id not in self._ids:
            self._ids.add(user_id)
            self.on_added(user_id)


class SharedPeople:
    """The bucket `people`, kept up to date; made by `open_people`."""

    def __init__(self, client: Client) -> None:
        self._bucket = KeyBucket(streams_of(client), PEOPLE)
        self.opt_outs = SharedOptOuts(self._bucket)
        self.forget_requests = ForgetRequests(self._bucket)

    async def feedback_key(self, proposed: bytes) -> bytes:
        """Return the key that all processes use; `proposed` becomes it if there is none yet. Raises OSError."""
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


async def has_people_bucket(client: Client) -> bool:
    """Return whether any process has run with these servers. Raises as the client."""
    try:
        await streams_of(client).key_value(PEOPLE)
    except NotFoundError:
        return False
    return True


@asynccontextmanager
async def open_people(client: Client) -> AsyncGenerator[SharedPeople]:
    """Give what the processes share about people, up to date until the context ends. Raises OSError: NATS is away."""
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
        # A marker tells followers; after a day it is deleted as well.
        await (self._bucket.purge_with_ttl(key, DAY) if value is None else self._bucket.put(key, value))

    async def aclose(self) -> None:
        await self._watching.aclose()
