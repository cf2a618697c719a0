"""One look at one server: whether it can be used, and why not, in words that tell an operator where to look."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from nats.aio.client import Client
from nats.errors import Error, NoServersError, SecureConnWantedError

from services.telemetry import why_unreached
from transport.address import Address
from transport.errors import ServersUnusable

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
                error_cb=told,
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
        return why_unreached(error)
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
