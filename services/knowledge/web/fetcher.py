"""Opens the fetchers of a run, and fetches web pages over plain HTTP."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from clock import Run
from services.knowledge.web.client import CheckedClient, ask, content_type, validators
from services.knowledge.web.contents import Extraction
from services.knowledge.web.git_http import GitFetcher
from services.knowledge.web.reading import CheckedReader
from services.knowledge.web_interface import Fetched, NotModified, Page, Web, WebFetchers


class RendererMissing(Exception):
    """`kb.web_fetch_renderer` asks for what is not installed; the message says what to do."""


def open_web(
    run: Run,
    *,
    renderer: Literal["http", "browser"],
    timeout_seconds: float,
    max_bytes: int,
    requests_per_second: float,
    private_hosts: Collection[str],
) -> WebFetchers:
    """Return the fetchers of a run. Nothing is dialled or started yet; close `pages` at the end.

    `run`: where text is read out of what was fetched. The other arguments are those of `kb`: `web_fetch_renderer`,
    `web_fetch_timeout_seconds`, `max_source_bytes`, `url_requests_per_second` and `web_fetch_private_hosts`.

    Raises:
        RendererMissing: the browser is wanted, and its extra is not installed.
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
    """`Web`: asks once, conditionally, and reads the text out of the answer."""

    def __init__(self, client: CheckedClient, extraction: Extraction) -> None:
        self._client = client
        self._extraction = extraction

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> Fetched:
        page = await ask(self._client, url, etag, last_modified)
        if isinstance(page, NotModified):
            return page
        text = await self._extraction.text(page.body, content_type(page))
        return Page(text.text, text.title, *validators(page.headers))

    async def aclose(self) -> None:
        """There is nothing to close: each fetch has a connection of its own."""
