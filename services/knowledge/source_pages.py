"""Web pages as sources: those of the links file, and those that sitemaps and llms.txt list."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, zip_longest
from typing import Literal
from urllib.parse import urlsplit

from clock import DAY, from_rfc3339, now, rfc3339
from services.knowledge.cache import Record, Time, hash_text
from services.knowledge.file_selection import BEYOND_LIMIT
from services.knowledge.links_file import PAGES, SiteLine, listed_links, site_host
from services.knowledge.page_lists import MAX_BYTES, PageList, read_list
from services.knowledge.refreshed_lines import FAILURE_CHARS, LineState, NoteFailure, RefreshedLines
from services.knowledge.source_kinds import (
    LeftOut,
    LineResult,
    Listing,
    RefreshSchedule,
    SourceDetails,
    SourceSetup,
    Trouble,
    describe_left_out,
    require_web,
    stored_name,
)
from services.knowledge.web_interface import (
    FetchFailed,
    FetchStatus,
    FetchTimedOut,
    HasValidators,
    Page,
    WebError,
    keep_known,
)
from services.storage import files, in_thread

MAX_DOCUMENTS = 100
"""The number of sitemaps that are read for one line."""
MAX_DEPTH = 3
"""The depth of indexes of sitemaps. The protocol allows no index in another, but some sites have them."""
ROBOTS_SECONDS = DAY
"""The seconds for which a robots.txt may be cached (RFC 9309, 2.4)."""


@dataclass(slots=True)
class SiteState(LineState):
    """The stored state of a `sitemap:` or `llms:` line.

    Attributes:
        complete: True once all of its lists have been fetched.
        not_looked_at: the number of further lists beyond the limits.
        documents: the lists by address.
        seen: the `lastmod` that an index had for each of its lists when that list was fetched.
    """

    complete: bool = False
    robots: str = ""
    pause: float = 0.0
    robots_at: float | None = None
    not_looked_at: int = 0
    documents: dict[str, PageList] = field(default_factory=dict[str, PageList])
    seen: dict[str, str] = field(default_factory=dict[str, str])


def pages_of(state: SiteState, most: int) -> dict[str, str]:
    """Return the pages of a line, in order, at most `most`, with their `lastmod`."""
    pages: dict[str, str] = {}
    for document in state.documents.values():
        for url, lastmod in document.pages.items():
            pages.setdefault(url, lastmod)
    return dict(list(pages.items())[:most])


def left_out_of(state: SiteState, most: int) -> dict[str, int]:
    """Return the number of pages and lists that were left out of a line, by the reason."""
    left_out = Counter[str]()
    for document in state.documents.values():
        left_out.update(document.left_out)
    beyond = len({url for document in state.documents.values() for url in document.pages}) - most
    more = {BEYOND_LIMIT: max(0, beyond), "further lists, not looked at": state.not_looked_at}
    left_out.update({reason: count for reason, count in more.items() if count})
    return left_out


ANSWERED_STATUSES = frozenset({"success", "not_modified"})
TRUSTED_SECONDS = 30 * DAY
"""The seconds for which an unchanged `lastmod` of a page is trusted."""


@dataclass(frozen=True, slots=True)
class UrlFacts:
    """The facts about a page. `last_fetched_at`: when the server last sent it, or said that it is unchanged; None if it
    never did. `lastmod`: the value in the site's list at that time; None if there was none. `failure`: why the last
    fetch failed; None: it did not.
    """

    url: str
    last_fetched_at: Time | None
    etag: str | None
    last_modified: str | None
    fetch_status: FetchStatus
    next_check_at: Time
    lastmod: str | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRecord(Record):
    url: UrlFacts
    source_type: Literal["url"] = "url"

    @property
    def source_id(self) -> str:
        return self.url.url


class WebPages(RefreshedLines[SiteLine, SiteState, UrlRecord]):
    """The `SourceKind` of web pages; their URLs are their ids, and their versions the `lastmod` of a sitemap, if any.

    A page with a `lastmod` is fetched when that changes, or after `TRUSTED_SECONDS`. A page that cannot be fetched
    keeps its text and description. `web` limits the requests to each host, as it sees every redirect.
    """

    noun, plural = "page", "pages"
    step, record = "fetch", UrlRecord
    batch = 1
    prefix, line, state = PAGES, SiteLine, SiteState
    folder, refresh_step = "sites", "list"

    def __init__(self, setup: SourceSetup) -> None:
        super().__init__(setup)
        self.concurrency = setup.most_fetches
        self._stored_names: frozenset[str] = frozenset()
        """The names of the stored files at the last listing."""

    @staticmethod
    def address(source_id: str) -> str | None:
        return source_id if source_id.startswith(PAGES) else None

    def details(self, record: UrlRecord) -> SourceDetails:
        path, fetched, status = self.path(record.url.url), record.url.last_fetched_at, record.url.fetch_status
        return SourceDetails(
            path.stat().st_size if path.exists() else None,
            # A new text is described at once.
            from_rfc3339(record.last_indexed_at) if record.content_hash else None,
            "" if status in ANSWERED_STATUSES else f"not fetched: {record.url.failure or status}",
            None if fetched is None else from_rfc3339(fetched),
        )

    def key(self, line: SiteLine) -> Sequence[object]:
        return [line.kind, line.url, line.include, line.exclude, self.setup.most_sources]

    def result(self, state: SiteState) -> LineResult:
        most = self.setup.most_sources
        count = len(pages_of(state, most)) if state.complete else None
        return LineResult(count, describe_left_out(left_out_of(state, most)), state.failed)

    def prepare(self, line: SiteLine, state: SiteState) -> None:
        if state.pause:
            self.reader.pause(line.url, state.pause)

    async def ask(self, line: SiteLine, state: SiteState, note_failure: NoteFailure) -> SiteState:
        reader = self.reader
        # A failure must not change `state`, which still describes the earlier lists.
        found = SiteState(robots=state.robots, pause=state.pause, robots_at=state.robots_at, complete=True)
        if found.robots_at is None or now() - found.robots_at >= ROBOTS_SECONDS:
            try:
                found.robots, found.pause = await reader.robots(line.url)
                found.robots_at = now()
            except WebError as error:
                note_failure(error, "its robots.txt, which says what may be fetched")
                return state
            reader.pause(line.url, found.pause)
        same_rules = found.robots == state.robots
        waiting: list[tuple[str, str, int]] = [(line.url, "", 1)]
        asked: set[str] = set()
        count = 0
        while waiting and len(asked) < MAX_DOCUMENTS and count < self.setup.most_sources:
            url, lastmod, level = waiting.pop(0)
            if url in asked:
                continue
            asked.add(url)
            before = state.documents.get(url)
            try:
                if before is not None and same_rules and lastmod and state.seen.get(url) == lastmod:
                    document = before
                else:
                    parse = partial(read_list, line=line, robots=found.robots, most=self.setup.most_sources - count)
                    document = await reader.read(url, before if same_rules else None, parse, MAX_BYTES)
                found.seen[url] = lastmod
            except WebError as error:
                note_failure(error, "" if url == line.url else url)
                document = before
            if document is None:
                found.complete = False
                continue
            found.documents[url] = document
            count += len(document.pages)
            if level < MAX_DEPTH:
                waiting += [(each, changed, level + 1) for each, changed in document.lists.items()]
        found.not_looked_at = len({url for url, _, _ in waiting} - asked)
        return found

    def list_sources(self, records: Mapping[str, UrlRecord], at: float) -> Listing:
        links = listed_links(self.setup.links_file, records)
        try:
            self._stored_names = frozenset(os.listdir(self.setup.cache_dir))  # noqa: PTH208 (only names are wanted)
        except OSError:
            self._stored_names = frozenset()  # the pages are fetched again
        listing = self.list_lines(links, dict.fromkeys(links.pages, ""), records, at)
        return replace(listing, due=alternate_hosts(listing.due), left_out=links.left_out | listing.left_out)

    def sources_of(self, _line: SiteLine, state: SiteState, _left_out: dict[str, str]) -> Mapping[str, str]:
        return pages_of(state, self.setup.most_sources)

    def is_unchanged(self, record: UrlRecord, version: str, at: float) -> bool:
        return not is_due(record, self._stored_names, at, self.setup.schedule, version)

    def may_bring(self, line: SiteLine, record: UrlRecord) -> bool:
        return line.host == site_host(record.url.url)

    async def fetch(self, due: Mapping[str, UrlRecord | None]) -> Sequence[UrlRecord | LeftOut | Trouble]:
        return [each for url, record in due.items() for each in await self._fetch(url, record)]

    async def _fetch(self, url: str, record: UrlRecord | None) -> list[UrlRecord | LeftOut | Trouble]:
        web = require_web(self.setup.web).pages
        # The answer "not modified" is useless without the stored text.
        kept = record if record is not None and record.content_hash and self.path(url).exists() else None
        etag, last_modified = (None, None) if kept is None else (kept.url.etag, kept.url.last_modified)
        try:
            answer = await web.fetch(url, etag=etag, last_modified=last_modified)
            content_hash = "" if kept is None else kept.content_hash
            if isinstance(answer, Page):
                content_hash = await in_thread(self._store_text, url, answer, content_hash)
                return [self._make_record(url, record, content_hash, "success", answer)]
            known = keep_known(None if kept is None else kept.url, answer)
            return [self._make_record(url, record, content_hash, "not_modified", known)]
        except (WebError, OSError) as error:
            status = "timeout" if isinstance(error, FetchTimedOut | TimeoutError) else "error"
            # A page with neither text nor description counts as never fetched.
            content_hash = "" if record is None or (kept is None and not record.is_described) else record.content_hash
            why = str(error) or type(error).__name__
            failed = self._make_record(url, record, content_hash, status, None)
            return [Trouble(url, "fetch", why), replace(failed, url=replace(failed.url, failure=why[:FAILURE_CHARS]))]

    def _store_text(self, url: str, page: Page, kept_hash: str) -> str:
        """Write the text of a page, unless the stored one has the same hash. Returns the hash. Blocking."""
        text = with_title(page)
        if not text.strip():
            raise FetchFailed("there is no text in the page")
        content_hash = hash_text(text)
        if content_hash != kept_hash:
            files.replace(self.path(url), text.encode("utf-8", "replace"))
        return content_hash

    def _make_record(
        self, url: str, record: UrlRecord | None, content_hash: str, status: FetchStatus, answer: HasValidators | None
    ) -> UrlRecord:
        """Make the record after a download with this result. `answer`: None if the download failed."""
        if self.setup.on_result is not None:
            self.setup.on_result(status)
        at = now()
        answered = status in ANSWERED_STATUSES
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
            lastmod=(self.versions.get(url) or None) if answered else record.url.lastmod,
            failure=None,
        )
        return replace(record, url=facts).with_content(content_hash)


def is_due(record: UrlRecord, stored_names: frozenset[str], at: float, schedule: RefreshSchedule, lastmod: str) -> bool:
    """Return True if a known page is to be fetched: it has changed, is due, or its stored text is missing.
    `stored_names`: those of stored files. `lastmod`: the time of its last change as in the sitemap; while that stays
    the same, the page is fetched only every `TRUSTED_SECONDS`.
    """
    answered = record.url.fetch_status in ANSWERED_STATUSES
    if answered and bool(record.content_hash) and stored_name(record.url.url) not in stored_names:
        return True
    due_at = from_rfc3339(record.url.next_check_at)
    if answered and lastmod:
        if record.url.lastmod != lastmod:
            return True
        if record.url.last_fetched_at is not None:
            due_at = max(due_at, from_rfc3339(record.url.last_fetched_at) + TRUSTED_SECONDS)
    return schedule.is_due(due_at, at, failed=not answered)


def with_title(page: Page) -> str:
    """Return the text to store: below the title of the page, unless the text begins with the title."""
    title = " ".join(page.title.split())
    if not title or not page.text.strip() or title in page.text[: 2 * len(title) + 20]:
        return page.text
    return f"# {title}\n\n{page.text}"


def alternate_hosts(urls: Iterable[str]) -> list[str]:
    """Order URLs so that hosts alternate: waiting for a slow host then delays fewer others."""
    hosts: dict[str, list[str]] = {}
    for url in urls:
        hosts.setdefault(urlsplit(url).netloc.lower(), []).append(url)
    return [url for url in chain.from_iterable(zip_longest(*hosts.values())) if url is not None]
