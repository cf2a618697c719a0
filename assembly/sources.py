"""Makes the kinds of sources from the settings, the web access that they share, and a temporary index of them."""

from __future__ import annotations

import logging
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path, PurePath

from assembly import Unusable
from clock import HOUR, Processes
from model.source_ids import document_id
from services.knowledge import (
    AnyKind,
    CannotList,
    FetchStatus,
    IndexEntry,
    PathFilter,
    Record,
    RefreshSchedule,
    SourceSetup,
    TextFiles,
    WebFetchers,
    cache,
    index_file,
    kinds,
)
from services.storage import OutsideFolder, files
from services.telemetry import number_of
from settings import KnowledgeSettings, Settings

log = logging.getLogger(__name__)

_MAX_NAMED = 4
"""At most this many reasons for leaving files out, and endings of documents, are named."""


def source_kinds(
    kb: KnowledgeSettings,
    web: WebFetchers | None = None,
    on_result: Callable[[FetchStatus], object] | None = None,
    *,
    by_hand: bool = False,
) -> tuple[AnyKind, ...]:
    """Make the kinds of sources from `kb`. `web`: None if sources are only read; `on_result`: called with the result of
    each download; `by_hand`: a person waits for the update.
    """
    fresh, again = kb.url_refresh_min_interval_hours * HOUR, kb.runtime_refresh_tick_seconds
    setup = SourceSetup(
        sources_dir=kb.sources_dir,
        source_folders=kb.source_folders,
        links_file=kb.links_file_path,
        cache_dir=kb.web_fetch_cache_dir,
        max_bytes=kb.max_source_bytes,
        path_filter=PathFilter(kb.include, kb.exclude),
        most_sources=kb.max_pages_per_site,
        most_fetches=kb.url_download_concurrency,
        schedule=RefreshSchedule(fresh, again, is_manual=by_hand),
        web=web,
        on_result=on_result,
    )
    return tuple(kind(setup) for kind in kinds.KINDS)


def read_records(kb: KnowledgeSettings, kinds: Sequence[AnyKind]) -> Mapping[str, Record]:
    """Read the records of sources by id, without namespace; none if there is no cache. Blocking."""
    try:
        data = kb.index_cache_path.read_bytes()
    except FileNotFoundError:
        return {}
    return cache.parse(data, [kind.record for kind in kinds], str(kb.index_cache_path))


def documents_in(kb: KnowledgeSettings) -> tuple[int, str]:
    """Count the documents in the folder, and describe them with what an update leaves out. Raises CannotList."""
    listing = next(kind for kind in source_kinds(kb) if isinstance(kind, TextFiles)).list_sources({}, 0)
    endings = Counter(PurePath(name).suffix.lower() or "without an ending" for name in listing.due).most_common()
    kinds = f" ({', '.join(f'{count} {ending}' for ending, count in endings[:_MAX_NAMED])})" if endings[1:] else ""
    return len(listing.due), f"{number_of(len(listing.due), 'document')}{kinds}{left_out_of(listing.left_out)}"


def left_out_of(left_out: Mapping[str, str]) -> str:
    """Say how many files were left out and the most frequent reasons; empty if none was."""
    return f", {len(left_out)} left out ({most_frequent(Counter(left_out.values()))})" if left_out else ""


def most_frequent(reasons: Counter[str]) -> str:
    """Name the most frequent reasons, each with its count."""
    often = reasons.most_common()
    named = "; ".join(f"{count}: {reason}" for reason, count in often[:_MAX_NAMED])
    return (
        f"{named}; {sum(count for _, count in often[_MAX_NAMED:])} for other reasons" if often[_MAX_NAMED:] else named
    )


@asynccontextmanager
async def web_for(kb: KnowledgeSettings) -> AsyncGenerator[WebFetchers]:
    """Open web access as `kb` sets it, until the end of the block. Raises Unusable: the renderer is not installed."""
    # Imported late: extraction has many dependencies that no other command needs.
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


@contextmanager
def temporary_index(settings: Settings) -> Generator[Settings]:
    """Return the settings, with a path to a temporary index if there is no index yet and no model is configured (so
    descriptions cost nothing). It is removed at the end of the block. No configured path is written. Blocking.
    """
    with ExitStack() as stack:
        indexed = settings.servers.map(lambda each: stack.enter_context(_temporary_index(each)))
        yield indexed.default.with_servers(indexed.own) if indexed.own else indexed.default


@contextmanager
def _temporary_index(settings: Settings) -> Generator[Settings]:
    kb = settings.kb
    if kb.index_path.exists() or kb.llm is not None or settings.ai_response.llm is not None:
        yield settings
        return
    entries = list(_entries(kb))
    if not entries:
        yield settings
        return
    with tempfile.TemporaryDirectory(prefix="millrace-index-") as folder:
        path = Path(folder) / kb.index_path.name
        files.replace(path, index_file.render(entries).encode())
        log.warning("%s is not there: a makeshift index, which finds less, is used; --init-kb builds it", kb.index_path)
        yield settings.model_copy(update={"kb": kb.model_copy(update={"index_path": path})})


def _entries(kb: KnowledgeSettings) -> Iterator[IndexEntry]:
    """Describe every source whose text is on disk."""
    from services.assistant.extractive import describe  # noqa: PLC0415 (needed only where there is no index)

    for kind in source_kinds(kb):
        with suppress(CannotList):
            listing = kind.list_sources({}, 0)
            for source_id in sorted({*listing.unchanged, *listing.due}):
                with suppress(OutsideFolder, OSError):
                    found = kind.read(source_id)
                    if not found.flaw:
                        yield IndexEntry(document_id(source_id), describe(source_id, found.text))
