"""Fetches over the wire, from a server on loopback, each with its result or its kind of failure."""

from __future__ import annotations

import asyncio
import gzip
import re
import shutil
import ssl
import subprocess
import tomllib
import zlib
from pathlib import Path

import pytest
from aiohttp import web
from yarl import URL

import clock
from services.knowledge.web.client import USER_AGENT, content_type, validators
from services.knowledge.web.exchange import Answer
from services.knowledge.web_interface import FetchTimedOut, NotModified, Page
from tests.loopback.web_server import Play, WebServer, drop, hang, kept, page, redirect, status, stream
from tests.services.knowledge.web.fetching import MAX_BYTES, again, client, failure_of, fetching, page_of

REPOSITORY = Path(__file__).parents[4]
HTML = "<html><head><title>The Mill</title></head><body><article><p>{}</p></article></body></html>"
WORDS = "The wheel turns with the water, and the stones turn with the wheel, as they have always done."
LONG = " ".join([WORDS] * 20)
"""So much of it that trafilatura tries nothing else."""


def packed(data: bytes) -> bytes:
    """Gzip without the time of day: what a test is called must not depend on when it was collected."""
    return gzip.compress(data, mtime=0)


def html(words: str = WORDS) -> str:
    return HTML.format(words)


async def test_a_page_is_fetched_with_its_text_title_and_validators(server: WebServer) -> None:
    server.paths["/mill"] = page(html(), ETag='"1"', Last_Modified="Wed, 21 Oct 2026 07:28:00 GMT")
    begun = clock.now()
    async with fetching() as fetcher:
        fetched = await page_of(fetcher, f"{server.origin}/mill?a=b#c")
    assert fetched == Page(WORDS, "The Mill", '"1"', "Wed, 21 Oct 2026 07:28:00 GMT")
    assert clock.now() == begun
    [(path, headers)] = server.seen
    assert path == "/mill?a=b"
    assert headers["User-Agent"] == USER_AGENT
    assert headers["Accept"].startswith("text/html,"), "a site that has several forms of it sends the page"
    assert "Cookie" not in headers
    assert not {"If-None-Match", "If-Modified-Since"} & headers.keys()


def test_the_user_agent_names_the_project_and_its_version() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert f"Millrace/{project['version']} (+https://" in USER_AGENT


async def test_two_hundred_pages_are_fetched_once_and_then_only_asked_about(server: WebServer) -> None:
    """Pitfall 36: in parallel; an unchanged page sends no body, and one that changed is fetched alone."""
    urls = [f"{server.origin}/{number}" for number in range(200)]
    for number in range(200):
        server.paths[f"/{number}"] = kept(html(f"Page {number}. {LONG}"), f'"{number}"')
    async with fetching() as fetcher:
        first = await asyncio.gather(*(page_of(fetcher, url) for url in urls))
        assert [fetched.text for fetched in first] == [f"Page {number}. {LONG}" for number in range(200)]
        server.body_bytes = 0
        second = [fetcher.fetch(url, **again(fetched)) for url, fetched in zip(urls, first, strict=True)]
        assert await asyncio.gather(*second) == [NotModified(f'"{number}"', None) for number in range(200)]
        assert server.body_bytes == 0
        server.paths["/7"] = kept(html(f"Changed. {LONG}"), '"new"')
        third = [fetcher.fetch(url, **again(fetched)) for url, fetched in zip(urls, first, strict=True)]
        changed = [fetched for fetched in await asyncio.gather(*third) if isinstance(fetched, Page)]
    assert changed == [Page(f"Changed. {LONG}", "The Mill", '"new"', None)]


async def test_a_page_is_asked_about_by_its_time_where_it_has_no_etag(server: WebServer) -> None:
    server.paths["/"] = kept(html(), None, "Wed, 21 Oct 2026 07:28:00 GMT")
    async with fetching() as fetcher:
        first = await page_of(fetcher, server.origin)
        assert await fetcher.fetch(server.origin, **again(first)) == NotModified(None, "Wed, 21 Oct 2026 07:28:00 GMT")


