"""Web pages over plain HTTP: `kb.web_fetch_renderer: http`."""

from __future__ import annotations

from collections.abc import Mapping

from services.knowledge.pages import Fetched, FetchFailed, NotModified, Page
from services.knowledge.web.client import CheckedClient
from services.knowledge.web.exchange import PAGES, Answer
from services.knowledge.web.extraction import Extraction

NOT_MODIFIED = 304
_LONGEST_VALIDATOR = 1024
"""Characters. A server that wants more to be kept for it does without."""


class WebFetcher:
    """`Web`: asks once, conditionally, and reads the text out of what comes."""

    def __init__(self, client: CheckedClient, extraction: Extraction) -> None:
        self._client = client
        self._extraction = extraction

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> Fetched:
        answer = await self._client.get(url, conditions(etag, last_modified))
        if answer.status == NOT_MODIFIED and (etag or last_modified):
            return NotModified(*validators(answer.headers))
        page = checked_page(answer)
        text = await self._extraction.text(page.body, content_type(page))
        return Page(text.text, text.title, *validators(page.headers))

    async def aclose(self) -> None:
        self._extraction.close()


def conditions(etag: str | None, last_modified: str | None) -> dict[str, str]:
    """The headers that ask for a page only if it has changed. What no header can hold is left out."""
    headers = {"If-None-Match": etag, "If-Modified-Since": last_modified}
    return {name: value for name, value in headers.items() if value and _keeps(value)}


def validators(headers: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The ETag and the time of the last change, as far as an answer gives them."""
    etag, last_modified = headers.get("ETag"), headers.get("Last-Modified")
    return (etag if etag and _keeps(etag) else None, last_modified if last_modified and _keeps(last_modified) else None)


def checked_page(answer: Answer) -> Answer:
    """`answer`, if it brings a page.

    Raises:
        FetchFailed: it brings none; the message has the status.
    """
    if answer.status not in PAGES:
        raise FetchFailed(f"the server answered HTTP {answer.status}")
    return answer


def content_type(answer: Answer) -> str:
    return answer.headers.get("Content-Type", "")


def _keeps(value: str) -> bool:
    return len(value) <= _LONGEST_VALIDATOR and value.isascii() and value.isprintable()
