"""Network connections: explanations of failed ones, and limits for servers that listen on a port."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

from clock import MINUTE

# Why a server was not reached

DNS = "its name is not known (DNS): check the name, and this machine's network"
NO_TLS = "it does not speak TLS there: write http:// instead of https://, or check the port"
REFUSED = "nothing listens there (connection refused): check the port, and that the server runs"
NO_ROUTE = "there is no way there: check the address, this machine's network and its firewall"
CLOSED = "it closed the connection without an answer: check the port, https or http, and the server's log"
UNKNOWN_PROBLEM = "check the address, and that the server runs"


def connection_problem(error: Exception) -> str:
    """Return the reason for a failed connection and what to do about it. Completes "cannot be reached: "."""
    import aiohttp  # noqa: PLC0415 (a tenth of a second that most commands do not need)

    cause = getattr(error, "os_error", error)
    number = cause.errno if isinstance(cause, OSError) else None
    certificate = getattr(error, "certificate_error", error)
    if isinstance(certificate, ssl.SSLCertVerificationError):
        why = certificate.verify_message
        return f"its certificate is refused (TLS, {why}): check the name, this machine's clock and its certificates"
    for kinds, numbers, says in (
        ((aiohttp.ClientConnectorDNSError, socket.gaierror), (), DNS),
        ((aiohttp.ClientSSLError, ssl.SSLError), (), NO_TLS),
        ((), (errno.ECONNREFUSED,), REFUSED),
        ((), (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT), NO_ROUTE),
        ((aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError), (), CLOSED),
    ):
        if isinstance(error, kinds) or isinstance(cause, kinds) or number in numbers:
            return says
    return UNKNOWN_PROBLEM


# Limits for listening servers

MAX_CONNECTIONS = 256
"""The most connections to one listener."""
RESERVED_DESCRIPTORS = 256
"""Descriptors for other work of the process: Discord, models, files."""
BACKLOG = 32
"""Connections that are accepted at once, before any of them can be closed."""
FIRST_SECONDS = 10.0
"""The seconds until the first request of a connection, and for reading a request, after which it is closed."""
WANTED_DESCRIPTORS = 65_536
LOOP_SHARE = 0.2
"""The share of the event loop's time for the requests to one listener."""
LOOP_BURST_SECONDS = 0.25
"""The time that requests may take at once after a quiet time."""
REQUEST_SECONDS = 0.001
"""The time that is counted for reading a request."""
MAX_REQUEST_SECONDS = 0.1
READ_BYTES = 4_096
"""The most bytes that are read from a connection at once, as some cost a thousand times what others do."""
MAX_READING_SECONDS = 0.05
"""The processor time that a stranger's request may take until it is read. Of 64 kB in one piece it is a millisecond."""
LINES_A_MINUTE = 20
HTTP_LIBRARIES = {"aiohttp", "h11", "uvicorn"}
"""Exceptions of these libraries are about input of a client."""
UNREADABLE_REQUEST = "coro=<RequestHandler.start()"
"""In asyncio's message about a task of aiohttp that failed: it ends so on a request that it cannot read. Errors of our
handlers do not end that task, and keep their traceback.
"""

T = TypeVar("T")

log = logging.getLogger(__name__)


