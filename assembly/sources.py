"""The table of the kinds of sources, and the fetcher that they share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from assembly import Unusable
from clock import Processes
from services.knowledge import AnyKind, Choice, FetchStatus, TextFiles, Web, WebPages
from settings import KnowledgeSettings


@dataclass(frozen=True, slots=True)
class SourceSetup:
    """`web`: None where sources are only read; `on_result`: is given the result of each download; `by_hand`: somebody
    waits for an update.
    """

    kb: KnowledgeSettings
    web: Web | None = None
    on_result: Callable[[FetchStatus], object] | None = None
    by_hand: bool = False


def files(setup: SourceSetup) -> AnyKind:
    kb = setup.kb
    return TextFiles(kb.sources_dir, max_bytes=kb.max_source_bytes, choice=Choice(kb.include, kb.exclude))


def pages(setup: SourceSetup) -> AnyKind:
    kb = setup.kb
    return WebPages(
        kb.links_file_path,
        kb.web_fetch_cache_dir,
        max_bytes=kb.max_source_bytes,
        web=setup.web,
        concurrency=kb.url_download_concurrency,
        fresh_seconds=kb.url_refresh_min_interval_hours * 3600,
        again_seconds=kb.runtime_refresh_tick_seconds,
        on_result=setup.on_result,
        by_hand=setup.by_hand,
    )


KINDS = [files, pages]
"""Makes each kind of source, in the order of the index. A new kind is registered here."""


def source_kinds(setup: SourceSetup) -> tuple[AnyKind, ...]:
    return tuple(make(setup) for make in KINDS)


@asynccontextmanager
async def web_for(kb: KnowledgeSettings) -> AsyncGenerator[Web]:
    """The fetcher that `kb` asks for, closed at the end of the block. Raises Unusable: its extra is not installed."""
    # Only now: extraction brings a good deal along that no other command needs.
    from services.knowledge.web import RendererMissing, open_web  # noqa: PLC0415

    processes = Processes(seconds=kb.web_fetch_timeout_seconds)
    try:
        web = open_web(
            processes.run,
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
        await processes.close()
