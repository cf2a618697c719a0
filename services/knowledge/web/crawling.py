"""Fetches lists of pages and robots.txt over HTTP."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urljoin

from clock import Run, WorkStopped
from services.knowledge.links_file import SiteLine
from services.knowledge.web.client import CheckedClient, ask, validators
from services.knowledge.web.contents import decode
from services.knowledge.web.exchange import PAGES
from services.knowledge.web.page_lists import MOST_BYTES, pause_in, read_list
from services.knowledge.web_answers import FetchFailed, NotModified, PageList

MOST_ROBOTS_BYTES = 512 * 1024
"""RFC 9309 asks for 500 KiB at least."""
_NONE_FROM, _NONE_TO = 400, 500
"""Statuses that mean: there is no robots.txt, so nothing is forbidden (RFC 9309, 2.3.1.3)."""
_TOO_MANY = 429


class PageListFetcher:
    """A `SiteWeb` over the checked client. `run`: runs the parsers in other processes."""

    def __init__(self, client: CheckedClient, run: Run) -> None:
        self._client, self._run = client, run

    async def page_list(self, line: SiteLine, url: str, known: PageList | None, robots: str, most: int) -> PageList:
        etag, last_modified = (None, None) if known is None else (known.etag, known.last_modified)
        answer = await ask(self._client, url, etag, last_modified, max_bytes=MOST_BYTES)
        if isinstance(answer, NotModified):
            if known is None:
                raise FetchFailed("the server says that nothing has changed, although no earlier version was named")
            return replace(
                known,
                etag=answer.etag or known.etag,
                last_modified=answer.last_modified or known.last_modified,
            )
        try:
            listed = await self._run(read_list, answer.body, str(answer.url), line, robots, most)
        except WorkStopped as error:
            raise FetchFailed(f"it cannot be read: {error}") from None
        etag, last_modified = validators(answer.headers)
        return replace(listed, etag=etag, last_modified=last_modified)

    async def robots(self, url: str) -> tuple[str, float]:
        answer = await self._client.get(urljoin(url, "/robots.txt"), max_bytes=MOST_ROBOTS_BYTES)
        if _NONE_FROM <= answer.status < _NONE_TO and answer.status != _TOO_MANY:
            return "", 0.0
        if answer.status not in PAGES:
            raise FetchFailed(f"HTTP {answer.status}")
        text = decode(answer.body, None)
        try:
            return text, await self._run(pause_in, text)
        except WorkStopped as error:
            raise FetchFailed(f"it cannot be read: {error}") from None

    def pause(self, url: str, seconds: float) -> None:
        self._client.pause(url, seconds)
