"""Serves the Model Context Protocol over HTTP; every request needs the token."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Collection, Generator
from typing import Any, cast

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from yarl import URL

from assembly import Unusable
from dashboard import LOOPBACK, AccessControl
from model.permissions import OWNER
from services.telemetry import BACKLOG, Connections, limit_log_lines, most_connections
from settings import McpSettings

PATH = "/mcp"
MAX_REQUEST_BYTES = 256 * 1024
"""The limit of a request: arguments are short."""
MAX_CONNECTIONS = 64
SHUTDOWN_SECONDS = 5
"""The time for requests that are being answered when the server is stopped."""
MCP_LOGGERS = (
    "mcp.server._streamable_http_modern",
    "mcp.server.lowlevel.server",
    "mcp.server.runner",
    "mcp.server.streamable_http",
    "mcp.server.streamable_http_manager",
    "mcp.server.transport_security",
    "mcp.shared.jsonrpc_dispatcher",
)
_BEARER = "bearer "


class TokenGuard:
    """Passes requests with the right token on. An address that guesses tokens has to wait longer each time."""

    def __init__(self, app: ASGIApp, visitors: AccessControl, connections: Connections, hosts: Collection[str]) -> None:
        """`hosts`: the names of this server, which requests may use with a port."""
        self._app = app
        self._visitors = visitors
        self._connections = connections
        self._hosts = {each.lower() for each in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refused = self._refusal(scope)
            if refused is not None:
                refused.headers["Connection"] = "close"  # else the rest of the request is read, which may never end
                await refused(scope, receive, send)
                return
            # The library compares names letter by letter.
            headers = [(name, value.lower() if name == b"host" else value) for name, value in scope["headers"]]
            scope = {**scope, "headers": headers}
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self._is_own_host(hosts[0].lower()):
            return PlainTextResponse("This is not the name of this server: see mcp.names.\n", 421)
        given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
        address = str(scope["client"][0]) if scope.get("client") else ""
        ask = {"WWW-Authenticate": "Bearer"}
        if len(given) != 1 or not given[0].lower().startswith(_BEARER):
            return PlainTextResponse("Send the token of mcp.token: Authorization: Bearer …\n", 401, ask)
        wait = self._visitors.seconds_to_wait(address)
        if self._visitors.find_operator(given[0][len(_BEARER) :].strip(), address) is None:
            if wait > 0:
                slower = {"Retry-After": f"{wait:.0f}"}
                return PlainTextResponse("Too many wrong tokens: try again later.\n", 429, slower)
            return PlainTextResponse("This is not the token.\n", 401, ask)
        self._connections.on_login(scope.get("client"))
        if scope["method"] != "POST":
            # A stream that waits for messages of the server would wait for ever, as the server sends none.
            return PlainTextResponse("Only POST is answered here.\n", 405, {"Allow": "POST"})
        return None

    def _is_own_host(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        return host in self._hosts or (name in self._hosts and port.isdecimal())


class QuietServer(uvicorn.Server):
    """A uvicorn server that leaves signals to this program."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def guarded_app(server: Server[Any], chosen: McpSettings, connections: Connections) -> ASGIApp:
    """Make the application, which takes requests only by the names of this machine and of the settings."""
    names = dict.fromkeys((*LOOPBACK, *map(str.lower, (chosen.host, *chosen.names))))
    known = [f"[{name}]" if ":" in name else name for name in names]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[each for name in known for each in (name, f"{name}:*")],
        allowed_origins=[f"{way}://{name}{port}" for name in known for way in ("http", "https") for port in ("", ":*")],
    )
    access = AccessControl({chosen.token.get_secret_value(): OWNER}, frozenset(), time.monotonic)
    # No session outlives its request, so a restart loses none.
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_REQUEST_BYTES,
        transport_security=security,
    )
    return TokenGuard(app, access, connections, known)


def address_of(host: str, port: int) -> str:
    return str(URL.build(scheme="http", host=host, port=port, path=PATH))


def listen(host: str, port: int) -> socket.socket:
    """Open the listener. Raises Unusable: the address cannot be listened on."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        # A resolver's errors have negative numbers, and other texts.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise Unusable(
            f"mcp.port: cannot listen on {host}:{port} ({reason}); choose another mcp.port or mcp.host"
        ) from None


async def serve_http(
    server: Server[Any], chosen: McpSettings, listener: socket.socket, stopped: asyncio.Future[None]
) -> None:
    """Serve until `stopped` is done."""
    connections = Connections("mcp.port", most=min(MAX_CONNECTIONS, most_connections()))
    # The loggers of the library report each request whose client went away. A filter works for its own logger alone.
    limit_log_lines("uvicorn.error", "asyncio", *MCP_LOGGERS)
    config = uvicorn.Config(
        guarded_app(server, chosen, connections),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # anybody may write the headers about clients behind a proxy
        backlog=BACKLOG,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        lifespan="on",
        ws="none",  # it would take over connections, which were no longer counted
    )
    config.load()
    config.http_protocol_class = cast("type[asyncio.Protocol]", connections.limit(config.http_protocol_class))
    http = QuietServer(config)
    serving = asyncio.create_task(http.serve(sockets=[listener]))
    await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
    http.should_exit = True
    await serving
    connections.close()
