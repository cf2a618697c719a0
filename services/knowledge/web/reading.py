"""Reads what is no page: asks through the checked client, and parses the answers in processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urljoin

from clock import Run
from services.knowledge.page_lists import pause_in
from services.knowledge.web.client import CheckedClient, ask, validators
from services.knowledge.web.contents import decode, parsed
from services.knowledge.web.exchange import PAGES
from services.knowledge.web_interface import FetchFailed, NotModified, V, unchanged

MOST_ROBOTS_BYTES = 512 * 1024
"""RFC 9309 asks for 500 KiB at least."""
_NONE_FROM, _NONE_TO = 400, 500
"""Statuses that mean: there is no robots.txt, so nothing is forbidden (RFC 9309, 2.3.1.3)."""
_TOO_MANY = 429


class CheckedReader:
    """A `WebReader` over the checked client. `run`: runs the parsers in other processes."""

    def __init__(self, client: CheckedClient, run: Run) -> None:
        self._client, self._run = client, run

    async def read(self, url: str, known: V | None, parse: Callable[[bytes, str], V], max_bytes: int) -> V:
        etag, last_modified = (None, None) if known is None else (known.etag, known.last_modified)
        answer = await ask(self._client, url, etag, last_modified, max_bytes=max_bytes)
        if isinstance(answer, NotModified):
            return unchanged(known, answer)
        found = await parsed(self._run, "it", parse, answer.body, str(answer.url))
        etag, last_modified = validators(answer.headers)
        return replace(found, etag=etag, last_modified=last_modified)

    async def robots(self, url: str) -> tuple[str, float]:
        answer = await self._client.get(urljoin(url, "/robots.txt"), max_bytes=MOST_ROBOTS_BYTES)
        if _NONE_FROM <= answer.status < _NONE_TO and answer.status != _TOO_MANY:
            return "", 0.0
        if answer.status not in PAGES:
            raise FetchFailed(f"HTTP {answer.status}")
        text = decode(answer.body, None)
        return text, await parsed(self._run, "it", pause_in, text)

    def pause(self, url: str, seconds: float) -> None:
        self._client.pause(url, seconds)
