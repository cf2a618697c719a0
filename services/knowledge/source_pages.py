"""Web pages as sources: those that the links file names, and those that sitemaps and llms.txt list; when each is
fetched again, and their texts.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Literal
from urllib.parse import urlsplit

from clock import from_rfc3339, now, rfc3339
from services.knowledge.cache import Record, Time, hash_text
from services.knowledge.file_selection import BEYOND
from services.knowledge.links_file import PAGES, SiteLine, listed_links, site_host
from services.knowledge.page_lists import MOST_BYTES, PageList, read_list
from services.knowledge.refreshed_lines import LineState, NoteFailure, RefreshedLines
from services.knowledge.source_kinds import (
    LeftOut,
    LineResult,
    Listing,
    RefreshSchedule,
    SourceDetails,
    SourceSetup,
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
class SiteState(LineState):
    """The stored state of a `sitemap:` or `llms:` line.

    Attributes:
        complete: whether all of its lists have been had at least once.
        not_looked_at: how many further lists there are beyond the limits.
        documents: by address.
        seen: the `lastmod` that an index gave of each of its lists when that was had.
    """

    complete: bool = False
    robots: str = ""
    pause: float = 0.0
    robots_at: float | None = None
    not_looked_at: int = 0
    documents: dict[str, PageList] = field(default_factory=dict[str, PageList])
    seen: dict[str, str] = field(default_factory=dict[str, str])


def pages_of(known: SiteState, most: int) -> dict[str, str]:
    """Return the pages that a line brings, in order, `most` of them, with their `lastmod`."""
    pages: dict[str, str] = {}
    for document in known.documents.values():
        for url, lastmod in document.pages.items():
            pages.setdefault(url, lastmod)
    return dict(list(pages.items())[:most])


def left_out_of(known: SiteState, most: int) -> dict[str, int]:
    """Return what a line does not bring: why, and how many."""
    left_out = Counter[str]()
    for document in known.documents.values():
        left_out.update(document.left_out)
    beyond = len({url for document in known.documents.values() for url in document.pages}) - most
    more = {BEYOND: max(0, beyond), "further lists, not looked at": known.not_looked_at}
    left_out.update({reason: count for reason, count in more.items() if count})
    return left_out


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


class WebPages(RefreshedLines[SiteLine, SiteState, UrlRecord]):
    """The `SourceKind` of web pages; their URLs are their ids, and their signs are `lastmod`, if their site tells it.

    A page of which its site tells when it has changed is asked for again when it has, or after `TRUSTED_SECONDS`. One
    that cannot be had keeps its text and description. How often one host is asked is up to `web`, which sees every
    redirect.
    """

    noun, plural = "page", "pages"
    step, record = "fetch", UrlRecord
    batch = 1
    prefix, line, state = PAGES, SiteLine, SiteState
    folder, survey_step = "sites", "list"

    def __init__(self, setup: SourceSetup) -> None:
        super().__init__(setup)
        self.concurrency = setup.at_once
        self._kept: frozenset[str] = frozenset()
        """Names of the stored files, as of the last listing."""

    @staticmethod
    def address(source_id: str) -> str | None:
        return source_id if source_id.startswith(PAGES) else None

    def details(self, record: UrlRecord) -> SourceDetails:
        path, fetched = self.path(record.url.url), record.url.last_fetched_at
        return SourceDetails(
            path.stat().st_size if path.exists() else None,
            None if fetched is None else from_rfc3339(fetched),
            "" if record.url.fetch_status in ANSWERED else f"not fetched ({record.url.fetch_status})",
        )

    def key(self, line: SiteLine) -> Sequence[object]:
        return [line.kind, line.url, line.include, line.exclude, self.setup.most]

    def result(self, known: SiteState) -> LineResult:
        most = self.setup.most
        count = len(pages_of(known, most)) if known.complete else None
        return LineResult(count, note_of(left_out_of(known, most)), known.failed)

    def prepare(self, line: SiteLine, known: SiteState) -> None:
        if known.pause:
            self.reader.pause(line.url, known.pause)

    async def ask(self, line: SiteLine, known: SiteState, note_failure: NoteFailure) -> SiteState:
        reader = self.reader
        # What fails leaves `known` as it is: it names what was had before.
        found = SiteState(robots=known.robots, pause=known.pause, robots_at=known.robots_at, complete=True)
        if found.robots_at is None or now() - found.robots_at >= ROBOTS_SECONDS:
            try:
                found.robots, found.pause = await reader.robots(line.url)
                found.robots_at = now()
            except WebError as error:
                note_failure(error, "its robots.txt, which says what may be fetched")
                return known
            reader.pause(line.url, found.pause)
        same_rules = found.robots == known.robots
        waiting: list[tuple[str, str, int]] = [(line.url, "", 1)]
        asked: set[str] = set()
        count = 0
        while waiting and len(asked) < MOST_DOCUMENTS and count < self.setup.most:
            url, lastmod, level = waiting.pop(0)
            if url in asked:
                continue
            asked.add(url)
            before = known.documents.get(url)
            try:
                if before is not None and same_rules and lastmod and known.seen.get(url) == lastmod:
                    document = before
                else:
                    parse = partial(read_list, line=line, robots=found.robots, most=self.setup.most - count)
                    document = await reader.read(url, before if same_rules else None, parse, MOST_BYTES)
                found.seen[url] = lastmod
            except WebError as error:
                note_failure(error, "" if url == line.url else url)
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

    def list_sources(self, records: Mapping[str, UrlRecord], at: float) -> Listing:
        links = listed_links(self.setup.links_file, records)
        try:
            self._kept = frozenset(os.listdir(self.setup.cache_dir))  # noqa: PTH208 (only names are wanted)
        except OSError:
            self._kept = frozenset()  # the pages are fetched again
        listing = self.listing(links, dict.fromkeys(links.pages, ""), records, at)
        return replace(listing, due=host_by_host(listing.due), left_out=links.left_out | listing.left_out)

    def brought(self, _line: SiteLine, known: SiteState, _left_out: dict[str, str]) -> Mapping[str, str]:
        return pages_of(known, self.setup.most)

    def is_unchanged(self, record: UrlRecord, sign: str, at: float) -> bool:
        return not is_due(record.url.url, record, self._kept, at, self.setup.schedule, sign)

    def may_bring(self, line: SiteLine, record: UrlRecord) -> bool:
        return line.host == site_host(record.url.url)

    async def fetch(self, due: Mapping[str, UrlRecord | None]) -> Sequence[UrlRecord | LeftOut | Trouble]:
        return [each for url, record in due.items() for each in await self._fetch(url, record)]

    async def _fetch(self, url: str, record: UrlRecord | None) -> list[UrlRecord | LeftOut | Trouble]:
        web = needed(self.setup.web).pages
        # Without its text, "not modified" would be no answer.
        kept = record if record is not None and record.content_hash and self.path(url).exists() else None
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
            files.replace(self.path(url), text.encode("utf-8", "replace"))
        return content_hash

    def _renewed(
        self, url: str, record: UrlRecord | None, content_hash: str, status: FetchStatus, answer: Validated | None
    ) -> UrlRecord:
        """The record after a download with this result. `answer`: None where there was none."""
        if self.setup.on_result is not None:
            self.setup.on_result(status)
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
            next_check_at=rfc3339(self.setup.schedule.next(failed=not answered)),
            lastmod=(self.signs.get(url) or None) if answered else record.url.lastmod,
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
