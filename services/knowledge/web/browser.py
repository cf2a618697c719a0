"""Renders pages that need JavaScript, in a browser without a network: `kb.web_fetch_renderer: browser`.

Needs the extra `browser` and an installed Chromium. This module answers every request of a page, through the client
that checks addresses and sizes. The browser itself is offline, in case a request gets past (pitfall 17).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncGenerator

from playwright.async_api import Browser, BrowserContext, Playwright, Route, WebSocketRoute, async_playwright
from playwright.async_api import Error as PlaywrightError

from services.knowledge.web.client import CheckedClient, ask, check_status, content_type, validators
from services.knowledge.web.contents import HTML, Extraction, media_type
from services.knowledge.web.exchange import Answer
from services.knowledge.web_interface import FetchFailed, FetchResult, FetchTimedOut, NotModified, Page, WebError

MAX_REQUESTS = 100
"""The number of requests that one page may make after its own."""
QUIET_SECONDS = 0.5
"""A page is ready after so many seconds without a request."""

_FETCHED_TYPES = frozenset({"document", "script", "xhr", "fetch"})
"""The types of requests that can change the text of a page. Pictures, styles, fonts and films are not fetched."""
_OFFLINE_FLAGS = (
    # Names resolve to nothing, and requests to addresses go to a proxy that is not there, loopback included.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-bypass-list=<-loopback>",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--dns-prefetch-disable",
    "--no-pings",
)
_NOWHERE = "http://127.0.0.1:1"
_WITHOUT_SOCKETS = """
for (const name of ["WebTransport", "WebSocketStream", "RTCPeerConnection", "webkitRTCPeerConnection"])
    delete globalThis[name];
"""
_NO_CONTENT = 204
"""With this status, a browser stays on its page instead of showing an error."""
_CLOSING_SECONDS = 3
"""The seconds that a page may take to close; one whose script never pauses does not close at all."""
_CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserFetcher:
    """A `Web` for an ordinary loop: fetches as `WebFetcher`, and renders HTML.

    `timeout_seconds` bounds the rendering of one page. Chromium is started for the first page that needs it. The text
    of a page may change while its HTML does not, so a rendered page has no validators: it is rendered anew each time.
    """

    def __init__(self, client: CheckedClient, extraction: Extraction, *, timeout_seconds: float = 30) -> None:
        self._client = client
        self._extraction = extraction
        self._timeout = timeout_seconds
        self._starting = asyncio.Lock()
        self._closing = contextlib.AsyncExitStack()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> FetchResult:
        page = await ask(self._client, url, etag, last_modified)
        if isinstance(page, NotModified):
            return page
        if media_type(content_type(page), page.body) not in HTML:
            text = await self._extraction.text(page.body, content_type(page))
            return Page(text.text, text.title, *validators(page.headers))
        try:
            async with asyncio.timeout(self._timeout):
                html = await self._render(page)
        except TimeoutError:
            raise FetchTimedOut(f"it was not rendered within {self._timeout:g} s") from None
        except PlaywrightError as error:
            # Its message quotes the page.
            raise FetchFailed(f"it could not be rendered ({type(error).__name__})") from error
        return await self._extraction.text(html.encode(errors="replace"), "text/html; charset=utf-8")

    async def aclose(self) -> None:
        if self._browser is not None:
            await self._browser.close()
        await self._closing.aclose()

    async def _render(self, page: Answer) -> str:
        browser = await self._start_browser()
        async with _context(browser) as context:
            requests = _Requests(self._client, page)
            await context.route("**/*", requests.answer)
            await context.route_web_socket("**/*", _refuse)
            await context.add_init_script(_WITHOUT_SOCKETS)
            tab = await context.new_page()
            await tab.goto(str(page.url), wait_until="commit", timeout=0)
            await requests.wait_until_quiet()
            html = await tab.content()
            if tab.url.startswith("chrome"):
                raise FetchFailed("it leads to where nothing is fetched")  # the browser shows its own error page
            return html

    async def _start_browser(self) -> Browser:
        async with self._starting:
            if self._playwright is None:
                self._playwright = await self._closing.enter_async_context(async_playwright())
            if self._browser is None or not self._browser.is_connected():
                self._browser = await launch(self._playwright)
            return self._browser


class _Requests:
    """Answers the requests of one page, the first of which is the page itself."""

    def __init__(self, client: CheckedClient, page: Answer) -> None:
        self._client = client
        self._page: Answer | None = page
        self._count = 0
        self._under_way = 0
        self._last = asyncio.get_running_loop().time()

    async def answer(self, route: Route) -> None:
        self._under_way += 1
        try:
            await self._answer(route)
        except WebError:
            await _deny(route)
        except PlaywrightError:
            return  # the page is closed
        finally:
            self._under_way -= 1
            self._last = asyncio.get_running_loop().time()

    async def wait_until_quiet(self) -> None:
        """Wait until the page has made no request for `QUIET_SECONDS`, counted from now."""
        loop = asyncio.get_running_loop()
        self._last = loop.time()
        while self._under_way or loop.time() < self._last + QUIET_SECONDS:  # noqa: ASYNC110 (silence is no event)
            await asyncio.sleep(QUIET_SECONDS / 10)

    async def _answer(self, route: Route) -> None:
        request = route.request
        if self._page is not None and request.is_navigation_request():
            answer, self._page = self._page, None
        else:
            self._count += 1
            # GET only: rendering a page must change nothing on the server.
            if request.method != "GET" or request.resource_type not in _FETCHED_TYPES or self._count > MAX_REQUESTS:
                await _deny(route)
                return
            answer = await self._client.get(request.url)
            if request.is_navigation_request():
                check_status(answer)  # the browser would show an error page of its own
        # The body is decompressed already, and cookies are not kept.
        dropped = {"content-encoding", "content-length", "transfer-encoding", "set-cookie", "connection"}
        headers = {name: value for name, value in answer.headers.items() if name.lower() not in dropped}
        await route.fulfill(status=answer.status, headers=headers, body=answer.body)


async def _deny(route: Route) -> None:
    if route.request.is_navigation_request():
        await route.fulfill(status=_NO_CONTENT)
    else:
        await route.abort()


async def _refuse(socket: WebSocketRoute) -> None:
    await socket.close()


@contextlib.asynccontextmanager
async def _context(browser: Browser) -> AsyncGenerator[BrowserContext]:
    """Open a context for one page, so that no page sees the data of another."""
    context = await browser.new_context(service_workers="block", accept_downloads=False, permissions=[])
    try:
        yield context
    finally:
        try:
            async with asyncio.timeout(_CLOSING_SECONDS):
                await context.close()
        except (TimeoutError, PlaywrightError):
            # Its other pages fail now, too; the next one starts a new browser.
            await browser.close()


def chromium() -> str | None:
    """Return the path of the system's Chromium; None if it has none."""
    return next(filter(None, map(shutil.which, _CHROMIUM_NAMES)), None)


async def launch(playwright: Playwright) -> Browser:
    """Start the system's Chromium, else Playwright's. Raises FetchFailed: there is none, or it does not start."""
    try:
        return await playwright.chromium.launch(
            executable_path=chromium(),
            args=list(_OFFLINE_FLAGS),
            proxy={"server": _NOWHERE},
            # Chromium's own sandbox refuses to work for root, the usual user in containers.
            chromium_sandbox=os.geteuid() != 0,
            handle_sigint=False,
            handle_sigterm=False,
        )
    except PlaywrightError as error:
        raise FetchFailed(
            "kb.web_fetch_renderer is `browser`, and no Chromium can be started; install Chromium, or set it to `http`"
        ) from error
