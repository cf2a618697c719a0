"""Who fetches web pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from services.web import Fetched, FetchFailed, Web
from settings import KnowledgeSettings


class Offline:
    """Fetches nothing. Implements `services.web.Web`."""

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> Fetched:
        _ = url, etag, last_modified
        raise FetchFailed("web pages cannot be fetched by this build")


@asynccontextmanager
async def web_for(kb: KnowledgeSettings) -> AsyncGenerator[Web]:
    """The fetcher that `kb` asks for, closed at the end of the block."""
    _ = kb
    yield Offline()
