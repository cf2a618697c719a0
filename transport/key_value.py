"""Key-value buckets of NATS: read, compare-and-set with retries, and watch the values of subjects."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import TypeVar

from nats.aio.client import Client
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError

from clock import cancelled, timeout_ignoring_pauses
from transport import connection
from transport.connection import AWAY, TRY_SECONDS, retry
from transport.errors import ServerAway
from transport.streams import LAST, NO_MESSAGE, OPERATION, PURGE, REASON, ROLLUP, WRONG_LAST, read_stream, watch

T = TypeVar("T")

log = logging.getLogger(__name__)


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


AGAIN_SECONDS = 0.2

Heard = Callable[[str, bytes], object]
"""Called with a key and its value; nothing: it is gone."""


class SubjectWatcher:
    """Calls `heard` with the last value of each subject below a prefix, then with each change, also those made while
    the server was away; then some of what has not changed is said again.
    """

    def __init__(self, client: Client, stream: str, prefix: str, heard: Heard) -> None:
        """`prefix`: of the subjects, with the dot; what follows it is the key."""
        self._client, self._stream, self._prefix, self._heard = client, stream, prefix, heard
        self._known: set[str] = set()
        self._caught_up = asyncio.Event()
        self._ended = False

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """For as long as the block runs, which begins when all is said that there is. Raises ServerAway."""
        task = asyncio.create_task(self._run())
        try:
            try:
                async with timeout_ignoring_pauses(connection.PATIENCE_SECONDS):
                    await self._caught_up.wait()
            except TimeoutError:
                raise ServerAway(
                    f"NATS does not serve what {self._stream} holds; start the server, or look into its log"
                ) from None
            yield
        finally:
            # The client takes a message that comes at this very moment for an answer, and the cancelling for done.
            self._ended = True
            await cancelled(task)

    async def _run(self) -> None:
        while not self._ended:
            try:
                await self._watch()
            except AWAY as error:
                log.debug("%s: out of reach: %s", self._stream, error)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _watch(self) -> None:
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT)
        found: set[str] | None = set()
        async with aclosing(watch(self._client, self._stream, f"{self._prefix}>", config)) as messages:
            async for message in messages:
                if self._ended:
                    return
                if message is not None:
                    key = message.subject.removeprefix(self._prefix)
                    self._tell(key, message.data)
                    if found is not None:
                        found.add(key)
                elif found is not None:
                    for key in self._known - found:
                        self._tell(key, b"")
                    found = None
                    self._caught_up.set()

    def _tell(self, key: str, value: bytes) -> None:
        (self._known.add if value else self._known.discard)(key)
        try:
            self._heard(key, value)
        except Exception:
            log.exception("%s%s: a change is left out", self._prefix, key)
