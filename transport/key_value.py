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

from clock import cancel_and_wait, timeout_ignoring_pauses
from transport import connection
from transport.connection import AWAY_ERRORS, TRY_SECONDS, ServerAway, retry
from transport.streams import (
    EXPECTED_LAST,
    KV_OPERATION,
    KV_PURGE,
    MARKER_REASON,
    NO_MESSAGE,
    ROLLUP,
    WRONG_EXPECTED_LAST,
    read_stream,
    watch,
)

T = TypeVar("T")

log = logging.getLogger(__name__)


class KeyBucket:
    """Reads and writes values by key, with their revisions. Where the server does not answer, the log says so once and
    the call is repeated. After `for_seconds` (None: PATIENCE_SECONDS) it raises ServerAway.
    """

    def __init__(self, streams: JetStreamContext, name: str, for_seconds: float | None = None) -> None:
        self._streams, self.name, self._stream, self._prefix = streams, name, f"KV_{name}", f"$KV.{name}."
        self._for_seconds = for_seconds
        self._is_away = False

    async def get(self, key: str) -> tuple[bytes, int]:
        """Return the value and its revision: b"" and 0 of an unknown key, b"" and the marker's revision of a purged
        one.
        """

        async def ask() -> tuple[bytes, int]:
            try:
                found = await self._streams.get_last_msg(self._stream, self._prefix + key)
            except NotFoundError as error:
                if error.err_code != NO_MESSAGE:
                    raise  # the bucket itself is not there
                return b"", 0
            return found.data or b"", found.seq or 0

        return await self._with_retries(ask)

    async def put(self, key: str, value: bytes, revision: int | None = None, seconds: float | None = None) -> bool:
        """Write a value; returns whether it was written.

        `revision`: write only if the key still has this revision, as `get` gives it (0: neither a value nor a marker).
        `seconds`: the server deletes the value after so long. If the answer to a successful write is lost, the retry
        may return False.
        """
        headers = {} if revision is None else {EXPECTED_LAST: str(revision)}

        async def send() -> bool:
            try:
                await self._streams.publish(
                    self._prefix + key, value, stream=self._stream, headers=dict(headers), msg_ttl=seconds
                )
            except APIError as error:
                if error.err_code not in WRONG_EXPECTED_LAST:
                    raise
                return False
            return True

        return await self._with_retries(send)

    async def purge_with_ttl(self, key: str, seconds: float) -> None:
        """Delete a key and leave a marker that watchers see; the server deletes the marker itself after `seconds`."""
        headers = {KV_OPERATION: KV_PURGE, ROLLUP: "sub"}
        await self._with_retries(
            lambda: self._streams.publish(
                self._prefix + key, b"", stream=self._stream, headers=dict(headers), msg_ttl=seconds
            )
        )

    async def remove(self, keys: str) -> None:
        """Purge keys (a subject, perhaps with wildcards) without leaving markers: watchers are not told."""
        await self._with_retries(lambda: self._streams.purge_stream(self._stream, subject=self._prefix + keys))

    async def _with_retries(self, ask: Callable[[], Awaitable[T]]) -> T:
        def on_failure(error: Exception) -> None:
            if not self._is_away:
                why = str(error) or "timed out"
                log.warning("%s: no answer from the NATS server, which is asked again: %s", self.name, why)
            self._is_away = True

        answer = await retry(ask, self._for_seconds, per_try=TRY_SECONDS, on_failure=on_failure)
        if self._is_away:
            log.info("%s: the NATS server answers again", self.name)
        self._is_away = False
        return answer


async def read_values(streams: JetStreamContext, bucket: str, keys: str = ">") -> dict[str, bytes]:
    """Return all values of a bucket whose keys match `keys`, by key. Raises as the client.

    The watcher of nats-py (2.16.0) is not used: it may report that there are no values before it has read the last ones
    (8 times in 4,000, of a bucket with one value). Besides, each watcher leaves a consumer for five minutes, and a
    server has refused more than about a thousand.
    """
    prefix, found = f"$KV.{bucket}.", dict[str, bytes]()
    async for entry in read_stream(streams, f"KV_{bucket}", prefix + keys):
        headers = entry.headers or {}
        if KV_OPERATION not in headers and MARKER_REASON not in headers:
            found[entry.subject.removeprefix(prefix)] = entry.data
    return found


REWATCH_SECONDS = 0.2

OnValue = Callable[[str, bytes], object]
"""Called with a key and its value; b"": the key was deleted."""


class SubjectWatcher:
    """Calls `on_value` with the last value of each subject below a prefix, then with each change. After the connection
    was lost, it is called with all values again.
    """

    def __init__(self, client: Client, stream: str, prefix: str, on_value: OnValue) -> None:
        """`prefix`: of the subjects, with the dot; the rest of a subject is the key."""
        self._client, self._stream, self._prefix, self._on_value = client, stream, prefix, on_value
        self._known_keys: set[str] = set()
        self._caught_up = asyncio.Event()
        self._is_ended = False

    @asynccontextmanager
    async def watching(self) -> AsyncGenerator[None]:
        """Watch until the context ends; it begins once all present values are reported. Raises ServerAway."""
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
            # The client may swallow the cancellation if a message arrives at this moment.
            self._is_ended = True
            await cancel_and_wait(task)

    async def _run(self) -> None:
        while not self._is_ended:
            try:
                await self._watch()
            except AWAY_ERRORS as error:
                log.debug("%s: out of reach: %s", self._stream, error)
            await asyncio.sleep(REWATCH_SECONDS)

    async def _watch(self) -> None:
        config = api.ConsumerConfig(deliver_policy=api.DeliverPolicy.LAST_PER_SUBJECT)
        found: set[str] | None = set()
        async with aclosing(watch(self._client, self._stream, f"{self._prefix}>", config)) as messages:
            async for message in messages:
                if self._is_ended:
                    return
                if message is not None:
                    key = message.subject.removeprefix(self._prefix)
                    self._report(key, message.data)
                    if found is not None:
                        found.add(key)
                elif found is not None:
                    for key in self._known_keys - found:
                        self._report(key, b"")
                    found = None
                    self._caught_up.set()

    def _report(self, key: str, value: bytes) -> None:
        (self._known_keys.add if value else self._known_keys.discard)(key)
        try:
            self._on_value(key, value)
        except Exception:
            log.exception("%s%s: a change is left out", self._prefix, key)
