"""The web as the settings want it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol

from services.knowledge.pages import Web
from services.knowledge.web.client import CheckedClient
from services.knowledge.web.extraction import Extraction
from services.knowledge.web.fetcher import WebFetcher


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
