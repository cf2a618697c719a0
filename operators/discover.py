"""Which sources there are, and which of them have something to do: discovery, and reconciliation with the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any
from urllib.parse import urlsplit

from clock import from_rfc3339, now, rfc3339
from services.knowledge import (
    Discovered,
    DuePage,
    How,
    Ledger,
    LeftOut,
    Links,
    Listing,
    Pending,
    Purged,
    Record,
    Settled,
    SourcePaths,
    Suspect,
    Trouble,
    Unfit,
    UpdateEvent,
    drop_page,
    list_files,
    page_name,
    page_names,
    read_links,
)
from services.storage import in_thread

KEPT_SECONDS = 24 * 3600.0
"""How long a source that is gone is remembered, so that an empty mount costs no descriptions."""


def discover(
    ledger: Ledger, places: SourcePaths, key: str
) -> Callable[[object], Coroutine[Any, Any, list[UpdateEvent]]]:
    """Look at everything once. `key` names the prompt and model that descriptions are to come from.

    The first event is `Discovered`; troubles come next, then what is to be done, in a fixed order. Files and pages are
    looked at apart: where one kind cannot be looked at, nothing of that kind changes, and the other goes on.

    Raises:
        OSError: the cache file is there and cannot be read.
    """

    async def discovered(_trigger: object) -> list[UpdateEvent]:
        if not ledger.loaded:
            await ledger.load()
        # Nothing else touches the ledger until this has ended: one update at a time, and this is its first step.
        return await in_thread(_look, ledger, places, key, now())

    return discovered


def _look(ledger: Ledger, places: SourcePaths, key: str, at: float) -> list[UpdateEvent]:
    listing = list_files(places.sources_dir, places.max_source_bytes)
    links, trouble = links_of(ledger, places)
    events: list[UpdateEvent] = [*_folder_troubles(listing, places)]
    if trouble is not None:
        events.append(trouble)
    events += files_to_do(listing, ledger.records, ledger.unfit, key, at)
    if links is not None:
        pages = page_names(places.web_cache_dir)
        events += [LeftOut(where, reason) for where, reason in links.left_out.items()]
        for event in pages_to_do(links.urls, ledger.records, pages, key, at):
            if isinstance(event, Purged):
                with suppress(OSError):
                    drop_page(places.web_cache_dir, event.source_id)
            events.append(event)
    count = Counter(type(event) for event in events)
    pages_listed = 0 if links is None else len(links.urls)
    return [Discovered(len(listing.files), pages_listed, count[Suspect], count[DuePage], count[Pending]), *events]


def _folder_troubles(listing: Listing, places: SourcePaths) -> Iterator[Trouble]:
    for name, reason in listing.unreadable.items():
        where = str(places.sources_dir / name) if name else str(places.sources_dir)
        remedy = "nothing below it changes until it can be read"
        yield Trouble(where, "discover", f"{reason}; {remedy}", fatal=not name)


def links_of(ledger: Ledger, places: SourcePaths) -> tuple[Links | None, Trouble | None]:
    where = str(places.links_file)
    try:
        links = read_links(places.links_file)
    except OSError as error:
        return None, Trouble(where, "discover", f"{error.strerror}; web pages stay as they are", fatal=True)
    if links is not None:
        return links, None
    if any(record.url is not None for record in ledger.records.values()):
        remedy = "web pages stay as they are; to have none, leave an empty file"
        return None, Trouble(where, "discover", f"there is no such file any more; {remedy}", fatal=True)
    return Links((), {}), None


def files_to_do(
    listing: Listing, records: Mapping[str, Record], unfit: Mapping[str, Unfit], key: str, at: float
) -> Iterator[UpdateEvent]:
    """What a listing means for the files in `records`."""
    left_out = dict(listing.left_out)
    for name, (size, mtime) in listing.files.items():
        record = records.get(name)
        file = None if record is None else record.file
        if record is not None and file is not None and file.mtime_ns == mtime and file.size_bytes == size:
            if record.summary_pending or record.gone_at or record.summary_key != key or not record.summary_text:
                yield from _unless_done(record, key)
        elif (known := unfit.get(name)) is not None and (known.size_bytes, known.mtime_ns) == (size, mtime):
            left_out[name] = known.reason
        else:
            yield Suspect(name, size, mtime)
    for name, reason in left_out.items():
        yield LeftOut(name, reason)
    for name, record in records.items():
        if name in listing.files and name not in left_out:
            continue
        if record.file is not None and not listing.unsure(name):
            yield from gone(record, at)


def pages_to_do(
    urls: Collection[str], records: Mapping[str, Record], pages: Collection[str], key: str, at: float
) -> Iterator[UpdateEvent]:
    """What a list of links means for the web pages in `records`; `pages` are the names of the cached ones."""
    due: list[DuePage] = []
    for url in urls:
        record = records.get(url)
        if record is None or record.url is None:
            due.append(DuePage(url, None, conditional=False))
            continue
        kept = bool(record.content_hash) and page_name(url) in pages
        lost = bool(record.content_hash) and not kept and record.url.fetch_status in {"success", "not_modified"}
        if lost or from_rfc3339(record.url.next_check_at) <= at:
            due.append(DuePage(url, record, conditional=kept))
        elif kept or record.described:
            yield from _unless_done(record, key)
        elif record.gone_at is not None:
            yield Settled(replace(record, gone_at=None), How.SAME)
    yield from host_by_host(due)
    listed = frozenset(urls)
    for name, record in records.items():
        if record.url is not None and name not in listed:
            yield from gone(record, at)


def _unless_done(record: Record, key: str) -> Iterator[UpdateEvent]:
    """What an unchanged source needs: nothing, a description, or to be welcomed back."""
    if not record.described or record.summary_key != key:
        yield Pending(replace(record, summary_pending=True, gone_at=None))
    elif record.gone_at is not None:
        yield Settled(replace(record, gone_at=None), How.SAME)


def gone(record: Record, at: float) -> Iterator[UpdateEvent]:
    """A source that is not there: remembered at first, forgotten in the end."""
    if record.gone_at is None:
        yield Settled(replace(record, gone_at=rfc3339(at)), How.GONE)
    elif at - from_rfc3339(record.gone_at) >= KEPT_SECONDS:
        yield Purged(record.source_id)


def host_by_host(due: Iterable[DuePage]) -> Iterator[DuePage]:
    """One page of each host, then the second of each: whoever waits for a slow host's turn holds up others less."""
    hosts: dict[str, list[DuePage]] = {}
    for each in due:
        hosts.setdefault(host_of(each.url), []).append(each)
    return (each for each in chain.from_iterable(zip_longest(*hosts.values())) if each is not None)


def host_of(url: str) -> str:
    """Whom a page is asked of: name and port, in lower case."""
    return urlsplit(url).netloc.lower()


@dataclass(frozen=True, slots=True)
class Few:
    """Some events that go on together; between two of these, the event loop has its turn."""

    events: tuple[UpdateEvent, ...]


def few_at_once(events: Sequence[UpdateEvent], size: int = 64) -> Iterator[Few]:
    """Cut a long list, which would otherwise hold up the loop while each event runs through the whole graph."""
    return (Few(tuple(events[at : at + size])) for at in range(0, len(events), size))
