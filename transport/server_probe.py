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
    """What was found at one server.

    Attributes:
        version: of the server; empty: it could not be asked.
        trouble: why it cannot be used, on a line with key and remedy.
        silent: whether the trouble is only that nobody can be asked there now.
    """

    server: str
    version: str = ""
    trouble: str | None = None
    silent: bool = False


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Attributes:
    servers: in the order of the configuration.
    streams: the names of those that are there; None: nobody could tell.
    wrong: what a start would refuse of them, on a line each with key and remedy.
    """

    servers: tuple[ProbedServer, ...]
    streams: tuple[str, ...] | None = None
    wrong: tuple[str, ...] = ()


async def look(address: Address, layout: Layout, name: str) -> ProbeResult:
    """Ask every server. Makes nothing there. Raises ServersUnusable: the credentials cannot be used."""
    _ = address.credentials
    looked = await asyncio.gather(*(_at(address, server, name) for server in address.servers))
    usable = next((each.server for each in looked if each.trouble is None), None)
    if usable is None:
        return ProbeResult(tuple(looked))
    try:
        async with _connected(address, usable, name) as (client, _):
            streams, wrong = await find_differences(client, layout)
    except ServersUnusable as error:
        return ProbeResult(tuple(looked), wrong=(str(error),))
    except AWAY_ERRORS as error:
        return ProbeResult(
            tuple(looked), wrong=(f"transport: {usable} does not serve ({_named(error)}); look into its log",)
        )
    return ProbeResult(tuple(looked), tuple(streams), tuple(map(str, wrong)))


async def _at(address: Address, server: str, name: str) -> ProbedServer:
    version = ""
    try:
        async with _connected(address, server, name) as (client, heard):
            there = client.connected_server_version
            version = f"{there.major}.{there.minor}.{there.patch}"
            await _keeps_streams(client, server, heard)
    except ServersUnusable as error:
        return ProbedServer(server, version, str(error), silent=isinstance(error, ServerUnreachable))
    return ProbedServer(server, version)


async def _keeps_streams(client: Client, server: str, heard: list[str]) -> None:
    """Raises ServersUnusable."""
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
        forbidden = next((said for said in heard if "violation" in said.lower()), None)
        if forbidden is not None:
            raise ServersUnusable(
                f"nats.credentials_env: {server} forbids what is needed ({forbidden}); docs/scaling.md lists what its "
                "user must be allowed"
            ) from None
        raise ServerUnreachable(
            f"transport: {server} does not tell whether it keeps streams ({_named(error)})"
        ) from None


def _named(error: BaseException) -> str:
    return str(error).removeprefix("nats: ") or type(error).__name__


@asynccontextmanager
async def _connected(address: Address, server: str, name: str) -> AsyncGenerator[tuple[Client, list[str]]]:
    """With what is heard of it meanwhile. Raises ServersUnusable."""
    said: list[str] = []

    async def on_error(error: Exception) -> None:
        said.append(_named(error))

    client = await probe(address, server, name, on_error)
    try:
        yield client, said
    finally:
        await close_client(client)