async def test_a_time_says_nothing_about_where_a_redirect_leads_now(server: WebServer) -> None:
    """The older of two versions was not modified since the newer one was fetched."""
    server.paths["/docs"] = redirect("/v1")
    server.paths["/v1"] = kept(html(), None, "Wed, 21 Oct 2026 07:28:00 GMT")
    async with fetching() as fetcher:
        first = await page_of(fetcher, f"{server.origin}/docs")
        assert isinstance(await fetcher.fetch(f"{server.origin}/docs", **again(first)), Page)
        server.paths["/v1"] = kept(html(), '"1"')
        first = await page_of(fetcher, f"{server.origin}/docs")
        assert await fetcher.fetch(f"{server.origin}/docs", **again(first)) == NotModified('"1"', None)


async def test_validators_that_no_header_can_hold_are_neither_kept_nor_sent(server: WebServer) -> None:
    server.paths["/"] = page(html(), ETag=f'"{"x" * 2000}"', Last_Modified="naïve")
    async with fetching() as fetcher:
        fetched = await fetcher.fetch(server.origin, etag='"a"\r\nX-Evil: 1', last_modified="\u2028")
    assert (fetched.etag, fetched.last_modified) == (None, None)
    [(_, headers)] = server.seen
    assert not {"If-None-Match", "If-Modified-Since", "X-Evil"} & headers.keys()


def test_what_an_answer_does_not_say_is_not_known() -> None:
    answer = Answer(URL("http://mill.example/"), 200, {}, b"")
    assert content_type(answer) == ""
    assert validators(answer.headers) == (None, None)


async def test_304_to_whoever_has_nothing_is_an_error(server: WebServer) -> None:
    server.paths["/"] = status(304)
    async with fetching() as fetcher:
        assert await failure_of(fetcher, server.origin) == "the server answered HTTP 304"


@pytest.mark.parametrize("code", [201, 204, 206, 300, 400, 401, 403, 404, 410, 429, 500, 503])
async def test_any_other_status_is_an_error(server: WebServer, code: int) -> None:
    server.paths["/"] = status(code)
    async with fetching() as fetcher:
        assert await failure_of(fetcher, server.origin) == f"the server answered HTTP {code}"
    assert len(server.seen) == 1


async def test_what_comes_with_an_error_is_not_read(server: WebServer) -> None:
    server.paths["/"] = status(404)
    async with fetching(client(max_bytes=3)) as fetcher:
        assert await failure_of(fetcher, server.origin) == "the server answered HTTP 404"


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(server: WebServer, code: int) -> None:
    server.paths |= {"/": redirect("a/b", code), "/a/b": redirect("../c?d#e", code), "/c": page(html())}
    async with fetching() as fetcher:
        assert (await page_of(fetcher, f"{server.origin}/")).text == WORDS
    assert [path for path, _ in server.seen] == ["/", "/a/b", "/c?d"]


async def test_five_redirects_are_followed_and_no_six(server: WebServer) -> None:
    server.paths |= {f"/{number}": redirect(f"/{number - 1}") for number in range(1, 7)}
    server.paths["/0"] = page(html())
    async with fetching() as fetcher:
        assert (await page_of(fetcher, f"{server.origin}/5")).text == WORDS
        assert await failure_of(fetcher, f"{server.origin}/6") == "it redirects more than 5 times"
    assert server.count("/0") == 1


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("/", "in a circle"),
        ("/#there", "in a circle"),
        ("/and-back", "in a circle"),
        ("", "without saying where"),
        ("http://[", "no URL"),
        ("file:///etc/passwd", "only http and https"),
        ("http://me:secret@127.0.0.1/", "user or password"),
    ],
)
async def test_a_redirect_to_nowhere_is_an_error(server: WebServer, to: str, why: str) -> None:
    server.paths |= {"/": redirect(to), "/and-back": redirect("/")}
    async with fetching() as fetcher:
        failure = await failure_of(fetcher, f"{server.origin}/")
    assert why in failure
    assert "secret" not in failure


@pytest.mark.real_time
@pytest.mark.parametrize("path", ["/hangs", "/drips"])
async def test_a_page_that_never_comes_is_timed_out_and_delays_no_other(server: WebServer, path: str) -> None:
    """Pitfall 36. A drop now and then does not buy more time."""
    server.paths |= {"/hangs": hang, "/drips": stream(b"<p>", pause=0.02, repeat=10_000), "/": page(html())}
    async with fetching(client(timeout_seconds=0.5)) as fetcher:
        slow = asyncio.ensure_future(page_of(fetcher, f"{server.origin}{path}"))
        assert (await page_of(fetcher, f"{server.origin}/")).text == WORDS
        with pytest.raises(FetchTimedOut, match=r"no whole answer within 0\.5 s"):
            await slow


