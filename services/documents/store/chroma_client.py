"""Chroma's own HTTP client (extra `chroma`), with the time limits that it has no setting for."""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp

import clock

PROBE_SECONDS = 5.0
MISSING = "needs the extra `chroma`: make extra-chroma"

REQUEST_SECONDS = 10.0
"""For each request. Without a limit, each request to a server that hangs would block a thread for ever."""


def connected(address: str, seconds: float) -> Any:
    """A client of the server at `address` (`http://host:port`). Blocking.

    Raises what the client, sockets and `http.client` raise if there is no server, or it does not answer.
    """
    chromadb = cast("Any", importlib.import_module("chromadb"))
    config = cast("Any", importlib.import_module("chromadb.config"))
    parts = urlsplit(address)
    host, port, safe = parts.hostname or "127.0.0.1", parts.port or 8000, parts.scheme == "https"
    _wait_for_heartbeat(host, port, seconds, safe=safe)
    client = chromadb.HttpClient(host=host, port=port, ssl=safe, settings=config.Settings(anonymized_telemetry=False))
    for session in _sessions(client):
        session.timeout = seconds
    return client


def disconnect(client: Any) -> None:
    """Its own `close` leaves the sockets open."""
    client.close()
    for session in _sessions(client):
        session.close()


def _wait_for_heartbeat(host: str, port: int, seconds: float, *, safe: bool) -> None:
    """The client asks for several things as soon as it is made, before its time limit can be set."""
    kind = http.client.HTTPSConnection if safe else http.client.HTTPConnection
    connection = kind(host, port, timeout=seconds)
    try:
        connection.request("GET", "/api/v2/heartbeat")
        connection.getresponse().read()
    finally:
        connection.close()


def _sessions(client: Any) -> list[Any]:
    """The only way to its time limits and its sockets; a second client in it only looks after its database."""
    return [each._server._session for each in (client, client._admin_client)]  # noqa: SLF001 (as above)


async def chroma_unreachable_because(address: str, *, timeout_seconds: float = PROBE_SECONDS) -> str | None:
    """Ask for its heartbeat, for `--check`. None: it is there; else what is wrong, and what to do."""
    if importlib.util.find_spec("chromadb") is None:
        return MISSING
    try:
        status = await clock.real_time(lambda: _status(f"{address.rstrip('/')}/api/v2/heartbeat", timeout_seconds))
    except TimeoutError:
        return f"did not answer within {timeout_seconds:g} s"
    except (aiohttp.ClientError, ValueError):
        return "cannot be reached; check documents.store and that the server runs"
    return None if status == 200 else f"is no Chroma server (HTTP {status}); check documents.store"  # noqa: PLR2004 (OK)


async def _status(address: str, timeout_seconds: float) -> int:
    async with asyncio.timeout(timeout_seconds), aiohttp.ClientSession() as session, session.get(address) as response:
        return response.status
