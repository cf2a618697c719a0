"""A key-value bucket with compare-and-set writes; calls are retried until the server answers."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import APIError, NotFoundError

from clock import running_for
from clock.backoff import Backoff
from transport.fence import read_stream
from transport.protocol import LAST, NO_MESSAGE, OPERATION, PURGE, REASON, ROLLUP, WRONG_LAST

ANSWER_SECONDS = 2.0
"""How long the server has to answer, before it is asked again."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0
PATIENCE_SECONDS = 10.0
"""How long somebody waits who is there and can ask again."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class KeyBucket:
    """Read and write values by key, with their revisions. Every call is repeated until the server answers; the log says
    once that it does not.
    """

    def __init__(self, streams: JetStreamContext, name: str) -> None:
        self._streams, self.name, self._stream, self._prefix = streams, name, f"KV_{name}", f"$KV.{name}."
        self._away = False

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
        backoff = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        while True:
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    answer = await ask()
            except (Error, OSError) as error:
                if not self._away:
                    why = str(error) or "too late"
                    log.warning("%s: no answer from the NATS server, which is asked again: %s", self.name, why)
                self._away = True
                await asyncio.sleep(backoff.pause())
            else:
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


@contextlib.asynccontextmanager
async def patience() -> AsyncGenerator[None]:
    """Raises OSError: it took too long."""
    try:
        async with running_for(PATIENCE_SECONDS):
            yield
    except TimeoutError as error:
        raise OSError(errno.ETIMEDOUT, "the NATS server does not answer") from error
