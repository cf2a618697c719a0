"""`--mcp http`: who is let in, and how it ends."""

from __future__ import annotations

import asyncio
import importlib
import logging
import signal
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

import aiohttp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from commands.mcp_server.http import MAX_CONNECTIONS, MCP_LOGGERS
from dashboard.access import FREE_TRIES
from services.telemetry import limit_log_lines
from services.telemetry.connections import LogLineLimit
from tests.commands.conftest import config_in
from tests.commands.mcp_server.assistant import call, data
from tests.commands.mcp_server.conftest import traces_in, with_knowledge, with_sections
from tests.commands.mcp_server.processes import ended, started, stream

TOKEN = "a-token-of-the-team-42"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPT = {"Accept": "application/json, text/event-stream"}

pytestmark = pytest.mark.real_time


@dataclass(frozen=True)
class Served:
    process: Popen[bytes]
    address: str
    config: Path

    async def answer(
        self, token: str | None = TOKEN, *, method: str = "POST", body: bytes | None = None, **headers: str
    ) -> tuple[int, str]:
        """Status and text of a bare request."""
        given = {**ACCEPT, **headers, **({} if token is None else {"Authorization": f"Bearer {token}"})}
        sent: dict[str, Any] = {"json": PING} if body is None else {"data": body}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.address, headers=given, **sent) as response,
        ):
            return response.status, await response.text()

    @asynccontextmanager
    async def client(self, token: str, mode: str = "auto") -> AsyncGenerator[Client]:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
            Client(streamable_http_client(self.address, http_client=http), mode=mode) as client,
        ):
            yield client


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """For tests that leave it as it was: it takes seconds to start."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("APP__DISCORD__TOKEN", "APP__AI_RESPONSE__LLM__API_KEY"):
            patch.delenv(name, raising=False)
        with serving(with_knowledge(config_in(tmp_path_factory.mktemp("served")))) as server:
            yield server


@pytest.fixture
def fresh(knowing: Path) -> Generator[Served]:
    """At which nobody has guessed yet."""
    with serving(knowing) as server:
        yield server


@contextmanager
def serving(config: Path) -> Generator[Served]:
    with_sections(config, mcp={"port": free_port(), "names": ["mcp.example.org"]})
    process = started(config, "http", APP__MCP__TOKEN=TOKEN)
    said = stream(process.stdout).readline().decode()
    assert said.startswith("MCP at http://127.0.0.1:"), said + stream(process.stderr).read().decode()
    yield Served(process, said.split()[2].rstrip(";"), config)
    process.send_signal(signal.SIGTERM)
    code, _, err = ended(process)
    assert (code, "Traceback" in err, TOKEN in err) == (0, False, False)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_who_brings_the_token_is_served_and_nothing_is_written(served: Served, mode: str) -> None:
    before = traces_in(served.config.parent / "data")
    async with served.client(TOKEN, mode) as client:
        assert {"search", "ask"} <= {tool.name for tool in (await client.list_tools()).tools}
        assert data(await call(client, "search", query="install Lanternfish"))["passages"]
    assert traces_in(served.config.parent / "data") == before


async def test_nobody_else_is(fresh: Served) -> None:
    assert await fresh.answer() == (200, '{"jsonrpc":"2.0","id":1,"result":{}}')
    for wrong in (None, "wrong", TOKEN[:-1], f"{TOKEN} {TOKEN}"):
        status, said = await fresh.answer(wrong)
        assert status == 401
        assert "jsonrpc" not in said
    with pytest.raises(ExceptionGroup):
        async with fresh.client("wrong") as client:
            await client.list_tools()
    assert (await fresh.answer(None, Cookie=f"token={TOKEN}"))[0] == 401


async def test_the_rest_of_a_request_that_is_refused_is_not_read(served: Served) -> None:
    """Else chunks of a byte would take the processor's time without end."""
    port = int(served.address.split(":")[2].partition("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    async with asyncio.timeout(5):
        assert b" 401 " in await reader.readline()
        await reader.read()  # to its end
    writer.close()


async def test_who_guesses_has_to_wait(fresh: Served) -> None:
    for _ in range(FREE_TRIES):
        assert (await fresh.answer("guess"))[0] == 401
    assert (await fresh.answer("guess"))[0] == 429
    assert (await fresh.answer())[0] == 200  # H6


async def test_idle_connections_lock_nobody_out(served: Served) -> None:
    """H3: those of strangers make room for who has the token."""
    port = int(served.address.split(":")[2].partition("/")[0])
    async with AsyncExitStack() as stack:
        readers: list[asyncio.StreamReader] = []
        for _ in range(MAX_CONNECTIONS + 20):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            readers.append(reader)
        for _ in range(3):
            assert (await served.answer())[0] == 200
        with suppress(ConnectionError):
            assert await asyncio.wait_for(readers[0].read(1), 30) == b"", "the oldest made room"


async def test_a_page_that_leads_here_by_another_name_gets_nothing(served: Served) -> None:
    """DNS rebinding, and pages of other origins."""
    for host in ("evil.example", "127.0.0.1:x.evil.com", "127.0.0.1.evil.com", "localhost:80:80", ""):
        assert (await served.answer(Host=host))[0] == 421
    assert (await served.answer(Origin="https://evil.example"))[0] == 403
    assert (await served.answer(Host="mcp.example.org"))[0] == 200
    assert (await served.answer(Host="mcp.example.org:8443"))[0] == 200
    assert (await served.answer(Host="MCP.Example.org:8443"))[0] == 200
    assert (await served.answer(Host="LOCALHOST:1"))[0] == 200


async def test_no_connection_becomes_a_websocket(served: Served) -> None:
    """It would be counted no more."""
    upgrade: dict[str, Any] = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key: dict[str, Any] = {"Sec-WebSocket-Key": "MDEyMzQ1Njc4OWFiY2RlZg=="}
    assert (await served.answer(None, method="GET", **upgrade, **key))[0] == 401


def test_what_the_library_logs_of_requests_is_bounded() -> None:
    limit_log_lines(*MCP_LOGGERS)
    for name in MCP_LOGGERS:
        importlib.import_module(name)
        assert any(isinstance(each, LogLineLimit) for each in logging.getLogger(name).filters)


async def test_only_short_messages_are_taken_and_no_connection_is_kept_waiting(served: Served) -> None:
    """Pitfall 64."""
    assert (await served.answer(body=b"x" * 300_000, **{"Content-Type": "application/json"}))[0] == 413
    for method in ("GET", "DELETE", "PUT"):
        assert (await served.answer(method=method))[0] == 405
    assert (await served.answer(body=b"{", **{"Content-Type": "application/json"}))[0] == 400


@pytest.mark.slow
async def test_a_second_one_says_that_the_port_is_taken(served: Served) -> None:
    code, out, err = ended(started(served.config, "http", APP__MCP__TOKEN=TOKEN))
    port = served.address.split(":")[2].partition("/")[0]
    assert (code, out) == (2, "")
    assert err == (
        f"app.py: mcp.port: cannot listen on 127.0.0.1:{port} (Address already in use); choose another mcp.port or "
        "mcp.host\n"
    )
