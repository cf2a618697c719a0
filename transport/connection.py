"""Connections to the NATS servers that reconnect for as long as the process runs."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from nats.aio.client import Client
from nats.errors import Error
from nats.js import JetStreamContext
from nats.js.errors import APIError

from clock import cancelled
from transport.address import Address
from transport.errors import ServersUnusable
from transport.reaching import FAILURES, TlsOnlyClient, check_version, close_client, why_unreachable

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 5.0
PING_SECONDS = 2
RETRY_SECONDS = 0.2

AWAY = (Error, TimeoutError, APIError)
"""What calls of a server raise that is away, or cannot do it now."""

T = TypeVar("T")

log = logging.getLogger(__name__)


async def connect(address: Address, name: str) -> Client:
    """Connect, and reconnect for ever; messages published while disconnected are sent after reconnecting.

    Raises:
        ServersUnusable: no server answers, or an old one does.
    """
    client, credentials = TlsOnlyClient(), address.credentials

    async def on_error(error: Exception) -> None:
        # nats-py would print a traceback of each; what matters is raised where somebody waits for it.
        forbidden = "permissions violation" in str(error).lower()
        log.log(logging.WARNING if forbidden else logging.DEBUG, "%s", error)

    async def lost() -> None:
        if not client.is_draining and not client.is_closed:
            log.warning("nats: the connection to the server is lost; connecting again")

    async def found() -> None:
        log.info("nats: connected again, to %s", shown(client))

    attempt = client.connect(
        list(address.servers),
        name=name,
        user_credentials=credentials,
        error_cb=heard,
        disconnected_cb=lost,
        reconnected_cb=found,
        max_reconnect_attempts=-1,
        reconnect_time_wait=RETRY_SECONDS,  # pyright: ignore[reportArgumentType] (seconds)
        ping_interval=PING_SECONDS,
        max_outstanding_pings=2,
        connect_timeout=2,
    )
    try:
        # With endless patience the first attempt would never end either.
        await asyncio.wait_for(attempt, CONNECT_SECONDS)
    except FAILURES:
        await close_client(client)
        raise await why_unreachable(address, name) from None
    try:
        check_version(client, shown(client))
    except ServersUnusable:
        await close_client(client)
        raise
    return client


def shown(client: Client) -> str:
    """The server that a connection leads to, without a password."""
    url = client.connected_url
    return "no server" if url is None else f"{url.hostname}:{url.port}"


def streams_of(client: Client) -> JetStreamContext:
    return client.jetstream(timeout=ANSWER_SECONDS)


class FileConnection:
    """The connection for file writes: it runs on its own event loop in its own thread, so that blocking code can wait
    for the server.

    Writes of files come from any thread, the main one included; all of them may wait here, as they may for a disk.
    """

    def __init__(self, address: Address, name: str) -> None:
        self._address, self._name = address, name
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="nats", daemon=True)
        self.client: Client | None = None

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin `work` over there, from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Await work over there. Cancelling ends the wait and the work."""
        return await asyncio.wrap_future(self.start(work))

    @property
    def streams(self) -> JetStreamContext:
        assert self.client is not None, "it is not open"  # noqa: S101 (for the type checker)
        return streams_of(self.client)

    async def __aenter__(self) -> Self:
        """Raises ServersUnusable."""
        self._thread.start()
        try:
            self.client = await self.do(connect(self._address, self._name))
        except BaseException:
            self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.do(self._finish())
        self._end()

    async def _finish(self) -> None:
        if self.client is not None:
            await close_client(self.client)
        # Those of the client and of who was cancelled here end with their loop.
        await cancelled(*(asyncio.all_tasks() - {asyncio.current_task()}))

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
