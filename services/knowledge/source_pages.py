"""Web pages as sources: those that the links file names, and those that sitemaps and llms.txt list; when each is
fetched again, and their texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Literal
from urllib.parse import urlsplit

from clock import from_rfc3339, now, rfc3339
from services.knowledge.cache import Record, Time, hash_text
from services.knowledge.links_file import PAGES, SiteLine, listed_links, site_host
from services.knowledge.page_lists import BEYOND, MOST_BYTES, PageList, read_list
from services.knowledge.refreshed_lines import Failed, RefreshedLines
from services.knowledge.source_kinds import (
    LeftOut,
    LineResult,
    LinksLine,
    Listing,
    RefreshSchedule,
    SourceFacts,
    SourceSetup,
    Text,
    TextCache,
    Trouble,
    needed,
    note_of,
    stored_name,
)
from services.knowledge.web_interface import (
    FetchFailed,
    FetchStatus,
    FetchTimedOut,
    Page,
    Validated,
    WebError,
    unchanged,
)
from services.storage import files, in_thread

MOST_DOCUMENTS = 100
"""Sitemaps that one line may lead to."""
MOST_LEVELS = 3
"""Indexes of indexes. The protocol allows none in another; some sites have them."""
ROBOTS_SECONDS = 24 * 3600.0
"""How long a robots.txt may be kept (RFC 9309, 2.4)."""


@dataclass(slots=True)
class SiteState:
    """The stored state of a `sitemap:` or `llms:` line.

    Attributes:
        next_check_at: in seconds since 1970.
        complete: whether all of its lists have been had at least once.
        failed: whether something could not be had the last time.
        not_looked_at: how many further lists there are beyond the limits.
        documents: by address.
        seen: the `lastmod` that an index gave of each of its lists when that was had.
    """

    next_check_at: float = 0.0
    complete: bool = False
    failed: bool = False
    robots: str = ""
    pause: float = 0.0
    robots_at: float | None = None
    not_looked_at: int = 0
    documents: dict[str, PageList] = field(default_factory=dict[str, PageList])
    seen: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SitePages:
    """The pages that a line brings, in order, with their `lastmod`. `note`: for people, what was left out and why.
    `complete` and `failed` are as in `SiteState`.
    """

    pages: Mapping[str, str]
    note: str
    complete: bool
    failed: bool


class Sites:
    """The lists of pages that `sitemap:` and `llms:` lines name, with those that these lead to."""

    def __init__(self, setup: SourceSetup, step: str) -> None:
        self._reader, self._most = None if setup.web is None else setup.web.reader, setup.most
        self.lines = RefreshedLines(
            setup,
            SiteLine,
            SiteState,
            folder="sites",
            step=step,
            brings="pages",
            key=self._key,
            ask=self._asked,
            seen=self._keep_pause,
        )

    def brought(self, known: SiteState) -> SitePages:
        """Return the pages that a line brings."""
        pages: dict[str, str] = {}
        for document in known.documents.values():
            for url, lastmod in document.pages.items():
                pages.setdefault(url, lastmod)
        left_out: dict[str, int] = {}
        for document in known.documents.values():
            for reason, count in document.left_out.items():
                left_out[reason] = left_out.get(reason, 0) + count
        if len(pages) > self._most:
            left_out[BEYOND] = left_out.get(BEYOND, 0) + len(pages) - self._most
        if known.not_looked_at:
            left_out["further lists, not looked at"] = known.not_looked_at
        return SitePages(dict(list(pages.items())[: self._most]), note_of(left_out), known.complete, known.failed)

    def _keep_pause(self, line: SiteLine, known: SiteState) -> None:
        if known.pause:
            needed(self._reader).pause(line.url, known.pause)

    async def _asked(self, line: SiteLine, known: SiteState, failed: Failed) -> SiteState:
        reader = needed(self._reader)
        # What fails leaves `known` as it is: it names what was had before.
        found = SiteState(robots=known.robots, pause=known.pause, robots_at=known.robots_at, complete=True)
        if found.robots_at is None or now() - found.robots_at >= ROBOTS_SECONDS:
            try:
                found.robots, found.pause = await reader.robots(line.url)
                found.robots_at = now()
            except WebError as error:
                failed(error, "its robots.txt, which says what may be fetched")
                return known
            reader.pause(line.url, found.pause)
        same_rules = found.robots == known.robots
        waiting: list[tuple[str, str, int]] = [(line.url, "", 1)]
        asked: set[str] = set()
        count = 0
        while waiting and len(asked) < MOST_DOCUMENTS and count < self._most:
            url, lastmod, level = waiting.pop(0)
            if url in asked:
                continue
            asked.add(url)
            before = known.documents.get(url)
            try:
                if before is not None and same_rules and lastmod and known.seen.get(url) == lastmod:
                    document = before
                else:
                    parse = partial(read_list, line=line, robots=found.robots, most=self._most - count)
                    document = await reader.read(url, before if same_rules else None, parse, MOST_BYTES)
                found.seen[url] = lastmod
            except WebError as error:
                failed(error, "" if url == line.url else url)
                document = before
            if document is None:
                found.complete = False
                continue
            found.documents[url] = document
            count += len(document.pages)
            if level < MOST_LEVELS:
                waiting += [(each, changed, level + 1) for each, changed in document.lists.items()]
        found.not_looked_at = len({url for url, _, _ in waiting} - asked)
        return found

    def _key(self, line: SiteLine) -> Sequence[object]:
        """All that decides what it brings."""
        return [line.kind, line.url, line.include, line.exclude, self._most]


def may_be_of(lines: Sequence[SiteLine], source_id: str) -> bool:
    """Return whether a page may belong to one of these lines, whose pages are not known yet: it is on the same host."""
    host = site_host(source_id)
    return any(line.host == host for line in lines)


ANSWERED = frozenset({"success", "not_modified"})
TRUSTED_SECONDS = 30 * 86_400.0
"""For so long a site is believed that a page has not changed."""


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """`last_fetched_at`: when the server last sent the page, or said that it is unchanged; None: never. `lastmod`: what
    its site said of it then; None: nothing.
    """

    url: str
    last_fetched_at: Time | None
    etag: str | None
    last_modified: str | None
    fetch_status: FetchStatus
    next_check_at: Time
    lastmod: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord(Record):
    url: UrlFacts
    source_type: Literal["url"] = "url"

    @property
    def source_id(self) -> str:
        return self.url.url


class WebPages:
    """The `SourceKind` of web pages; their URLs are their ids.

    A page of which its site tells when it has changed is asked for again when it has, or after `TRUSTED_SECONDS`. One
    that cannot be had keeps its text and description. How often one host is asked is up to `web`, which sees every
    redirect.
    """

    noun, plural = "page", "pages"
    step, record = "fetch", UrlRecord
    batch = 1

    def __init__(self, setup: SourceSetup) -> None:
        self._links_file, self._schedule, self._on_result = setup.links_file, setup.schedule, setup.on_result
        self._sites = Sites(setup, "list")
        self._web = None if setup.web is None else setup.web.pages
        self._texts = TextCache(setup.cache_dir, setup.max_bytes)
        self.concurrency = setup.at_once
        self._lastmods: dict[str, str] = {}
        """What sites say of their pages, as of the last listing; empty: nothing."""

    def owns(self, source_id: str) -> bool:
        return source_id.startswith(PAGES)

    @staticmethod
    def address(source_id: str) -> str | None:
        return source_id if source_id.startswith(PAGES) else None

    def facts(self, record: UrlRecord) -> SourceFacts:
        path, fetched = self._texts.path(record.url.url), record.url.last_fetched_at
        return SourceFacts(
            path.stat().st_size if path.exists() else None,
            None if fetched is None else from_rfc3339(fetched),
            "" if record.url.fetch_status in ANSWERED else f"not fetched ({record.url.fetch_status})",
        )

    def line_result(self, line: LinksLine) -> LineResult | None:
        def of_state(known: SiteState) -> LineResult:
            brought = self._sites.brought(known)
            return LineResult(len(brought.pages) if brought.complete else None, brought.note, brought.failed)

        return self._sites.lines.result(line, of_state)

    async def survey(self, at: float) -> Sequence[Trouble]:
        return await self._sites.lines.survey(at)

    def list_sources(self, records: Mapping[str, UrlRecord], at: float) -> Listing:
        links = listed_links(self._links_file, records)
        if links is None:
            return Listing()
        pages = dict.fromkeys(links.pages, "")
        left_out, unknown = links.left_out, list[SiteLine]()
        for line in links.of(SiteLine):
            known = self._sites.lines.state(line)
            if known is None or not known.complete:
                unknown.append(line)
            if known is not None:
                brought = self._sites.brought(known)
                pages |= {url: lastmod for url, lastmod in brought.pages.items() if url not in pages}
                if brought.note:
                    left_out[f"a part of what {line.place} names"] = brought.note
        self._lastmods = pages
        try:
            kept = frozenset(os.listdir(self._texts.folder))  # noqa: PTH208 (only names are wanted)
        except OSError:
            kept = frozenset[str]()  # the pages are fetched again
        due = [
            url for url, lastmod in pages.items() if is_due(url, records.get(url), kept, at, self._schedule, lastmod)
        ]
        listed = frozenset(due)
        same = [url for url in pages if url not in listed]
        return Listing(same, host_by_host(due), left_out, unsure=lambda url: may_be_of(unknown, url))

    async def fetch(self, due: Mapping[str, UrlRecord | None]) -> Sequence[UrlRecord | LeftOut | Trouble]:
        return [each for url, record in due.items() for each in await self._fetch(url, record)]

    def read(self, source_id: str) -> Text:
        return self._texts.read(source_id)

    def forget(self, source_id: str) -> None:
        self._texts.forget(source_id)

    async def _fetch(self, url: str, record: UrlRecord | None) -> list[UrlRecord | LeftOut | Trouble]:
        web = needed(self._web)
        # Without its text, "not modified" would be no answer.
        kept = record if record is not None and record.content_hash and self._texts.path(url).exists() else None
        etag, last_modified = (None, None) if kept is None else (kept.url.etag, kept.url.last_modified)
        try:
            answer = await web.fetch(url, etag=etag, last_modified=last_modified)
            content_hash = "" if kept is None else kept.content_hash
            if isinstance(answer, Page):
                content_hash = await in_thread(self._keep, url, answer, content_hash)
                return [self._renewed(url, record, content_hash, "success", answer)]
            known = unchanged(None if kept is None else kept.url, answer)
            return [self._renewed(url, record, content_hash, "not_modified", known)]
        except (WebError, OSError) as error:
            status = "timeout" if isinstance(error, FetchTimedOut | TimeoutError) else "error"
            # With neither text nor description it is as good as never fetched.
            content_hash = "" if record is None or (kept is None and not record.described) else record.content_hash
            trouble = Trouble(url, "fetch", str(error) or type(error).__name__)
            return [trouble, self._renewed(url, record, content_hash, status, None)]

    def _keep(self, url: str, page: Page, kept_hash: str) -> str:
        """Write the text of a page, unless the one with this hash is there. Gives its hash. Blocking."""
        text = with_title(page)
        if not text.strip():
            raise FetchFailed("there is no text in the page")
        content_hash = hash_text(text)
        if content_hash != kept_hash:
            files.replace(self._texts.path(url), text.encode("utf-8", "replace"))
        return content_hash

    def _renewed(
        self, url: str, record: UrlRecord | None, content_hash: str, status: FetchStatus, answer: Validated | None
    ) -> UrlRecord:
        """The record after a download with this result. `answer`: None where there was none."""
        if self._on_result is not None:
            self._on_result(status)
        at = now()
        answered = status in ANSWERED
        if record is None:
            record = UrlRecord.new(rfc3339(at), url=UrlFacts(url, None, None, None, status, rfc3339(at)))
        validated = record.url if answer is None else answer
        facts = replace(
            record.url,
            etag=validated.etag,
            last_modified=validated.last_modified,
            fetch_status=status,
            last_fetched_at=rfc3339(at) if answered else record.url.last_fetched_at,
            next_check_at=rfc3339(self._schedule.next(failed=not answered)),
            lastmod=(self._lastmods.get(url) or None) if answered else record.url.lastmod,
        )
        return replace(record, url=facts).holding(content_hash)


def is_due(
    url: str, record: UrlRecord | None, kept: frozenset[str], at: float, schedule: RefreshSchedule, lastmod: str = ""
) -> bool:
    """Return whether to fetch a page: it is new, it has changed, its time has come, or its stored text is missing.
    `kept`: names of stored files. `lastmod`: when its site says that it last changed; while that stays the same, the
    page is fetched only every `TRUSTED_SECONDS`.
    """
    if record is None:
        return True
    answered = record.url.fetch_status in ANSWERED
    if answered and bool(record.content_hash) and stored_name(url) not in kept:
        return True
    due_at = from_rfc3339(record.url.next_check_at)
    if answered and lastmod:
        if record.url.lastmod != lastmod:
            return True
        if record.url.last_fetched_at is not None:
            due_at = max(due_at, from_rfc3339(record.url.last_fetched_at) + TRUSTED_SECONDS)
    return schedule.is_due(due_at, at, failed=not answered)


def with_title(page: Page) -> str:
    """Return the text to store: below the title of the page, unless it begins with that itself."""
    title = " ".join(page.title.split())
    if not title or not page.text.strip() or title in page.text[: 2 * len(title) + 20]:
        return page.text
    return f"# {title}\n\n{page.text}"


def host_by_host(urls: Iterable[str]) -> list[str]:
    """Order URLs so that hosts alternate: waiting for a slow host then delays fewer others."""
    hosts: dict[str, list[str]] = {}
    for url in urls:
        hosts.setdefault(urlsplit(url).netloc.lower(), []).append(url)
    return [url for url in chain.from_iterable(zip_longest(*hosts.values())) if url is not None]
