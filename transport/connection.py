"""Connections to the NATS servers: `connect` keeps one alive across restarts of the server, `probe` tries one server
once and says why it cannot be used.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error, NoServersError, SecureConnWantedError
from nats.js import JetStreamContext
from nats.js.errors import APIError

from clock import RetryDeadline, cancel_and_wait
from clock.timeouts import Backoff
from services.telemetry import connection_problem
from transport.address import Address, ServersUnusable

OLDEST_VERSION = (2, 12)
"""The oldest version of the server that will do: it has counters, a TTL for each message, and expected sequences for
wildcard subjects."""
PROBE_SECONDS = 2.0
REFUSAL_WORDS = ("authorization", "authentication", "credentials")
"""Words by which an error of the server shows that it refuses the credentials."""

CONNECT_ERRORS = (Error, OSError, TimeoutError, NoServersError)
"""The errors that the client raises if a connection fails."""

OnError = Callable[[Exception], Awaitable[None]]


class ServerAway(OSError):
    """The servers do not answer, or refuse: one readable line. For a caller it is like a disk that is gone."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EIO, why)

    def __str__(self) -> str:
        return str(self.strerror)


class ServerUnreachable(ServersUnusable):
    """The server did not answer (it may be down; nothing is known to be configured wrongly)."""


class StrictClient(Client):
    """Speaks TLS or not at all with `tls://`; nats-py would go on in plain text where the server offers none. A request
    that is cancelled does not return: before Python 3.12 `wait_for`, which nats-py uses, forgets a cancellation that
    comes together with the answer, and so a time limit would never end.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        wanted = self._current_server is not None and self._current_server.uri.scheme == "tls"
        if initial_connection and wanted and not info.get("tls_required"):
            raise SecureConnWantedError
        await super()._process_info(info, initial_connection)

    async def request(self, *args: Any, **keywords: Any) -> Msg:
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        answer = await super().request(*args, **keywords)
        if task and task.cancelling() > before:
            raise asyncio.CancelledError
        return answer


async def probe(address: Address, server: str, name: str, on_later_error: OnError) -> Client:
    """Connect to one server, once, without reconnecting. `on_later_error`: called with errors after the connecting.

    Raises:
        ServerUnreachable: it does not answer.
        ServersUnusable: it does not let this program in, or is too old.
    """
    credentials, client, reported = address.credentials, StrictClient(), list[Exception]()

    async def on_error(error: Exception) -> None:
        reported.append(error)
        await on_later_error(error)

    try:
        await asyncio.wait_for(
            client.connect(
                server,
                name=name,
                user_credentials=credentials,
                error_cb=on_error,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0.1,  # pyright: ignore[reportArgumentType] (seconds)
                connect_timeout=PROBE_SECONDS,  # pyright: ignore[reportArgumentType] (seconds)
            ),
            2 * PROBE_SECONDS,
        )
    except CONNECT_ERRORS as error:
        await close_client(client)
        # The error raised may only say that no server is left; the first one reported says why.
        raise explain_failure(address, server, reported[0] if reported else error) from None
    await require_version(client, server)
    return client


async def close_client(client: Client) -> None:
    """Close a connection, also a lost or failed one, where the client's own `close` may never end."""
    with contextlib.suppress(*CONNECT_ERRORS):
        async with asyncio.timeout(PROBE_SECONDS):
            await client.close()


def explain_failure(address: Address, server: str, error: Exception) -> ServersUnusable:
    """Return the error to raise: one line with the key and the remedy."""
    text = str(error).removeprefix("nats: ").strip("'")
    if isinstance(error, Error) and any(word in text.lower() for word in REFUSAL_WORDS):
        path, variable = address.credentials, address.credentials_env
        if path is None:
            return ServersUnusable(
                f"nats.credentials_env: {server} lets nobody in without credentials ({text}); set {variable} to the "
                "path of a file of credentials"
            )
        return ServersUnusable(
            f"nats.credentials_env: {server} does not let in who has {path} ({text}); have {variable} name a file of "
            "credentials for that server"
        )
    return ServerUnreachable(f"transport: {server} cannot be reached: {_explain_error(error, text)}")


def _explain_error(error: Exception, text: str) -> str:
    if isinstance(error, SecureConnWantedError):
        return "it offers no TLS: write nats:// instead of tls://, or switch TLS on there"
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLCertVerificationError):
        why = getattr(error, "reason", None) or "no reason given"
        return f"TLS fails ({why}): see the server's log; it must not want a certificate of its clients"
    if isinstance(error, TimeoutError):
        return "it does not answer: check the port, and the server's log"
    if isinstance(error, OSError):
        return connection_problem(error)
    return f"what listens there does not speak as NATS does ({text}): check the port"


async def require_version(client: Client, server: str) -> None:
    """Close the connection if the server is too old. Raises ServersUnusable then."""
    version = client.connected_server_version
    if (version.major, version.minor) < OLDEST_VERSION:
        await close_client(client)
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise ServersUnusable(
            f"transport: {server} is version {version.major}.{version.minor}; install {oldest} or newer"
        )


