"""A knowledge base in a folder, with a describer and a web that do as they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from services.knowledge.cache import Record, parse
from services.knowledge.kinds import KINDS
from services.knowledge.source_files import TextFiles
from services.knowledge.source_kinds import RefreshSchedule, SourceRecords, SourceSetup, UpdateEvent, UpdateReport
from services.knowledge.source_pages import WebPages
from services.knowledge.web_interface import FetchFailed, FetchResult, Page, WebFetchers
from sinks.knowledge import CacheAndIndex
from streams.knowledge import KnowledgeParts, update


class FakeDescriber:
    """Describes by the first line of a text, after `seconds`; `failing` sources raise, and others stay without."""

    def __init__(self) -> None:
        self.key = "key 1"
        self.asked: list[str] = []
        self.seconds = 0.0
        self.failing: dict[str, Exception] = {}
        self.says: Callable[[str], str] = lambda text: f"About {text.splitlines()[0]}"
        self.in_flight = self.most_at_work = 0

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        self.asked.append(source_id)
        self.in_flight += 1
        self.most_at_work = max(self.most_at_work, self.in_flight)
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.sleep(self.seconds)
            if source_id in self.failing:
                raise self.failing[source_id]
            return self.says(text)
        finally:
            self.in_flight -= 1


class FakeWeb:
    """Answers by URL; keeps what it was asked, and when."""

    def __init__(self) -> None:
        self.answers: dict[str, FetchResult | Exception] = {}
        self.seconds: dict[str, float] = {}
        self.asked: list[tuple[float, str, str | None]] = []
        self.in_flight = self.most_at_work = 0

    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> FetchResult:
        self.asked.append((asyncio.get_running_loop().time(), url, etag or last_modified))
        self.in_flight += 1
        self.most_at_work = max(self.most_at_work, self.in_flight)
        try:
            await asyncio.sleep(self.seconds.get(url, 0))
            answer = self.answers.get(url, FetchFailed("404"))
        finally:
            self.in_flight -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def aclose(self) -> None:
        """There is nothing to close."""

    def serve(self, url: str, text: str, etag: str | None = None) -> None:
        self.answers[url] = Page(text, "", etag, None)


def source_setup(sources: Path, max_bytes: int = 1000) -> SourceSetup:
    """Return the setup for a folder of documents; the links file and the texts that are fetched lie beside it."""
    links, cache = sources.with_name("links.txt"), sources.with_name("web-cache")
    return SourceSetup(sources_dir=sources, links_file=links, cache_dir=cache, max_bytes=max_bytes)


RECORDS: tuple[type[Record], ...] = tuple(kind(source_setup(Path("sources"))).record for kind in KINDS)


class Shelf:
    """A data folder; `update` runs one update over it, in a life of its own unless `again` is given."""

    def __init__(self, root: Path) -> None:
        self.sources, self.links, self.pages = root / "sources", root / "links.txt", root / "web-cache"
        self.cache, self.index = root / "index-cache.json", root / "index.txt"
        self.sources.mkdir(exist_ok=True)
        self.describer, self.web = FakeDescriber(), FakeWeb()
        self.max_source_bytes = 1000
        self.downloads_at_once, self.descriptions_at_once, self.describe_seconds = 3, 5, 60.0
        self.counted: list[str] = []
        self.parts = self.begin()
        self.events: list[UpdateEvent] = []

    def begin(self) -> KnowledgeParts:
        """Start anew from what is on disk."""
        setup = replace(
            source_setup(self.sources, self.max_source_bytes),
            web=WebFetchers(self.web),
            most_fetches=self.downloads_at_once,
            schedule=RefreshSchedule(fresh_seconds=72 * 3600, retry_seconds=300),
            on_result=self.counted.append,
        )
        source_records = SourceRecords(self.cache, (TextFiles(setup), WebPages(setup)))
        self.parts = KnowledgeParts(
            source_records=source_records,
            describer=self.describer,
            files=CacheAndIndex(source_records, self.index),
            descriptions_at_once=self.descriptions_at_once,
            describe_seconds=self.describe_seconds,
        )
        return self.parts

    def write(self, name: str, text: str) -> Path:
        path = self.sources / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def link(self, *urls: str) -> None:
        self.links.write_text("".join(f"{url}\n" for url in urls))

    async def update(self, *, again: bool = False) -> UpdateReport:
        """Run to the end; `describer.asked` and `web.asked` then hold what this update asked for."""
        self.describer.asked, self.web.asked = [], []
        self.events = []
        parts = self.parts if again else self.begin()
        finished: asyncio.Future[UpdateReport] = asyncio.get_running_loop().create_future()

        def see(event: UpdateEvent | UpdateReport) -> None:
            if isinstance(event, UpdateReport):
                finished.set_result(event)
            else:
                self.events.append(event)

        def fail(error: Exception) -> None:
            finished.set_exception(error)

        subscription = update(parts).subscribe(see, fail)
        try:
            return await finished
        finally:
            subscription.dispose()

    @property
    def records(self) -> dict[str, Record]:
        return parse(self.cache.read_bytes(), RECORDS)

    @property
    def entries(self) -> list[str]:
        """The lines of the index."""
        return self.index.read_text().splitlines()

    @property
    def ids(self) -> list[str]:
        return [line.removeprefix("kb:") for line in self.entries if line.startswith("kb:")]

    def doctor(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the cache file by hand."""
        content = json.loads(self.cache.read_text())
        change(content)
        self.cache.write_text(json.dumps(content))

    def stamps(self) -> tuple[int, int]:
        return self.cache.stat().st_mtime_ns, self.index.stat().st_mtime_ns
