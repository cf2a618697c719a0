"""Pages that sitemaps and llms.txt list: fetches the lists that are due, and keeps for each line of the links file what
it brought.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clock import now
from services.knowledge.asked_lines import LineStates, RefreshSchedule
from services.knowledge.links_file import SiteLine, site_host
from services.knowledge.source_kinds import Trouble
from services.knowledge.web_answers import PageList, SiteWeb, WebError
from services.storage import in_thread

MOST_DOCUMENTS = 100
"""Sitemaps that one line may lead to."""
MOST_LEVELS = 3
"""Indexes of indexes. The protocol allows none in another; some sites have them."""
BEYOND = "beyond kb.max_pages_per_site"
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
    """Keeps the lists of pages in `folder`, one file for each line of the links file."""

    def __init__(
        self,
        folder: Path,
        *,
        web: SiteWeb | None = None,
        most_pages: int = 2000,
        concurrency: int = 1,
        schedule: RefreshSchedule = RefreshSchedule(),  # noqa: B008 (frozen)
    ) -> None:
        """`web`: None where nothing is asked for; `schedule`: of each line."""
        self._files, self._web, self._most = LineStates(folder, SiteState), web, most_pages
        self._turns = asyncio.Semaphore(concurrency)
        self._schedule = schedule

    async def refresh(self, lines: Sequence[SiteLine], at: float) -> list[Trouble]:
        """Fetch the lists that are due, and delete the state of lines that were removed. Returns what went wrong."""
        await in_thread(self._files.forget_others, map(self._key, lines))
        found = await asyncio.gather(*(self._refresh(line, at) for line in lines))
        return [trouble for some in found for trouble in some]

    def brought(self, line: SiteLine) -> SitePages | None:
        """Return the pages that a line brings, from disk; None if it was never fetched. Blocking."""
        known = self._files.read(self._key(line))
        if known is None:
            return None
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
        note = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
        return SitePages(dict(list(pages.items())[: self._most]), note, known.complete, known.failed)

    async def _refresh(self, line: SiteLine, at: float) -> list[Trouble]:
        async with self._turns:
            known = await in_thread(self._files.read, self._key(line)) or SiteState()
            if self._web is None:
                raise RuntimeError("these lists can only be read")
            if known.pause:
                self._web.pause(line.url, known.pause)
            if not self._schedule.is_due(known.next_check_at, at, failed=known.failed):
                return []
            # What fails leaves `known` as it is: it names what was had before.
            found, troubles = await self._asked(line, known, self._web)
            found.failed = bool(troubles)
            found.next_check_at = self._schedule.next(failed=found.failed)
            try:
                await in_thread(self._files.write, self._key(line), found)
            except OSError as error:
                troubles.append(Trouble(str(error.filename), "list", error.strerror or str(error)))
            return troubles

    async def _asked(self, line: SiteLine, known: SiteState, web: SiteWeb) -> tuple[SiteState, list[Trouble]]:
        found = SiteState(robots=known.robots, pause=known.pause, robots_at=known.robots_at, complete=True)
        troubles: list[Trouble] = []

        def failed(url: str, error: WebError) -> None:
            where = line.place if url == line.url else f"{line.place}, {url}"
            troubles.append(Trouble(line.url, "list", f"{where}: {error}; its pages stay as they are"))

        if found.robots_at is None or now() - found.robots_at >= ROBOTS_SECONDS:
            try:
                found.robots, found.pause = await web.robots(line.url)
                found.robots_at = now()
            except WebError as error:
                failed("its robots.txt, which says what may be fetched", error)
                return known, troubles
            web.pause(line.url, found.pause)
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
                    rest = self._most - count
                    document = await web.page_list(line, url, before if same_rules else None, found.robots, rest)
                found.seen[url] = lastmod
            except WebError as error:
                failed(url, error)
                document = before
            if document is None:
                found.complete = False
                continue
            found.documents[url] = document
            count += len(document.pages)
            if level < MOST_LEVELS:
                waiting += [(each, changed, level + 1) for each, changed in document.lists.items()]
        found.not_looked_at = len({url for url, _, _ in waiting} - asked)
        return found, troubles

    def _key(self, line: SiteLine) -> Sequence[object]:
        """All that decides what it brings."""
        return [line.kind, line.url, line.include, line.exclude, self._most]


def may_be_of(lines: Sequence[SiteLine], source_id: str) -> bool:
    """Return whether a page may belong to one of these lines, whose pages are not known yet: it is on the same host."""
    host = site_host(source_id)
    return any(line.host == host for line in lines)