@pytest.mark.real_time
async def test_the_time_is_one_for_all_redirects_together(server: WebServer) -> None:
    server.paths |= {"/0": later(redirect("/1")), "/1": later(redirect("/2")), "/2": later(page(html()))}
    async with fetching(client(timeout_seconds=0.7)) as fetcher:
        with pytest.raises(FetchTimedOut):
            await page_of(fetcher, f"{server.origin}/0")


def later(play: Play) -> Play:
    async def waiting(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.3)
        return await play(request)

    return waiting


async def test_pitfall_21_what_is_announced_as_too_large_is_not_read(server: WebServer) -> None:
    server.paths["/"] = stream(b"x" * 50_000, repeat=1000, length=50_000_000)
    async with fetching() as fetcher:
        assert await failure_of(fetcher, server.origin) == "it is larger than 100000 bytes (kb.max_source_bytes)"


async def test_pitfall_21_what_turns_out_too_large_is_not_read_to_its_end(server: WebServer) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 50_000)
            sent += 50_000

    server.paths["/"] = endless
    async with fetching() as fetcher:
        assert "larger than 100000 bytes" in await failure_of(fetcher, server.origin)
    assert sent < 50_000_000


def _zipped(data: bytes, bits: int) -> bytes:
    packer = zlib.compressobj(wbits=bits)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", packed(html().encode())),
        ("GZIP", packed(html()[:20].encode()) + packed(html()[20:].encode())),
        ("deflate", zlib.compress(html().encode())),
        ("deflate", _zipped(html().encode(), -15)),
        ("identity", html().encode()),
    ],
    ids=["gzip", "two gzip members", "deflate", "raw deflate", "identity"],
)
async def test_a_packed_body_is_unpacked(server: WebServer, encoding: str, body: bytes) -> None:
    server.paths["/"] = page(body, Content_Encoding=encoding)
    async with fetching() as fetcher:
        assert (await page_of(fetcher, server.origin)).text == WORDS