def raise_descriptor_limit() -> None:
    """Raise the limit of open files as far as the system allows, so that scrapers leave room for Discord."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_connections() -> int:
    """Return the most connections that leave `RESERVED_DESCRIPTORS`, or half of all, for other work."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_CONNECTIONS
    return max(1, min(MAX_CONNECTIONS, max(soft - RESERVED_DESCRIPTORS, soft // 2) // 2 - BACKLOG))


class LogLineLimit(logging.Filter):
    """A log filter that passes `LINES_A_MINUTE`, and adds the number of dropped lines to the next one. Errors of HTTP
    libraries, which are about input of a client, and lost connections are logged without their traceback.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._since = clock()
        self._count = 0

    def filter(self, record: logging.LogRecord) -> bool:
        now, left_out = self._clock(), 0
        if now - self._since >= MINUTE:
            left_out = max(0, self._count - LINES_A_MINUTE)
            self._since, self._count = now, 0
        self._count += 1
        if self._count > LINES_A_MINUTE:
            return False
        error, message = record.exc_info[1] if record.exc_info else None, record.getMessage()
        of_library = type(error).__module__.partition(".")[0] in HTTP_LIBRARIES or UNREADABLE_REQUEST in message
        if error is not None and (of_library or isinstance(error, ConnectionError)):
            record.msg, record.args = "%s: %s", (message.partition("\n")[0], type(error).__name__)
            record.exc_info = record.exc_text = None
        if left_out:
            record.msg, record.args = "%s (before it, %d lines were left out)", (record.getMessage(), left_out)
        return True


def limit_log_lines(*loggers: str) -> None:
    """Add the filter to each of these loggers, once."""
    for logger in map(logging.getLogger, loggers):
        if not any(isinstance(each, LogLineLimit) for each in logger.filters):
            logger.addFilter(LogLineLimit())


@dataclass(slots=True)
class _Timed(Awaitable[T]):
    """Awaits `work`, and adds up the processor time of its steps, in `seconds`."""

    work: Awaitable[T]
    seconds: float = 0.0

    def __await__(self) -> Generator[Any, Any, T]:
        steps = self.work.__await__()
        step = partial(steps.send, None)
        while True:
            began = time.thread_time()
            try:
                waited_for = step()
            except StopIteration as done:
                return done.value
            finally:
                self.seconds += time.thread_time() - began
            try:
                step = partial(steps.send, (yield waited_for))
            except BaseException as error:  # noqa: BLE001 (it is the work's, such as its cancellation)
                step = partial(steps.throw, error)


@dataclass(slots=True)
class LoopShare:
    """Limits requests to `LOOP_SHARE` of the event loop's time, however many arrive: `wait` delays the next one while
    earlier ones have taken more, as `counted` says. `pace`: as in `Connections`.
    """

    pace: float = 1.0
    _credit: float = field(default=LOOP_BURST_SECONDS, init=False)
    _at: float = field(default=0.0, init=False)
    _waiting: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def wait(self, is_gone: Callable[[], bool]) -> bool:
        """Wait for a turn. Returns False if `is_gone`: its client has gone. Such a request takes no time from those
        behind it.
        """
        async with self._waiting:
            self._refill()
            if self._credit < 0 and not is_gone():
                await asyncio.sleep(-self._credit / LOOP_SHARE * self.pace)
                self._refill()
            if is_gone():
                return False
            self._credit -= REQUEST_SECONDS
            return True

    async def counted(self, work: Awaitable[T]) -> T:
        """Do the work of a request, and count its processor time: not that of others while it waits for something."""
        timed = _Timed(work)
        try:
            return await timed
        finally:
            self._credit -= min(timed.seconds, MAX_REQUEST_SECONDS)

    def _refill(self) -> None:
        at = asyncio.get_running_loop().time()
        self._credit = min(LOOP_BURST_SECONDS, self._credit + (at - self._at) / self.pace * LOOP_SHARE)
        self._at = at


@dataclass(slots=True, eq=False)
class _Open:
    transport: asyncio.BaseTransport
    deadline: asyncio.TimerHandle
    authenticated: bool = False
    reading_seconds: float = 0.0
    """The processor time since the last answer."""

    def cut(self) -> None:
        self.deadline.cancel()
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()
        else:
            self.transport.close()


@dataclass(slots=True)
class Connections:
    """The open connections to one listener, of one event loop. `name`: of the listener in the log. `pace`: how many
    seconds pass on the clock of that loop in a real second: 1, or the speed of a replay.

    A connection is one of a stranger until `on_login` is called for its client. If there are `most` connections, the
    oldest one of a stranger is closed for a new one; connections of authenticated clients stay.
    """

    name: str
    most: int = field(default_factory=most_connections)
    first_seconds: float = FIRST_SECONDS
    pace: float = 1.0
    _open: dict[object, _Open] = field(default_factory=dict[object, _Open], init=False)  # by peer, oldest first
    _cut: int = field(default=0, init=False)
    _report_timer: asyncio.TimerHandle | None = field(default=None, init=False)

    def limit(self, make: Callable[..., asyncio.Protocol]) -> Callable[..., asyncio.BufferedProtocol]:
        """Wrap a factory of protocols so that the connections of its protocols are counted and limited."""
        return lambda *given, **named: _Counted(make(*given, **named), self)

    def on_request(self, peer: object) -> None:
        """Note that a request begins at a `peername` of a transport. It has a deadline until `on_request_read`."""
        key = _key(peer)
        if (known := self._open.get(key)) is not None:
            known.deadline.cancel()
            known.deadline = self._deadline(key)

    def on_request_read(self, peer: object) -> None:
        """Note that a request has been read or answered. Its answer has no deadline."""
        if (known := self._open.get(_key(peer))) is not None:
            known.deadline.cancel()
            known.reading_seconds = 0.0

    def on_read(self, transport: asyncio.BaseTransport, seconds: float) -> None:
        """Note the processor time that a piece of a request has taken. A stranger's that takes too long is cut: one in
        chunks of a byte would hold the loop up for all others.
        """
        peer = _key(transport.get_extra_info("peername"))
        if (known := self._open.get(peer)) is not None and not known.authenticated:
            known.reading_seconds += seconds
            if known.reading_seconds > MAX_READING_SECONDS:
                self._late(peer)

    def on_login(self, peer: object) -> None:
        """Note that the client at this address is authenticated: its connection is not closed for others."""
        if (known := self._open.get(_key(peer))) is not None:
            known.deadline.cancel()
            known.authenticated = True

    def enter(self, transport: asyncio.BaseTransport) -> bool:
        """Register a connection. Returns False if there is no room."""
        peer = _key(transport.get_extra_info("peername"))
        if len(self._open) >= self.most:
            stranger = self._choose_to_close()
            self._count_closed()
            if stranger is None:
                return False
            self._open.pop(stranger).cut()
        # A server that has handed a transport on may not have called `leave` for it.
        if (before := self._open.pop(peer, None)) is not None:
            before.deadline.cancel()
        self._open[peer] = _Open(transport, self._deadline(peer))
        return True

    def _choose_to_close(self) -> object | None:
        """Choose the oldest stranger of the host with most connections, so that a flood makes room for others."""
        strangers = [each for each, known in self._open.items() if not known.authenticated]
        counts = Counter(map(_host, strangers))
        return max(strangers, key=lambda each: counts[_host(each)], default=None)

    def _deadline(self, peer: object) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self.first_seconds * self.pace, self._late, peer)

    def leave(self, transport: asyncio.BaseTransport) -> None:
        peer = _key(transport.get_extra_info("peername"))
        known = self._open.get(peer)
        if known is not None and known.transport is transport:
            self._open.pop(peer).deadline.cancel()

    def close(self) -> None:
        """Log the closed connections that were not logged yet. No connection is closed."""
        if self._report_timer is not None:
            self._report_timer.cancel()
            self._log_closed()

    def _late(self, peer: object) -> None:
        if (known := self._open.pop(peer, None)) is not None:
            self._count_closed()
            known.cut()

    def _count_closed(self) -> None:
        self._cut += 1
        if self._report_timer is None:
            self._report_timer = asyncio.get_running_loop().call_later(MINUTE * self.pace, self._log_closed)

    def _log_closed(self) -> None:
        self._report_timer = None
        log.warning(
            "%s: %d connections within a minute were closed: there are at most %d, and each has %g s to ask something",
            self.name,
            self._cut,
            self.most,
            self.first_seconds,
        )
        self._cut = 0


def _key(peer: object) -> object:
    """Host and port: an address of IPv6 has more items, which servers leave out."""
    return tuple(cast("Sequence[object]", peer)[:2]) if isinstance(peer, tuple | list) else peer


class _Counted(asyncio.BufferedProtocol):
    """Passes on the events of a connection, unless it was refused for lack of room."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self._buffer = bytearray(READ_BYTES)
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self._connections.enter(transport):
            self._transport = transport
            self._inner.connection_made(transport)
        else:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._connections.leave(self._transport)
            self._inner.connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:  # noqa: ARG002 (the name is asyncio's)
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._transport is not None:
            began = time.thread_time()
            self._inner.data_received(bytes(self._buffer[:nbytes]))
            self._connections.on_read(self._transport, time.thread_time() - began)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def _host(peer: object) -> object:
    return next(iter(cast("Iterable[object]", peer)), None) if isinstance(peer, tuple) else peer
