"""Opens the fetchers of a run, and fetches pages, lists and robots.txt over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Literal
from urllib.parse import urljoin

from clock import WorkRunner
from services.knowledge.page_lists import crawl_pause
from services.knowledge.web.client import CheckedClient, ask, content_type, validators
from services.knowledge.web.contents import Extraction, decode, run_parser
from services.knowledge.web.exchange import PAGES
from services.knowledge.web.git_http import GitFetcher
from services.knowledge.web_interface import (
    FetchFailed,
    FetchResult,
    NotModified,
    Page,
    V,
    Web,
    WebFetchers,
    keep_known,
)


class RendererMissing(Exception):
    """The renderer of `kb.web_fetch_renderer` is not installed; the message says what to do."""


def open_web(
    run: WorkRunner,
    *,
    renderer: Literal["http", "browser"],
    timeout_seconds: float,
    max_bytes: int,
    requests_per_second: float,
    private_hosts: Collection[str],
) -> WebFetchers:
    """Return the fetchers of a run, without connecting. Close `pages` at the end.

    `run`: runs the parsers in other processes. The other arguments are those of `kb`: `web_fetch_renderer`,
    `web_fetch_timeout_seconds`, `max_source_bytes`, `url_requests_per_second` and `web_fetch_private_hosts`.

    Raises:
        RendererMissing: `renderer` is the browser, whose extra is not installed.
    """
    client = CheckedClient(
        timeout_seconds=timeout_seconds,
        max_bytes=max_bytes,
        requests_per_second=requests_per_second,
        private_hosts=private_hosts,
    )
    extraction = Extraction(run, max_bytes=max_bytes)
    pages = _pages(renderer, client, extraction, timeout_seconds)
    return WebFetchers(pages, CheckedReader(client, run), GitFetcher(client, run))


def _pages(renderer: str, client: CheckedClient, extraction: Extraction, timeout_seconds: float) -> Web:
    if renderer == "http":
        return WebFetcher(client, extraction)
    try:
        from services.knowledge.web.browser import BrowserFetcher  # noqa: PLC0415 (an extra, which need not be there)
    except ImportError:
        raise RendererMissing(
            "kb.web_fetch_renderer is `browser`, which needs the extra of that name: make extra-browser, or set it to "
            "`http`"
        ) from None
    return BrowserFetcher(client, extraction, timeout_seconds=timeout_seconds)


class WebFetcher:
    """A `Web` that requests a page once, conditionally, and extracts the text of the answer."""

    def __init__(self, client: CheckedClient, extraction: Extraction) -> None:
        self._client = client
        self._extraction = extraction

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> FetchResult:
        page = await ask(self._client, url, etag, last_modified)
        if isinstance(page, NotModified):
            return page
        text = await self._extraction.text(page.body, content_type(page))
        return Page(text.text, text.title, *validators(page.headers))

    async def aclose(self) -> None:
        """Do nothing: each fetch has a connection of its own."""


MAX_ROBOTS_BYTES = 512 * 1024
"""The size of a robots.txt; RFC 9309 demands at least 500 KiB."""
_NONE_FROM, _NONE_TO = 400, 500
"""The statuses of a host without a robots.txt, which forbids nothing (RFC 9309, 2.3.1.3)."""
_TOO_MANY = 429


class CheckedReader:
    """A `WebReader` over the checked client. `run`: runs the parsers in other processes."""

    def __init__(self, client: CheckedClient, run: WorkRunner) -> None:
        self._client, self._run = client, run

    async def read(self, url: str, known: V | None, parse: Callable[[bytes, str], V], max_bytes: int) -> V:
        etag, last_modified = (None, None) if known is None else (known.etag, known.last_modified)
        answer = await ask(self._client, url, etag, last_modified, max_bytes=max_bytes)
        if isinstance(answer, NotModified):
            return keep_known(known, answer)
        found = await run_parser(self._run, "it", parse, answer.body, str(answer.url))
        etag, last_modified = validators(answer.headers)
        return replace(found, etag=etag, last_modified=last_modified)

    async def robots(self, url: str) -> tuple[str, float]:
        answer = await self._client.get(urljoin(url, "/robots.txt"), max_bytes=MAX_ROBOTS_BYTES)
        if _NONE_FROM <= answer.status < _NONE_TO and answer.status != _TOO_MANY:
            return "", 0.0
        if answer.status not in PAGES:
            raise FetchFailed(f"HTTP {answer.status}")
        text = decode(answer.body, None)
        return text, await run_parser(self._run, "it", crawl_pause, text)

    def pause(self, url: str, seconds: float) -> None:
        self._client.pause(url, seconds)
