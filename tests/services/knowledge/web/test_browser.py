"""Rendered pages, where there is a Chromium to render them."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from services.knowledge.web.contents import Extraction
from services.knowledge.web_interface import FetchTimedOut, NotModified
from tests.loopback.web_server import WebServer, kept, page, redirect
from tests.services.knowledge.web.fetching import again, client, failure_of, page_of

pytest.importorskip("playwright", reason="needs the extra `browser`")

from playwright.async_api import Error as PlaywrightError
from playwright.async_api import async_playwright

from services.knowledge.web import browser as module
from services.knowledge.web.browser import BrowserFetcher
from services.storage import in_thread

pytestmark = [
    pytest.mark.slow,
    pytest.mark.real_time,
    pytest.mark.skipif(module.chromium() is None, reason="there is no Chromium here to render with"),
]

SHELL = "<html><head><title>App</title></head><body><div id=root></div><script src=/app.js></script></body></html>"
APP = """
fetch("/data.json").then(answer => answer.json()).then(data => {
    setTimeout(() => { document.getElementById("root").innerHTML = `<article><p>${data.text}</p></article>`; }, 100);
});
"""
TEXT = "The wheel turns when the water comes, and it stands still when the miller has closed the sluice."


@asynccontextmanager
async def rendering(*, timeout_seconds: float = 60) -> AsyncGenerator[BrowserFetcher]:
    """`mill.example` is the one host that may lie inside."""
    web = BrowserFetcher(
        client(private_hosts=["mill.example"]),
        Extraction(in_thread, max_bytes=100_000),
        timeout_seconds=timeout_seconds,
    )
    try:
        yield web
    finally:
        await web.aclose()


@pytest.fixture
async def server() -> AsyncIterator[WebServer]:
    async with WebServer() as server:
        server.paths |= {
            "/": page(SHELL, ETag='"shell"'),
            "/app.js": page(APP, "text/javascript"),
            "/data.json": page(f'{{"text": "{TEXT}"}}', "application/json"),
        }
        yield server


def at(server: WebServer, path: str) -> str:
    return f"http://mill.example:{server.port}{path}"


async def test_a_page_that_needs_javascript_is_rendered(server: WebServer) -> None:
    server.paths |= {"/old": redirect("/"), "/plain": page("As it is.", "text/plain"), "/kept": kept("<p>x", '"1"')}
    async with rendering() as web:
        for path in ("/", "/old"):
            rendered = await page_of(web, at(server, path))
            assert (rendered.text, rendered.title) == (TEXT, "App")
            assert again(rendered) == {"etag": None, "last_modified": None}
        assert (await page_of(web, at(server, "/plain"))).text == "As it is."
        assert await web.fetch(at(server, "/kept"), etag='"1"', last_modified=None) == NotModified('"1"', None)
        assert await failure_of(web, at(server, "/none")) == "the server answered HTTP 404"


async def test_pitfall_17_a_page_reaches_nothing_but_what_the_checked_client_fetches(server: WebServer) -> None:
    connections = 0

    async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    inside = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = inside.sockets[0].getsockname()[1]
    server.paths |= {
        "/away": redirect(f"http://127.0.0.1:{port}/redirected"),
        "/attack": page(
            f"""<html><head><link rel=preconnect href=http://127.0.0.1:{port}>
            <link rel=dns-prefetch href=//127.0.0.1:{port}><link rel=prefetch href=http://127.0.0.1:{port}/prefetch>
            <link rel=stylesheet href=http://127.0.0.1:{port}/style></head>
            <body><article><p id=it>{TEXT}</p></article><img src=http://127.0.0.1:{port}/image>
            <iframe src=http://127.0.0.1:{port}/frame></iframe><iframe src=/away></iframe>
            <script src=http://127.0.0.1:{port}/script></script><script>
            const target = "http://127.0.0.1:{port}";
            fetch(target, {{mode: "no-cors"}}).catch(() => 0);
            fetch("/away").catch(() => 0);
            fetch("/posted", {{method: "POST", body: "x"}}).catch(() => 0);
            navigator.sendBeacon(target, "x");
            try {{ new WebSocket("ws://127.0.0.1:{port}/"); }} catch (e) {{}}
            try {{ new EventSource(target); }} catch (e) {{}}
            try {{
                const peer = new RTCPeerConnection({{iceServers: [{{urls: "stun:127.0.0.1:{port}"}}]}});
                peer.createDataChannel("x");
                peer.createOffer().then(offer => peer.setLocalDescription(offer));
            }} catch (e) {{}}
            try {{
                new Worker(URL.createObjectURL(new Blob([`fetch("${{target}}"); importScripts("${{target}}")`])));
            }} catch (e) {{}}
            navigator.serviceWorker?.register("/worker.js").catch(() => 0);
            window.open(target + "/opened");
            setTimeout(() => {{ document.getElementById("it").textContent += " It ran."; }}, 200);
            </script></body></html>"""
        ),
    }
    async with rendering() as web:
        assert (await page_of(web, at(server, "/attack"))).text == f"{TEXT} It ran."
    inside.close()
    assert connections == 0
    assert {path for path, _ in server.seen} <= {"/attack", "/away"}


async def test_pitfall_17_the_browser_has_no_network_even_where_nothing_is_intercepted(server: WebServer) -> None:
    async with async_playwright() as playwright:
        browser = await module.launch(playwright)
        tab = await browser.new_page()
        for host in ("127.0.0.1", "localhost", "mill.example"):
            with pytest.raises(PlaywrightError, match="ERR_"):
                await tab.goto(f"http://{host}:{server.port}/")
        await browser.close()
    assert server.seen == []


async def test_a_page_that_misbehaves_is_an_error_and_spoils_no_other(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One browser for all of them."""
    monkeypatch.setattr(module, "MAX_REQUESTS", 3)
    leaving = f"<html><body><article><p>{TEXT}</p></article><script>location = {{}}</script>"
    asking = "for (let i = 0; i < 9; i++) fetch('/x' + i);"
    server.paths |= {
        "/busy": page("<html><body><p>x<script>while (true) {}</script></body></html>"),
        "/asking": page(f"<html><body><article><p>{TEXT}</p></article><script>{asking}</script>"),
        "/empty": page("<html><body><div id=root></div><script>throw new Error('no')</script></body></html>"),
        "/inside": page(leaving.format("'http://169.254.169.254/'")),
        "/missing": page(leaving.format("'/none'")),
        "/broken": page(leaving.format("'chrome://version/'")),
        "/elsewhere": page(leaving.format("'/'")),
    }
    async with rendering(timeout_seconds=8) as web:
        with pytest.raises(FetchTimedOut, match="not rendered within 8 s"):
            await page_of(web, at(server, "/busy"))
        server.seen.clear()
        assert (await page_of(web, at(server, "/asking"))).text == TEXT
        assert len(server.seen) == 4
        assert await failure_of(web, at(server, "/empty")) == "there is no text in it"
        for path in ("/inside", "/missing", "/broken", "/elsewhere"):
            assert (await page_of(web, at(server, path))).text == TEXT


async def test_without_a_chromium_that_starts_the_error_says_what_to_do(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(_: str) -> str:
        return "/nowhere/chromium"

    monkeypatch.setattr(shutil, "which", nowhere)
    async with rendering() as web:
        assert "no Chromium can be started; install Chromium" in await failure_of(web, at(server, "/"))
