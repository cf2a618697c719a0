"""What listens is bounded: each test has its own listener on loopback (H2, H3)."""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from services.telemetry import connections as listening
from services.telemetry.connections import (
    READ_BYTES,
    Connections,
    LogLineLimit,
    most_connections,
    raise_descriptor_limit,
)

pytestmark = pytest.mark.real_time


class Echo(asyncio.Protocol):
    """Answers each line; `!` lets its sender in."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        peer = self._transport.get_extra_info("peername")
        if data.startswith(b"!"):
            self._connections.on_login(peer)
        elif data:
            self._connections.on_request_read(peer)
        self._transport.write(data)


class Caller:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.address: object = writer.get_extra_info("sockname")

    async def says(self, text: bytes) -> bytes:
        """What is answered; empty: the connection is closed."""
        try:
            self._writer.write(text + b"\n")
            return await self._reader.readline()
        except ConnectionError:
            return b""

    async def is_cut(self) -> bool:
        try:
            return await self._reader.read(1) == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def listener(connections: Connections) -> AsyncGenerator[tuple[AsyncExitStack, int]]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connections.limit(lambda: Echo(connections)), "127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        yield stack, server.sockets[0].getsockname()[1]
    server.close()
    connections.close()


async def caller(stack: AsyncExitStack, port: int) -> Caller:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stack.callback(writer.close)
    return Caller(reader, writer)


async def test_the_oldest_stranger_makes_room_and_who_was_let_in_stays(caplog: pytest.LogCaptureFixture) -> None:
    connections = Connections("a.port", most=3, first_seconds=0.2)
    async with listener(connections) as (stack, port):
        known = await caller(stack, port)
        assert await known.says(b"!in") == b"!in\n"
        first, second, third = [await caller(stack, port) for _ in range(3)]
        assert await first.is_cut()
        assert [await each.says(b"hello") for each in (second, third, known)] == [b"hello\n"] * 3
        await asyncio.sleep(0.3)  # past the deadline of the first
    assert [record for record in caplog.records if record.exc_info] == []
    assert "a.port: 1 connections within a minute were closed: there are at most 3" in caplog.text


class Line(asyncio.Transport):
    """A connection from somewhere."""

    cut = False

    def __init__(self, host: str, port: int) -> None:
        super().__init__({"peername": (host, port)})

    def abort(self) -> None:
        self.cut = True


async def test_whoever_takes_most_places_makes_room_for_others_first() -> None:
    connections = Connections("a.port", most=3)
    early, *flood = lines = [Line("192.0.2.1", 1), *(Line("192.0.2.66", port) for port in range(5))]
    lines.append(late := Line("192.0.2.1", 2))
    assert {connections.enter(line) for line in lines} == {True}
    assert [line.cut for line in (early, *flood, late)] == [False, True, True, True, True, False, False]
    connections.close()
    for line in lines:
        connections.leave(line)


async def test_where_all_were_let_in_nobody_else_is() -> None:
    async with listener(connections := Connections("a.port", most=1)) as (stack, port):
        known = await caller(stack, port)
        assert await known.says(b"!in") == b"!in\n"
        assert await (await caller(stack, port)).is_cut()
        assert await known.says(b"still") == b"still\n"
        assert connections.most == 1


async def test_who_asks_nothing_in_time_is_cut_and_who_did_is_not() -> None:
    async with listener(Connections("a.port", most=3, first_seconds=0.2)) as (stack, port):
        silent, asking = await caller(stack, port), await caller(stack, port)
        assert await asking.says(b"hello") == b"hello\n"
        assert await silent.is_cut()
        assert await asking.says(b"again") == b"again\n"


async def test_a_deadline_is_as_long_as_the_clock_is_fast() -> None:
    """A replay runs faster than a real clock: whoever connects gets as much real time as ever."""
    slow, fast = Connections("a.port", first_seconds=0.01), Connections("a.port", first_seconds=0.01, pace=10_000)
    lines = [Line("192.0.2.1", 1), Line("192.0.2.1", 2)]
    assert slow.enter(lines[0])
    assert fast.enter(lines[1])
    await asyncio.sleep(0.1)
    assert [line.cut for line in lines] == [True, False]
    fast.leave(lines[1])
    slow.close()


async def test_a_request_whose_body_does_not_come_is_cut() -> None:
    async with listener(connections := Connections("a.port", most=3, first_seconds=0.2)) as (stack, port):
        slow, done = await caller(stack, port), await caller(stack, port)
        assert [await each.says(b"hello") for each in (slow, done)] == [b"hello\n"] * 2
        for each in (slow, done):
            connections.on_request(each.address)
        connections.on_request_read(done.address)
        assert await slow.is_cut()
        assert await done.says(b"again") == b"again\n"


async def test_a_request_that_takes_long_to_be_read_is_cut_unless_its_sender_was_let_in() -> None:
    """As one in chunks of a byte does."""

    class Slow(Echo):
        def data_received(self, data: bytes) -> None:
            assert len(data) <= READ_BYTES
            until = time.thread_time() + (0.01 if b"x" in data else 0)
            while time.thread_time() < until:
                pass
            super().data_received(data[-4:] if data.endswith(b"\n") else b"")

    connections = Connections("a.port")
    server = await asyncio.get_running_loop().create_server(
        connections.limit(lambda: Slow(connections)), "127.0.0.1", 0
    )
    async with AsyncExitStack() as stack:
        port = server.sockets[0].getsockname()[1]
        known, brief, long = [await caller(stack, port) for _ in range(3)]
        assert await known.says(b"!in")
        assert await known.says(b"x" * 20 * READ_BYTES)
        for _ in range(10):
            assert await brief.says(b"x")
        assert not await long.says(b"x" * 20 * READ_BYTES)
    server.close()
    connections.close()


async def test_an_address_that_comes_again_before_its_end_was_told_has_one_deadline(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As where a server hands a connection on to another protocol."""

    class Transport(asyncio.Transport):
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    connections = Connections("a.port", first_seconds=0.05)
    first, second = (Transport({"peername": ("127.0.0.1", 5)}) for _ in range(2))
    assert connections.enter(first)
    assert connections.enter(second)
    await asyncio.sleep(0.2)
    assert (first.aborted, second.aborted) == (False, True)
    assert [record for record in caplog.records if record.exc_info] == []
    connections.close()


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the system says, last; and what it is told."""
    said: list[tuple[int, int]] = []

    def get(_what: int) -> tuple[int, int]:
        return said[-1]

    def put(_what: int, limits: tuple[int, int]) -> None:
        said.append(limits)

    monkeypatch.setattr(resource, "getrlimit", get)
    monkeypatch.setattr(resource, "setrlimit", put)
    return said


@pytest.mark.parametrize(("soft", "most"), [(1024, 256), (256, 32), (64, 1), (resource.RLIM_INFINITY, 256)])
def test_a_listener_leaves_descriptors_for_the_bot(soft: int, most: int, limits: list[tuple[int, int]]) -> None:
    limits.append((soft, soft))
    assert most_connections() == most


@pytest.mark.parametrize(
    ("there", "after"),
    [
        ((256, 4096), (4096, 4096)),
        ((4096, 4096), (4096, 4096)),
        ((1024, resource.RLIM_INFINITY), (65_536, resource.RLIM_INFINITY)),
    ],
)
def test_the_limit_is_raised_as_far_as_the_system_allows(
    there: tuple[int, int], after: tuple[int, int], limits: list[tuple[int, int]]
) -> None:
    limits.append(there)
    raise_descriptor_limit()
    assert limits[-1] == after


def test_a_flood_is_a_few_lines_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    at = [0.0]
    logger = logging.getLogger("of.a.library")
    few = LogLineLimit(lambda: at[0])
    logger.addFilter(few)
    try:
        for _ in range(100):
            logger.error("too many")
        assert len(caplog.records) == listening.LINES_A_MINUTE
        at[0] = 61.0
        logger.error("and again")
        assert caplog.messages[-1] == "and again (before it, 80 lines were left out)"
    finally:
        logger.removeFilter(few)


@pytest.mark.parametrize(("error", "is_whole"), [(ConnectionResetError("gone"), False), (ValueError("of ours"), True)])
def test_a_client_that_goes_away_leaves_no_traceback(
    error: Exception, is_whole: bool, caplog: pytest.LogCaptureFixture
) -> None:
    log = logging.getLogger("tests.listening.gone")
    log.addFilter(LogLineLimit())
    log.error("Error handling request", exc_info=error)
    (record,) = caplog.records
    assert (record.exc_info is not None) == is_whole
    assert type(error).__name__ in caplog.text