async def test_pitfall_21_a_gzip_bomb_goes_off_in_small_pieces(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred megabytes in a hundred kilobytes: nobody unpacks more than is asked for."""
    bomb = packed(bytes(99_000_000))
    assert len(bomb) < MAX_BYTES
    unpacked = 0
    real = zlib.decompressobj

    class Counting:
        def __init__(self, wbits: int) -> None:
            self._real = real(wbits)

        def decompress(self, data: bytes, max_length: int = 0) -> bytes:
            nonlocal unpacked
            piece = self._real.decompress(data, max_length)
            unpacked += len(piece)
            return piece

        def __getattr__(self, name: str) -> object:
            return getattr(self._real, name)

    monkeypatch.setattr(zlib, "decompressobj", Counting)
    server.paths["/"] = page(bomb, Content_Encoding="gzip")
    async with fetching() as fetcher:
        assert "larger than 100000 bytes" in await failure_of(fetcher, server.origin)
    assert 0 < unpacked < 2_000_000


@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("gzip", b"this is not gzip at all", "damaged"),
        ("gzip", packed(html().encode())[:15] + b"\xff" * 40, "damaged"),
        ("deflate", b"\x78\x9c\xff\xff\xff\xff", "damaged"),
        ("gzip, gzip", packed(packed(b"x")), "packed in a way that is not understood ('gzip, gzip')"),
        ("rot13", b"x", "packed in a way that is not understood ('rot13')"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_an_error(
    server: WebServer, encoding: str, body: bytes, why: str
) -> None:
    server.paths["/"] = page(body, Content_Encoding=encoding)
    async with fetching() as fetcher:
        assert why in await failure_of(fetcher, server.origin)


async def test_a_body_without_a_length_is_read_to_its_end(server: WebServer) -> None:
    data = html().encode()
    server.paths["/"] = stream(data[:30], data[30:])
    async with fetching() as fetcher:
        assert (await page_of(fetcher, server.origin)).text == WORDS


@pytest.mark.parametrize("length", [None, 5000])
async def test_a_body_that_breaks_off_is_an_error(server: WebServer, length: int | None) -> None:
    server.paths["/"] = stream(html().encode(), cut=True, length=length)
    async with fetching() as fetcher:
        assert "breaks off" in await failure_of(fetcher, server.origin)


async def test_a_connection_that_is_dropped_is_an_error(server: WebServer) -> None:
    server.paths["/"] = drop
    async with fetching() as fetcher:
        assert await failure_of(fetcher, server.origin) == "the connection was closed before it had answered"


async def test_nobody_there_is_an_error() -> None:
    async with WebServer() as server:
        origin = server.origin
    async with fetching() as fetcher:
        failure = await failure_of(fetcher, origin)
    assert failure.startswith("it cannot be reached (")
    assert "Error" not in failure, "the reason, not the name of its class"


async def _babble(data: bytes) -> tuple[asyncio.Server, int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    "data", [b"SSH-2.0-mill\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", b"\0" * 50]
)
async def test_what_is_no_http_is_an_error(data: bytes) -> None:
    server, port = await clock.run_in_real_time(lambda: _babble(data))
    async with fetching() as fetcher:
        failure = await failure_of(fetcher, f"http://127.0.0.1:{port}/")
    assert re.fullmatch(r"its answer is not understood \([A-Z][A-Za-z]+Error\)", failure)
    server.get_loop().call_soon_threadsafe(server.close)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl here to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    key, signed = folder / "key.pem", folder / "certificate.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", signed], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, key)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_an_error(certificate: ssl.SSLContext) -> None:
    async with WebServer({"/": page(html())}, tls=certificate) as server, fetching() as fetcher:
        assert "certificate is not accepted (self" in await failure_of(fetcher, server.origin)
        assert server.seen == []


async def test_https_to_a_server_that_does_not_speak_it_is_an_error(server: WebServer) -> None:
    async with fetching() as fetcher:
        failure = await failure_of(fetcher, server.origin.replace("http", "https"))
    assert failure == "no secure connection can be made to it"


async def test_a_host_is_asked_in_turns_and_each_for_itself(server: WebServer) -> None:
    """By the clock of the loop, which is virtual here."""
    server.paths |= {"/": page(html()), "/there": redirect("/")}
    used = client(requests_per_second=2, private_hosts=["127.0.0.1", "one.example", "two.example"])
    begun = clock.now()
    times: list[float] = []

    async def fetch(host: str, path: str) -> None:
        async with fetching(used) as fetcher:
            await page_of(fetcher, f"http://{host}:{server.port}{path}")
        times.append(round(clock.now() - begun, 3))

    await asyncio.gather(*(fetch("one.example", "/") for _ in range(3)), fetch("Two.example", "/"))
    assert times == [0, 0, 0.5, 1]
    await asyncio.sleep(10)
    begun = clock.now()
    await fetch("two.example.", "/there")
    assert times[-1] == 0.5  # a redirect is a request, too


@pytest.mark.real_time
async def test_time_may_be_real(server: WebServer) -> None:
    server.paths |= {"/": page(html()), "/hangs": hang}
    async with fetching(client(timeout_seconds=0.3)) as fetcher:
        with pytest.raises(FetchTimedOut):
            await page_of(fetcher, f"{server.origin}/hangs")
    async with fetching() as fetcher:
        assert (await page_of(fetcher, f"{server.origin}/")).text == WORDS


async def test_one_host_is_asked_at_its_pace_redirects_included_and_others_do_not_wait(server: WebServer) -> None:
    """Nobody else sees to it: whoever fetches pages knows nothing of where they lead."""
    server.paths |= {"/away": redirect("/mill"), "/mill": page(html())}
    begun = clock.now()
    async with fetching(client(requests_per_second=2, private_hosts=("127.0.0.1", "mill.example"))) as fetcher:
        await page_of(fetcher, f"{server.origin}/away")
        assert clock.now() - begun == pytest.approx(0.5, abs=0.01)
        await page_of(fetcher, f"{server.origin}/mill")
        assert clock.now() - begun == pytest.approx(1.0, abs=0.01)
        await page_of(fetcher, f"http://mill.example:{server.port}/mill")
        assert clock.now() - begun == pytest.approx(1.0, abs=0.01)
