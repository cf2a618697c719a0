"""Who fetches web pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from assembly.errors import Unusable
from services.knowledge import Web
from settings import KnowledgeSettings


@asynccontextmanager
async def web_for(kb: KnowledgeSettings) -> AsyncGenerator[Web]:
    """The fetcher that `kb` asks for, closed at the end of the block.

    Raises:
        Unusable: its extra is not installed.
    """
    # Only now: extraction brings a good deal along that no other command needs.
    from services.knowledge.web import RendererMissing, open_web  # noqa: PLC0415

    try:
        web = open_web(
            renderer=kb.web_fetch_renderer,
            timeout_seconds=kb.web_fetch_timeout_seconds,
            max_bytes=kb.max_source_bytes,
            requests_per_second=kb.url_requests_per_second,
            private_hosts=kb.web_fetch_private_hosts,
        )
    except RendererMissing as error:
        raise Unusable(str(error)) from None
    try:
        yield web
    finally:
        await web.aclose()
