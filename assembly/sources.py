"""The table of kinds of sources (`KINDS`), and the web access that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from assembly import Unusable
from clock import Processes
from services.knowledge import (
    AnyKind,
    FetchStatus,
    PathFilter,
    RefreshSchedule,
    Repositories,
    Sites,
    TextFiles,
    WebFetchers,
    WebPages,
)
from services.telemetry import number_of
from settings import KnowledgeSettings

_REASONS = 4
"""So many are named of why files are left out."""


@dataclass(frozen=True, slots=True)
class SourceSetup:
    """Arguments of a kind of source: settings, web access (None: sources are only read), a callback for each download,
    and whether a person waits for the update.
    """

    kb: KnowledgeSettings
    web: WebFetchers | None = None
    on_result: Callable[[FetchStatus], object] | None = None
    by_hand: bool = False

    @property
    def schedule(self) -> RefreshSchedule:
        kb = self.kb
        fresh = kb.url_refresh_min_interval_hours * 3600
        return RefreshSchedule(fresh, kb.runtime_refresh_tick_seconds, by_hand=self.by_hand)


def files(setup: SourceSetup) -> AnyKind:
    kb = setup.kb
    return TextFiles(kb.sources_dir, max_bytes=kb.max_source_bytes, choice=PathFilter(kb.include, kb.exclude))


def documents_in(kb: KnowledgeSettings) -> tuple[int, str]:
    """Count the documents in the folder and describe them, with what an update leaves out. Reads no file. Raises
    CannotList.
    """
    listing = files(SourceSetup(kb)).list_sources({}, 0)
    return len(listing.due), f"{number_of(len(listing.due), 'document')}{left_out_of(listing.left_out)}"


def left_out_of(left_out: Mapping[str, str]) -> str:
    """Say how many files were left out and the most frequent reasons; empty where none was."""
    return f", {len(left_out)} left out ({most_frequent(Counter(left_out.values()))})" if left_out else ""


def most_frequent(reasons: Counter[str]) -> str:
    """The most frequent reasons, each with how often it holds."""
    often = reasons.most_common()
    named = "; ".join(f"{count}: {reason}" for reason, count in often[:_REASONS])
    return f"{named}; {sum(count for _, count in often[_REASONS:])} for other reasons" if often[_REASONS:] else named


def repositories(setup: SourceSetup) -> AnyKind:
    kb = setup.kb
    return Repositories(
        kb.links_file_path,
        kb.web_fetch_cache_dir,
        max_bytes=kb.max_source_bytes,
        choice=PathFilter(kb.include, kb.exclude),
        web=None if setup.web is None else setup.web.repositories,
        most_files=kb.max_pages_per_site,
        at_once=kb.url_download_concurrency,
        schedule=setup.schedule,
    )


def pages(setup: SourceSetup) -> AnyKind:
    kb = setup.kb
    sites = Sites(
        kb.web_fetch_cache_dir / "sites",
        web=None if setup.web is None else setup.web.sites,
        most_pages=kb.max_pages_per_site,
        concurrency=kb.url_download_concurrency,
        schedule=setup.schedule,
    )
    return WebPages(
        kb.links_file_path,
        kb.web_fetch_cache_dir,
        max_bytes=kb.max_source_bytes,
        sites=sites,
        web=None if setup.web is None else setup.web.pages,
        concurrency=kb.url_download_concurrency,
        schedule=setup.schedule,
        on_result=setup.on_result,
    )


KINDS = [files, repositories, pages]
"""Makes each kind of source, in the order of the index. A new kind is registered here."""


def source_kinds(setup: SourceSetup) -> tuple[AnyKind, ...]:
    return tuple(make(setup) for make in KINDS)


@asynccontextmanager
async def web_for(kb: KnowledgeSettings) -> AsyncGenerator[WebFetchers]:
    """Open web access as `kb` sets it, until the end of the block. Raises Unusable: the extra for the renderer is
    missing.
    """
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
        await web.pages.aclose()
        await processes.close()
