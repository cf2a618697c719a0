"""Connections to the NATS servers: `connect` keeps one alive across restarts of the server, `probe` tries one server
once and says why it cannot be used.
"""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

from nats.aio.client import Client
from nats.errors import Error, NoServersError, SecureConnWantedError
from nats.js import JetStreamContext
from nats.js.errors import APIError

from clock import RetryDeadline, cancelled
from clock.timeouts import Backoff
from services.telemetry import connection_problem
from transport.address import Address
from transport.errors import ServerAway, ServersUnusable

OLDEST = (2, 12)
"""Of the server: it counts, forgets single messages after a while, and fences a whole branch of subjects."""
LOOK_SECONDS = 2.0
REFUSED = ("authorization", "authentication", "credentials")
"""What the server says where it does not let somebody in; in a sentence of its own each time."""

FAILURES = (Error, OSError, TimeoutError, NoServersError)
"""What the client raises that does not get through."""

Heard = Callable[[Exception], Awaitable[None]]


class ServerUnreachable(ServersUnusable):
    """The server did not answer (it may be down; nothing is known to be configured wrongly)."""


class TlsOnlyClient(Client):
    """A client of an address with `tls://` speaks TLS or not at all: that of nats-py goes on in the clear where the
    server offers none.
    """

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        wanted = self._current_server is not None and self._current_server.uri.scheme == "tls"
        if initial_connection and wanted and not info.get("tls_required"):
            raise SecureConnWantedError
        await super()._process_info(info, initial_connection)


async def probe(address: Address, server: str, name: str, heard: Heard) -> Client:
    """Connect to one server, once, without reconnecting. `heard`: called with errors that happen later.

    Raises:
        ServerUnreachable: it does not answer.
        ServersUnusable: it does not let this program in, or is too old.
    """
    credentials, client, said = address.credentials, TlsOnlyClient(), list[Exception]()

    async def on_error(error: Exception) -> None:
        said.append(error)
        await heard(error)

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
                connect_timeout=LOOK_SECONDS,  # pyright: ignore[reportArgumentType] (seconds)
            ),
            2 * LOOK_SECONDS,
        )
    except FAILURES as error:
        await close_client(client)
        # That no server is left tells nothing; why, it was told before.
        raise trouble(address, server, said[0] if said else error) from None
    try:
        check_version(client, server)
    except ServersUnusable:
        await close_client(client)
        raise
    return client


async def close_client(client: Client) -> None:
    """Close a connection, also one to a server that is gone, or that never came to be: that may not end by itself."""
    with contextlib.suppress(*FAILURES):
        async with asyncio.timeout(LOOK_SECONDS):
            await client.close()


def trouble(address: Address, server: str, error: Exception) -> ServersUnusable:
    """Why a server was not reached, on one line with the key and the remedy."""
    said = str(error).removeprefix("nats: ").strip("'")
    if isinstance(error, Error) and any(word in said.lower() for word in REFUSED):
        path, variable = address.credentials, address.credentials_env
        if path is None:
            return ServersUnusable(
                f"nats.credentials_env: {server} lets nobody in without credentials ({said}); set {variable} to the "
                "path of a file of credentials"
            )
        return ServersUnusable(
            f"nats.credentials_env: {server} does not let in who has {path} ({said}); have {variable} name a file of "
            "credentials for that server"
        )
    return ServerUnreachable(f"transport: {server} cannot be reached: {_why(error, said)}")


def _why(error: Exception, said: str) -> str:
    if isinstance(error, SecureConnWantedError):
        return "it offers no TLS: write nats:// instead of tls://, or switch TLS on there"
    if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLCertVerificationError):
        why = getattr(error, "reason", None) or "no reason given"
        return f"TLS fails ({why}): see the server's log; it must not want a certificate of its clients"
    if isinstance(error, TimeoutError):
        return "it does not answer: check the port, and the server's log"
    if isinstance(error, OSError):
        return connection_problem(error)
    return f"what listens there does not speak as NATS does ({said}): check the port"


def check_version(client: Client, server: str) -> None:
    """Raises ServersUnusable: it is too old."""
    version = client.connected_server_version
    if (version.major, version.minor) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ServersUnusable(
            f"transport: {server} is version {version.major}.{version.minor}; install {oldest} or newer"
        )


async def why_unreachable(address: Address, name: str) -> ServersUnusable:
    """Why no server could be used, as an exception to raise: tries each server once more, since the client does not say
    which of them reported what.
    """
    found = await asyncio.gather(
        *(probe(address, server, name, _unheard) for server in address.servers), return_exceptions=True
    )
    for each in found:
        if isinstance(each, Client):
            await close_client(each)
        elif not isinstance(each, ServersUnusable):
            raise each
    troubles = [each for each in found if isinstance(each, ServersUnusable)]
    # Who is refused by one is refused by all, and whoever listens has more to say than who is silent.
    of_account = [each for each in troubles if not isinstance(each, ServerUnreachable)]
    if not troubles:
        return ServersUnusable(f"transport: {', '.join(address.servers)}: they answer late; start it again")
    if of_account:
        return of_account[0]
    return ServerUnreachable(f"transport: {'; '.join(str(each).removeprefix('transport: ') for each in troubles)}")


async def _unheard(_error: Exception) -> None:
    """What matters is raised."""


CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 5.0
PING_SECONDS = 2
RETRY_SECONDS = 0.2

AWAY = (Error, TimeoutError, APIError)
"""What calls of a server raise that is away, or cannot do it now."""

TRY_SECONDS = 2.0
"""How long one try may take, and the longest pause before the next."""
PATIENCE_SECONDS = 10.0
"""How long a look or a write waits for a server that is away."""
FILE_SECONDS = 60.0
"""How long a file waits for it; then it fails, like one on a disk that is gone."""

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
        error_cb=on_error,
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


async def retry(
    work: Callable[[], Awaitable[T]],
    for_seconds: float | None = None,
    *,
    per_try: float | None = TRY_SECONDS,
    unless: type[Exception] | tuple[()] = (),
    on_failure: Callable[[Exception], object] = lambda _error: None,
) -> T:
    """Await `work()`, again where the server does not answer or cannot do it now.

    `for_seconds`: how long it is tried, PATIENCE_SECONDS where it is not said; `per_try`: how long one try may take.
    `unless`: an answer of the server, which is raised at once. `on_failure`: called before each further try.

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
        except (*AWAY, ConnectionError) as error:
            if deadline.is_over():
                why = str(error).removeprefix("nats: ") or type(error).__name__
                raise ServerAway(f"NATS does not serve ({why}); start the server, or look into its log") from error
            on_failure(error)
        await asyncio.sleep(backoff.pause())


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
