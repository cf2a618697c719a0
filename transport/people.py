"""The bucket `people`: what all processes must know about persons.

opt-outs.42     who wants to be left alone; empty, for a minute, once that is over
forget.42       a wish to be forgotten, until everybody has done their part (`transport.forget_requests`)
feedback-key    what the pseudonyms of those who vote are made with, the same in all partitions
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from transport.bucket import KeyBucket, patience
from transport.connection import streams_of
from transport.layout import PEOPLE
from transport.watching import BucketWatcher
from transport.wishes import FORGET, ForgetRequests

OPT_OUTS, FEEDBACK_KEY = "opt-outs", "feedback-key"
GONE_SECONDS = 60
"""How long it is said that a key is gone. Who has not listened for longer reads everything again."""


class SharedOptOuts:
    """`services.conversations.LeftAlone`, kept in the bucket: whatever a process changes, all hear.

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
        self.heard(user_id, out=True)
        async with patience():
            await self._bucket.put(f"{OPT_OUTS}.{user_id}", b"true")

    async def discard(self, user_id: int) -> None:
        """Opt somebody in again. Raises OSError: as `add`."""
        self.heard(user_id, out=False)
        async with patience():
            await self._bucket.purge_with_ttl(f"{OPT_OUTS}.{user_id}", GONE_SECONDS)

    def heard(self, user_id: int, *, out: bool) -> None:
        """What the bucket says."""
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
        self.forget_requests = ForgetRequests(client, self._bucket)

    async def feedback_key(self, proposed: bytes) -> bytes:
        """The key of all processes; `proposed` becomes it where there is none yet. Raises OSError."""
        async with patience():
            if await self._bucket.put(FEEDBACK_KEY, proposed, 0):
                return proposed
            return (await self._bucket.get(FEEDBACK_KEY))[0]

    def heard(self, key: str, value: bytes) -> None:
        """For `BucketWatcher`."""
        kind, _, user = key.partition(".")
        if not user.isdecimal():
            return
        if kind == OPT_OUTS:
            self.opt_outs.heard(int(user), out=bool(value))
        elif kind == FORGET:
            self.forget_requests.heard(int(user), value)


async def is_kept_there(client: Client) -> bool:
    """Whether the servers have the bucket: some process has run with them. Raises as the client."""
    try:
        await streams_of(client).key_value(PEOPLE)
    except NotFoundError:
        return False
    return True


@asynccontextmanager
async def open_people(client: Client) -> AsyncGenerator[SharedPeople]:
    """Read at the start, and kept up to date for as long as the block runs. Raises OSError: NATS does not answer."""
    people = SharedPeople(client)
    follower = BucketWatcher(client, PEOPLE, people.heard)
    async with follower.following():
        async with patience():
            await follower.caught_up()
        yield people
