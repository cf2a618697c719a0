"""Requests that no browser sends (H7, H8): each has a plain answer, and no traceback is in the log."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import logging
import zlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from dashboard import serving
from services.telemetry.connections import Connections
from services.telemetry.exporter import serve_metrics
from tests.dashboard.made import Box, served

TOKEN = "a token of sixteen"
FORM = "Content-Type: application/x-www-form-urlencoded"
BODIES = (
    ("Content-Type: multipart/form-data", b"x"),
    ("Content-Type: multipart/form-data; boundary=", b"x"),
    ("Content-Type: multipart/form-data; boundary=a", b"--a\r\nnothing\r\n"),
    ("Content-Type: multipart/form-data; boundary=" + "b" * 100, b"--a--"),
    ("Content-Type: text/plain", b"token=x"),
    ("Content-Type: application/json", b"{}"),
    ("Content-Type: ;;;", b"token=x"),
    ("Content-Type: application/x-www-form-urlencoded; charset=nonesuch", b"token=x"),
    ("Content-Type: application/x-www-form-urlencoded; charset=utf-16", b"tok"),
    ("Content-Type: application/x-www-form-urlencoded; charset=idna", b"token=\xff..x"),
    ("Content-Type: application/x-www-form-urlencoded; charset=zlib", b"token=x"),
    (f"{FORM}; charset=punycode", b"token=" + b"x" * 5_000),
    (f"{FORM};x=" + "(" * 7_000, b"token=x"),
    (FORM + ";" * 7_000, b"token=x"),
    (FORM, b"\xff\xfe=\xff"),
    (FORM, b"&" * 50_000),
    (FORM, b"token=" + b"x" * 200_000),
    (f"{FORM}\r\nContent-Encoding: gzip", b"no gzip"),
    (f"{FORM}\r\nContent-Encoding: br", b"no brotli"),
    (f"{FORM}\r\nOrigin: http://[", b"token=x"),
    (f"{FORM}\r\nOrigin: null", b"token=x"),
    (f"{FORM}\r\nCookie: millrace=\xff; =; a=b; \x01", b"token=x"),
    (f"{FORM}\r\nAuthorization: Bearer \xff", b"token=x"),
)
UNPARSABLE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET http://xn--" + b"a" * 8_000 + b"/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET //[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /answers?before=x&before=1e400&before=%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /answers/%ed%a0%80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /knowledge?q=" + b"%00" * 500 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: a:b:c\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: \x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 5_000 + b"\r\n",
    b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
)


@asynccontextmanager
async def listening(box: Box) -> AsyncGenerator[int]:
    async with serve_metrics("127.0.0.1", 0, lambda: None, lambda: b"", add_pages=box.add_to) as port:
        yield port


async def answer(port: int, sent: bytes) -> bytes:
    """The first line; empty: the connection was closed without any."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        writer.write_eof()
        return await reader.readline()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def post(head: str, body: bytes) -> bytes:
    lines = f"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{head}\r\n\r\n"
    return lines.encode("latin-1") + body


@pytest.mark.real_time
@pytest.mark.parametrize("token", [TOKEN, ""], ids=["with a token", "without"])
async def test_each_has_a_plain_answer(token: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with listening(Box(token=token)) as port:
        for sent in (*(post(head, body) for head, body in BODIES), *UNPARSABLE):
            said = await answer(port, sent)
            assert not said or said.split()[1] in b"200 303 400 401 403 404 411 413 421".split(), (sent[:200], said)
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/healthz") as response:
            assert await response.text() == "ok\n"
    gc.collect()  # asyncio tells of what ended tasks when they are deleted
    assert not [record for record in caplog.records if record.exc_info or "\n" in record.getMessage()]
    assert len(caplog.records) < 30


@pytest.mark.real_time
async def test_nothing_that_is_sent_is_decompressed() -> None:
    """A few bytes become megabytes, in which the loop does nothing else."""
    form = f"token={TOKEN}".replace(" ", "+").encode()

    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    def add_pages(application: web.Application) -> None:
        Box(token=TOKEN).add_to(application)
        application.router.add_post("/-/echo", echo)

    async with (
        serve_metrics("127.0.0.1", 0, lambda: None, bytes, add_pages=add_pages) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        for encoding, body in (("gzip", gzip.compress(form)), ("deflate", zlib.compress(form))):
            headers = {"Content-Type": "application/x-www-form-urlencoded", "Content-Encoding": encoding}
            async with client.post("/login", data=body, headers=headers) as response:
                assert response.status == 400
            async with client.post("/-/echo", data=body, headers=headers) as response:
                assert await response.read() == body


@pytest.mark.real_time
async def test_a_form_in_chunks_is_refused_before_it_comes() -> None:
    """Each byte may be a chunk: 64 kB take a hundred times as much memory and time."""
    head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    async with listening(Box(token=TOKEN)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + FORM.encode() + b"\r\n\r\n" + b"1\r\na\r\n" * 20)
        async with asyncio.timeout(5):
            assert b" 411 " in await reader.readline()
            await reader.read()  # to its end, which comes though the form does not
        writer.close()


@pytest.mark.real_time
async def test_nobody_reads_on_in_a_request_that_is_answered() -> None:
    async with listening(Box(token=TOKEN)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        async with asyncio.timeout(5):
            await reader.read()  # to its end, which comes though the body does not
        writer.close()


@pytest.mark.real_time
async def test_a_stream_of_events_ends_with_its_session() -> None:
    """H8."""
    box = Box(token=TOKEN)
    async with served(box) as client:
        async with client.post("/login", data={"token": TOKEN}) as response:
            assert response.status == 200
            page = await response.text()
        key = page.partition('name="key" value="')[2].partition('"')[0]
        async with client.get("/events") as stream:
            assert stream.status == 200
            assert (await stream.content.readuntil(b"\n\n")).startswith(b"data: ")
            async with client.post("/logout", data={"key": key}) as response:
                assert response.status == 200
            async with asyncio.timeout(5):
                while await stream.content.readany():
                    pass
        async with client.get("/events") as refused:
            assert refused.status == 401


@pytest.mark.real_time
async def test_only_paths_are_parsed_of_where_one_wants_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a server in 64 kB takes half a minute, in which nobody is answered."""
    parsed, server = list[str](), f"//{'水' * 2_000}"

    def parse(url: str) -> URL:
        parsed.append(url)
        return URL(url)

    monkeypatch.setattr(serving, "URL", parse)
    async with served(Box(token=TOKEN)) as client:
        async with client.get("/login", params={"to": server[:500]}) as response:
            assert response.status == 200
        for to in (server, "/gaps"):
            async with client.post("/login", data={"token": "a guess", "to": to}) as response:
                assert response.status == 401
    assert parsed == ["/gaps"]


@pytest.mark.real_time
async def test_forms_that_never_come_hold_the_port_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a token everybody has a session, so that it says nothing of who asks."""

    def few(name: str, pace: float) -> Connections:
        return Connections(name, 3, 0.5, pace)

    monkeypatch.setattr("services.telemetry.exporter.Connections", few)
    box = Box()
    page = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    form = b"POST /logout HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    async with serve_metrics("127.0.0.1", 0, lambda: None, bytes, add_pages=box.add_to) as port:
        held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(page)
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 ")
            writer.write(form + b"Content-Length: 1000\r\n\r\n")
            held.append((reader, writer))
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/healthz") as response:
            assert response.status == 200
        async with asyncio.timeout(5):
            for reader, writer in held:
                with contextlib.suppress(ConnectionError):
                    await reader.read()  # to its end
                writer.close()