async def find_out_why_unreachable(address: Address, name: str) -> ServersUnusable:
    """Return the error to raise where no server could be used. Tries each again: the client does not say why."""
    found = await asyncio.gather(
        *(probe(address, server, name, _ignore) for server in address.servers), return_exceptions=True
    )
    for each in found:
        if isinstance(each, Client):
            await close_client(each)
        elif not isinstance(each, ServersUnusable):
            raise each
    troubles = [each for each in found if isinstance(each, ServersUnusable)]
    # A refusal by one server says more than the silence of others.
    refusals = [each for each in troubles if not isinstance(each, ServerUnreachable)]
    if not troubles:
        return ServersUnusable(f"transport: {', '.join(address.servers)}: they answer late; start it again")
    if refusals:
        return refusals[0]
    return ServerUnreachable(f"transport: {'; '.join(str(each).removeprefix('transport: ') for each in troubles)}")


async def _ignore(_error: Exception) -> None:
    pass


CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 5.0
PING_SECONDS = 2
RETRY_SECONDS = 0.2

AWAY_ERRORS = (Error, TimeoutError, APIError)
"""The errors of calls while the server is away or cannot carry them out."""

TRY_SECONDS = 2.0
"""How long one try may take, and the longest pause before the next."""
PATIENCE_SECONDS = 10.0
"""How long a read or a write is tried while the server is away."""
FILE_PATIENCE_SECONDS = 60.0
"""How long the write of a file is tried; then it fails like one on a broken disk."""

T = TypeVar("T")

log = logging.getLogger(__name__)


async def connect(address: Address, name: str) -> Client:
    """Connect, and reconnect for ever; messages published while disconnected are sent after reconnecting. Raises
    ServersUnusable: no server answers, or it refuses, or is too old.
    """
    client, credentials = StrictClient(), address.credentials

    async def on_error(error: Exception) -> None:
        # Without this nats-py prints a traceback of each. The caller that waits gets its error raised.
        forbidden = "permissions violation" in str(error).lower()
        log.log(logging.WARNING if forbidden else logging.DEBUG, "%s", error)

    async def on_lost() -> None:
        if not client.is_draining and not client.is_closed:
            log.warning("nats: the connection to the server is lost; connecting again")

    async def on_reconnected() -> None:
        log.info("nats: connected again, to %s", connected_server(client))

    attempt = client.connect(
        list(address.servers),
        name=name,
        user_credentials=credentials,
        error_cb=on_error,
        disconnected_cb=on_lost,
        reconnected_cb=on_reconnected,
        max_reconnect_attempts=-1,
        reconnect_time_wait=RETRY_SECONDS,  # pyright: ignore[reportArgumentType] (seconds)
        ping_interval=PING_SECONDS,
        max_outstanding_pings=2,
        connect_timeout=2,
    )
    try:
        # With endless reconnecting the first attempt would never end either.
        await asyncio.wait_for(attempt, CONNECT_SECONDS)
    except CONNECT_ERRORS:
        await close_client(client)
        raise await find_out_why_unreachable(address, name) from None
    await require_version(client, connected_server(client))
    return client


def connected_server(client: Client) -> str:
    """Host and port of the server, without a password."""
    url = client.connected_url
    return "no server" if url is None else f"{url.hostname}:{url.port}"


async def retry(
    work: Callable[[], Awaitable[T]],
    for_seconds: float | None = None,
    *,
    per_try: float | None = TRY_SECONDS,
    unless: type[Exception] | tuple[()] = (),
    on_failure: Callable[[Exception], object] = lambda _error: None,
) -> T:
    """Await `work()`, and again while the server does not answer or cannot carry it out.

    `for_seconds`: how long it is tried; None: PATIENCE_SECONDS. `per_try`: how long one try may take. `unless`: errors
    that are raised at once. `on_failure`: called before each further try.

    Raises ServerAway, and what else `work` raises.
    """
    backoff = Backoff(0.1, TRY_SECONDS)
    deadline = RetryDeadline(PATIENCE_SECONDS if for_seconds is None else for_seconds)
    while True:
        try:
            async with asyncio.timeout(per_try):
                return await work()
        except unless:
            raise
        except (*AWAY_ERRORS, ConnectionError) as error:
            if deadline.is_over():
                why = str(error).removeprefix("nats: ") or type(error).__name__
                raise ServerAway(f"NATS does not serve ({why}); start the server, or look into its log") from error
            on_failure(error)
        await asyncio.sleep(backoff.pause())


async def subscribe(client: Client, subject: str, on_message: Callable[[Msg], Awaitable[None]]) -> Subscription:
    """Subscribe to a subject, and return when the server knows: what is published from then on, by any connection,
    reaches `on_message`. Raises as the client.
    """
    subscription = await client.subscribe(subject, cb=on_message)
    await client.flush()
    return subscription


def streams_of(client: Client) -> JetStreamContext:
    return client.jetstream(timeout=ANSWER_SECONDS)


class FileConnection:
    """The connection for file writes. It runs on its own event loop in its own thread, so that blocking code of any
    other thread, the main one included, can wait for the server as for a disk.
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
        """Begin `work` on the loop of this connection, from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` on the loop of this connection. Cancelling ends the wait and the work."""
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
            self._stop_loop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.do(self._close())
        self._stop_loop()

    async def _close(self) -> None:
        if self.client is not None:
            await close_client(self.client)
        # The tasks of the client, and of callers that were cancelled, must end before their loop.
        await cancel_and_wait(*(asyncio.all_tasks() - {asyncio.current_task()}))

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
