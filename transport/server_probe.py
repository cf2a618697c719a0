"""The probe of `--check`: connect to each server by itself, and compare the streams with the configuration."""

# pyright: reportUnknownMemberType=false
# nats-py leaves its keyword arguments and headers untyped.

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nats.aio.client import Client
from nats.errors import Error
from nats.js.errors import APIError, ServiceUnavailableError

from transport.address import Address, ServersUnusable
from transport.connection import AWAY_ERRORS, ServerUnreachable, close_client, probe, streams_of
from transport.streams import Layout, find_differences


@dataclass(frozen=True, slots=True)
class ProbedServer:
    """The result for one server.

    Attributes:
        version: of the server; empty: it did not answer.
        trouble: why it cannot be used, on a line with key and remedy; None: it can be used.
        silent: whether the only trouble is that it does not answer.
    """

    server: str
    version: str = ""
    trouble: str | None = None
    silent: bool = False


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result for all servers.

    Attributes:
        servers: in the order of the configuration.
        streams: the names of existing streams; None: no server could tell.
        wrong: why a start would refuse these streams, each a line with key and remedy.
    """

    servers: tuple[ProbedServer, ...]
    streams: tuple[str, ...] | None = None
    wrong: tuple[str, ...] = ()


async def probe_servers(address: Address, layout: Layout, name: str) -> ProbeResult:
    """Ask every server, without creating anything. Raises ServersUnusable: the credentials cannot be used."""
    _ = address.credentials
    probed = await asyncio.gather(*(_probe_server(address, server, name) for server in address.servers))
    usable = next((each.server for each in probed if each.trouble is None), None)
    if usable is None:
        return ProbeResult(tuple(probed))
    try:
        async with _connect(address, usable, name) as (client, _):
            streams, wrong = await find_differences(client, layout)
    except ServersUnusable as error:
        return ProbeResult(tuple(probed), wrong=(str(error),))
    except AWAY_ERRORS as error:
        return ProbeResult(
            tuple(probed), wrong=(f"transport: {usable} does not serve ({_describe(error)}); look into its log",)
        )
    return ProbeResult(tuple(probed), tuple(streams), tuple(map(str, wrong)))


async def _probe_server(address: Address, server: str, name: str) -> ProbedServer:
    version = ""
    try:
        async with _connect(address, server, name) as (client, errors):
            there = client.connected_server_version
            version = f"{there.major}.{there.minor}.{there.patch}"
            await _require_streams(client, server, errors)
    except ServersUnusable as error:
        return ProbedServer(server, version, str(error), silent=isinstance(error, ServerUnreachable))
    return ProbedServer(server, version)


async def _require_streams(client: Client, server: str, errors: list[str]) -> None:
    """Raises ServersUnusable: the server has no JetStream for this user."""
    try:
        await streams_of(client).account_info()
    except ServiceUnavailableError as error:
        why = f" ({error.description})" if error.description else ""
        raise ServersUnusable(
            f"transport: {server} keeps no streams{why}: start it with JetStream (jetstream {{ store_dir: … }}); a "
            "cluster does so once most of its servers are there"
        ) from None
    except APIError as error:
        raise ServersUnusable(f"transport: {server} keeps no streams for this account ({error.description})") from None
    except (Error, TimeoutError) as error:
        forbidden = next((each for each in errors if "violation" in each.lower()), None)
        if forbidden is not None:
            raise ServersUnusable(
                f"nats.credentials_env: {server} forbids what is needed ({forbidden}); docs/scaling.md lists what its "
                "user must be allowed"
            ) from None
        raise ServerUnreachable(
            f"transport: {server} does not tell whether it keeps streams ({_describe(error)})"
        ) from None


def _describe(error: BaseException) -> str:
    return str(error).removeprefix("nats: ") or type(error).__name__


@asynccontextmanager
async def _connect(address: Address, server: str, name: str) -> AsyncGenerator[tuple[Client, list[str]]]:
    """Connect to the server. Yields the client, and a list to which later errors are added. Raises ServersUnusable."""
    errors: list[str] = []

    async def on_error(error: Exception) -> None:
        errors.append(_describe(error))

    client = await probe(address, server, name, on_error)
    try:
        yield client, errors
    finally:
        await close_client(client)
