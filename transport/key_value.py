"""Key-value buckets of NATS: read, compare-and-set with retries, and watch all changes of a bucket or stream."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from transport.connection import AWAY, TRY_SECONDS, retry, streams_of
from transport.errors import ServerAway
from transport.fenced_log import READ_SECONDS, read_stream
from transport.streams import LAST, NO_MESSAGE, OPERATION, PURGE, REASON, ROLLUP, WRONG_LAST

HEARTBEAT_SECONDS = 1.0

T = TypeVar("T")

log = logging.getLogger(__name__)


async def unsubscribe_quietly(subscription: JetStreamContext.PushSubscription) -> None:
    """Unsubscribe; errors are ignored, since a server that is away has dropped the subscription anyway."""
    try:
        await subscription.unsubscribe()
    except (Error, OSError, TimeoutError):
        return


async def follow(
    streams: JetStreamContext, stream: str, subject: str, heard: Callable[[Msg], None]
) -> Callable[[], Awaitable[None]]:
    """Tell `heard` of the last message of each subject, then of each new one; gives what ends it.

    Returns when it has been told of all that there is. Raises ServerAway.
    """
    caught_up = asyncio.Event()

    async def on_message(message: Msg) -> None:
        try:
            heard(message)
        except Exception:
            # The client would swallow it.
            log.exception("%s: a change is left out", message.subject)
        if message.metadata.num_pending == 0:
            caught_up.set()

    async def subscribed() -> JetStreamContext.PushSubscription:
        # A server that was restarted has forgotten who follows: after two beats that are missing the client asks again.
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT, idle_heartbeat=HEARTBEAT_SECONDS)
        return await streams.subscribe(subject, stream=stream, cb=on_message, ordered_consumer=True, config=config)

    reading = await retry(subscribed)
    info = await retry(reading.consumer_info)
    if not info.num_pending and not (info.delivered and info.delivered.consumer_seq):
        caught_up.set()
    try:
        await asyncio.wait_for(caught_up.wait(), READ_SECONDS)
    except TimeoutError:
        await unsubscribe_quietly(reading)
        raise ServerAway(f"NATS does not send what {stream} holds; look into its log") from None
    return lambda: unsubscribe_quietly(reading)


class KeyBucket:
    """Read and write values by key, with their revisions. Where the server does not answer, the log says so once, and
    the call is repeated; after `for_seconds` (PATIENCE_SECONDS) it raises ServerAway.
    """

    def __init__(self, streams: JetStreamContext, name: str, for_seconds: float | None = None) -> None:
        self._streams, self.name, self._stream, self._prefix = streams, name, f"KV_{name}", f"$KV.{name}."
        self._for_seconds = for_seconds
        self._away = False

    def within(self, seconds: float) -> KeyBucket:
        """The same, which is asked no longer than so."""
        return KeyBucket(self._streams, self.name, seconds)

    async def get(self, key: str) -> tuple[bytes, int]:
        """The value and its revision: nothing and 0 where there is none."""

        async def ask() -> tuple[bytes, int]:
            try:
                found = await self._streams.get_last_msg(self._stream, self._prefix + key)
            except NotFoundError as error:
                if error.err_code != NO_MESSAGE:
                    raise  # the bucket itself is not there
                return b"", 0
            return found.data or b"", found.seq or 0

        return await self._answer(ask)

    async def put(self, key: str, value: bytes, revision: int | None = None, seconds: float | None = None) -> bool:
        """Write a value; returns whether it was written.

        `revision`: write only if the key still has this revision (0: only if there is no value). `seconds`: the server
        deletes the value after so long. If the answer to a successful write is lost, the retry may return False.
        """
        headers = {} if revision is None else {LAST: str(revision)}

        async def send() -> bool:
            try:
                await self._streams.publish(
                    self._prefix + key, value, stream=self._stream, headers=dict(headers), msg_ttl=seconds
                )
            except APIError as error:
                if error.err_code not in WRONG_LAST:
                    raise
                return False
            return True

        return await self._answer(send)

    async def purge_with_ttl(self, key: str, seconds: float) -> None:
        """Delete a key and leave a marker that watchers see; the server deletes the marker itself after `seconds`."""
        headers = {OPERATION: PURGE, ROLLUP: "sub"}
        await self._answer(
            lambda: self._streams.publish(
                self._prefix + key, b"", stream=self._stream, headers=dict(headers), msg_ttl=seconds
            )
        )

    async def remove(self, keys: str) -> None:
        """Purge keys (a subject, perhaps with wildcards) without leaving markers: watchers are not told."""
        await self._answer(lambda: self._streams.purge_stream(self._stream, subject=self._prefix + keys))

    async def everything(self) -> dict[str, bytes]:
        """All values by key.

        Raises:
            OSError: the server does not answer, or has no such bucket.
        """
        try:
            return await values(self._streams, self.name)
        except (Error, TimeoutError) as error:
            raise OSError(errno.EIO, f"the bucket {self.name} cannot be read: {error}") from error

    async def _answer(self, ask: Callable[[], Awaitable[T]]) -> T:
        def on_failure(error: Exception) -> None:
            if not self._away:
                why = str(error) or "too late"
                log.warning("%s: no answer from the NATS server, which is asked again: %s", self.name, why)
            self._away = True

        answer = await retry(ask, self._for_seconds, per_try=TRY_SECONDS, on_failure=on_failure)
        if self._away:
            log.info("%s: the NATS server answers again", self.name)
        self._away = False
        return answer


async def values(streams: JetStreamContext, bucket: str, keys: str = ">") -> dict[str, bytes]:
    """All values of a bucket whose keys match `keys`, by key. Raises as the client.

    Not by a watcher of nats-py (2.16.0): where the last values are delivered and not taken up yet, it says that there
    are none (8 times in 4,000, of a bucket with one value). Besides, each leaves a consumer for five minutes, and a
    server has refused more than about a thousand.
    """
    prefix, found = f"$KV.{bucket}.", dict[str, bytes]()
    async for entry in read_stream(streams, f"KV_{bucket}", prefix + keys):
        headers = entry.headers or {}
        if OPERATION not in headers and REASON not in headers:
            found[entry.subject.removeprefix(prefix)] = entry.data
    return found


LOOK_SECONDS = 0.25
"""How often it is seen whether the connection was lost: a restarted server does not know who reads from it."""
LOOKS = 20
"""After so many without a change the server is asked whether it knows."""
AGAIN_SECONDS = 0.2

Heard = Callable[[str, bytes], object]
"""Called with a key and its value; nothing: it is gone. Must not raise."""


class BucketWatcher:
    """Calls `heard` with every value of the bucket, then with each change, also those made while it was away."""

    def __init__(self, client: Client, bucket: str, heard: Heard) -> None:
        self._client, self._bucket, self._heard = client, bucket, heard
        self._known: set[str] = set()
        self._caught_up = asyncio.Event()
        self._ended = False

    async def caught_up(self) -> None:
        """Wait until everything has been told that was there at some moment after the begin of `following`."""
        await self._caught_up.wait()

    @asynccontextmanager
    async def following(self) -> AsyncGenerator[None]:
        """For as long as the block runs."""
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            # The client takes a message that comes at this very moment for an answer, and the cancelling for done.
            self._ended = True
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while not self._ended:
            try:
                await self._follow()
            except AWAY as error:
                log.debug("%s: out of reach: %s", self._bucket, error)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _follow(self) -> None:
        """Returns once the server may have forgotten it."""
        connects = self._client.stats["reconnects"]
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT)
        reading = await streams_of(self._client).subscribe(
            f"$KV.{self._bucket}.>", stream=f"KV_{self._bucket}", ordered_consumer=True, config=config
        )
        try:
            await self._fill(reading)
            looks = 0
            while not self._ended and self._client.stats["reconnects"] == connects:
                try:
                    message = await reading.next_msg(timeout=LOOK_SECONDS)
                except TimeoutError:
                    looks += 1
                    if looks == LOOKS:
                        await reading.consumer_info()
                        looks = 0
                    continue
                self._tell(message)
        finally:
            await reading.unsubscribe()

    async def _fill(self, reading: JetStreamContext.PushSubscription) -> None:
        before, self._known = self._known, set()
        info = await reading.consumer_info()
        left = (info.num_pending or 0) + (info.delivered.consumer_seq if info.delivered else 0)
        while left:
            if self._ended:
                return
            message = await reading.next_msg(timeout=READ_SECONDS)
            left = message.metadata.num_pending
            self._tell(message)
        for key in before - self._known:
            self._heard(key, b"")
        self._caught_up.set()

    def _tell(self, message: Msg) -> None:
        key = message.subject.removeprefix(f"$KV.{self._bucket}.")
        (self._known.add if message.data else self._known.discard)(key)
        self._heard(key, message.data)
