"""Chroma's own HTTP client (extra `chroma`), with time limits, which it has no setting for. Blocking."""

from __future__ import annotations

import http.client
import importlib
from typing import Any, cast
from urllib.parse import urlsplit

REQUEST_SECONDS = 10.0
"""For each request. Without a limit, a server that hangs keeps one thread after another for ever."""


def connected(address: str, seconds: float) -> Any:
    """A client of the server at `address` (`http://host:port`).

    Raises whatever the client, sockets and `http.client` raise where there is no server, or it does not answer.
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
