"""Small values by key that all processes share, kept in the bucket `people` and watched."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable

from nats.aio.msg import Msg
from nats.js import JetStreamContext

from services.documents.store import StoreUnavailable
from transport.errors import ServerAway
from transport.fence import TRY_SECONDS
from transport.following import follow, patiently
from transport.layout import DAY_SECONDS, PEOPLE
from transport.protocol import OPERATION, PURGE, REASON, ROLLUP, TTL


class SharedFlags:
    """`SharedNotes` (services.documents.store.shared) in the bucket `people`."""

    def __init__(self, streams: JetStreamContext) -> None:
        """`streams`: of a connection on the loop on which this is used."""
        self._streams = streams
        self._ends: list[Callable[[], Awaitable[None]]] = []

    async def follow(self, prefix: str, heard: Callable[[str, bytes | None], None]) -> None:
        start = f"$KV.{PEOPLE}.{prefix}"

        def on_message(message: Msg) -> None:
            headers = message.headers or {}
            gone = OPERATION in headers or REASON in headers
            heard(message.subject.removeprefix(start), None if gone else message.data)

        try:
            self._ends.append(await follow(self._streams, f"KV_{PEOPLE}", f"{start}>", told))
        except ServerAway as error:
            raise StoreUnavailable(str(error)) from error

    async def put(self, key: str, value: bytes | None) -> None:
        # A mark tells those who follow; after a day nothing says any more that there was one.
        headers = {OPERATION: PURGE, ROLLUP: "sub", TTL: f"{DAY_SECONDS}s"} if value is None else None

        async def published() -> None:
            await self._streams.publish(f"$KV.{PEOPLE}.{key}", value or b"", timeout=TRY_SECONDS, headers=headers)

        try:
            await patiently(published)
        except ServerAway as error:
            raise OSError(errno.EIO, str(error)) from error

    async def aclose(self) -> None:
        for end in self._ends:
            await end()
