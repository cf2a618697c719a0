"""Web pages over plain HTTP, and the choice of a fetcher (`kb.web_fetch_renderer`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, Protocol

from services.knowledge.pages import Fetched, FetchFailed, NotModified, Page, Web
from services.knowledge.web.client import CheckedClient
from services.knowledge.web.contents import Extraction
from services.knowledge.web.exchange import PAGES, Answer

NOT_MODIFIED = 304
_LONGEST_VALIDATOR = 1024
"""Characters of an ETag or a time. Longer ones are not kept."""


class RendererMissing(Exception):
    """`kb.web_fetch_renderer` asks for what is not installed; the message says what to do."""


class OpenWeb(Web, Protocol):
    """One for a run, used from one loop, closed at its end."""

    async def aclose(self) -> None: ...


def open_web(
    *,
    renderer: Literal["http", "browser"],
    timeout_seconds: float,
    max_bytes: int,
    requests_per_second: float,
    private_hosts: Collection[str],
) -> OpenWeb:
    """What fetches pages. Nothing is dialled or started yet.

    The arguments are those of `kb`: `web_fetch_renderer`, `web_fetch_timeout_seconds`, `max_source_bytes`,
    `url_requests_per_second` and `web_fetch_private_hosts`.

    Raises:
        RendererMissing: the browser is wanted, and its extra is not installed.
    """
    client = CheckedClient(
        timeout_seconds=timeout_seconds,
        max_bytes=max_bytes,
        requests_per_second=requests_per_second,
        private_hosts=private_hosts,
    )
    extraction = Extraction(max_bytes=max_bytes, timeout_seconds=timeout_seconds)
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
        self._extraction.close()


async def ask(client: CheckedClient, url: str, etag: str | None, last_modified: str | None) -> Answer | NotModified:
    """Ask for a page, unless it is unchanged. A validator that no header can hold is left out.

    Raises:
        FetchFailed: there is no page; the message has the status.
        FetchTimedOut: there was none in time.
    """
    conditions = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    answer = await client.get(url, {name: value for name, value in conditions.items() if value and _keeps(value)})
    if answer.status == NOT_MODIFIED and (etag or last_modified):
        return NotModified(*validators(answer.headers))
    return checked_page(answer)


def validators(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The ETag and the time of the last change, as far as an answer gives them."""
    etag, last_modified = headers.get("ETag"), headers.get("Last-Modified")
    return (etag if etag and _keeps(etag) else None, last_modified if last_modified and _keeps(last_modified) else None)


def checked_page(answer: Answer) -> Answer:
    """`answer`, if it brings a page. Raises FetchFailed, with the status."""
    if answer.status not in PAGES:
        raise FetchFailed(f"the server answered HTTP {answer.status}")
    return answer


def content_type(answer: Answer) -> str:
    return answer.headers.get("Content-Type", "")


def _keeps(value: str) -> bool:
    return len(value) <= _LONGEST_VALIDATOR and value.isascii() and value.isprintable()
