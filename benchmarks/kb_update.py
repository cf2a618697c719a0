"""One update of a knowledge base of made-up files, in a process of its own that prints its figures as JSON.

    python -m benchmarks.kb_update plain|beat|blame|naive|prepare|ask FOLDER

`blame` also says, of each moment at which the event loop was late, what every thread was at. `prepare` and `ask` update
nothing: the one makes the sources of the index in FOLDER searchable by words, the other asks questions of them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from assembly.running import collect_garbage_less_often, shorten_thread_switches
from benchmarks.heartbeat import Heartbeat, beating
from services.knowledge import cache, index_file
from services.knowledge.index_file import IndexEntry
from services.knowledge.library import DiskLibrary
from services.knowledge.library_search import LibrarySearch
from services.knowledge.source_files import FileFacts, FileRecord, TextFiles
from services.knowledge.source_kinds import SourceRecords, SourceSetup, UpdateEvent, UpdateReport, UpdateResult
from services.knowledge.source_pages import WebPages
from services.knowledge.web_interface import FetchFailed, FetchResult, WebFetchers
from services.search.passage_store import PassageStore
from services.storage import files
from sinks.knowledge import CacheAndIndex
from streams.knowledge import KnowledgeParts, update

LATE_SECONDS = 0.004
"""What `blame` has a look at."""


class AtOnce:
    """Describes without waiting, in about as many words as a model would."""

    key = "benchmark"

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = source_id, timeout_seconds
        return f"Explains {text[2:60].splitlines()[0]}, its settings, its error messages and what to do about them."


class NoWeb:
    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> FetchResult:
        raise FetchFailed(f"{url} {etag} {last_modified}")

    async def aclose(self) -> None:
        """There is nothing to close."""


def kinds_in(root: Path) -> tuple[TextFiles, WebPages]:
    """Files and pages, as a knowledge base below `root` has them."""
    setup = SourceSetup(
        sources_dir=root / "sources",
        links_file=root / "links.txt",
        cache_dir=root / "web-cache",
        max_bytes=2_000_000,
        most_fetches=3,
        web=WebFetchers(NoWeb()),
    )
    return TextFiles(setup), WebPages(setup)


def fill(root: Path, count: int) -> None:
    """So many files of 2 kB, in folders of fifty."""
    for number in range(count):
        path = root / "sources" / f"part-{number // 50:03}" / f"subject-{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        sentence = f"Subject {number} has a setting called option_{number % 97}, and it can fail with E{number}. "
        path.write_text(f"# Subject {number}\n\n{sentence * 40}"[:2000] + "\n")


def wired(root: Path) -> KnowledgeParts:
    source_records = SourceRecords(root / "index-cache.json", kinds_in(root))
    return KnowledgeParts(
        source_records=source_records,
        describer=AtOnce(),
        files=CacheAndIndex(source_records, root / "index.txt"),
        descriptions_at_once=5,
        describe_seconds=60,
    )


async def updated(root: Path) -> UpdateReport:
    finished: asyncio.Future[UpdateReport] = asyncio.get_running_loop().create_future()

    def see(event: UpdateEvent | UpdateReport) -> None:
        if isinstance(event, UpdateReport):
            finished.set_result(event)

    update(wired(root)).subscribe(see, finished.set_exception)
    return await finished


async def naively(root: Path) -> UpdateReport:
    """The baseline: read all, and after each summary write both files whole."""
    records: dict[str, cache.Record] = {}
    describer, report = AtOnce(), UpdateReport()
    for path in sorted((root / "sources").rglob("*.md")):
        name, text, status = path.relative_to(root / "sources").as_posix(), path.read_text(), path.stat()
        summary = await describer.summarize_for_kb_index(name, text, 60)
        at = "2026-01-01T00:00:00.000Z"
        records[name] = FileRecord(
            content_hash=cache.hash_text(text),
            summary_text=summary,
            summary_key="k",
            last_indexed_at=at,
            summary_pending=False,
            file=FileFacts(name, status.st_size, status.st_mtime_ns),
        )
        report.results[UpdateResult.DESCRIBED] += 1
        rendered = cache.render((cache.render_line(record) for record in records.values()), at)
        files.replace(root / "index-cache.json", rendered)
        entries = (IndexEntry(f"kb:{each}", record.summary_text) for each, record in records.items())
        files.replace(root / "index.txt", index_file.render(entries).encode())
    return report


def search_of(root: Path) -> LibrarySearch:
    library = DiskLibrary(
        index_path=root / "index.txt",
        kinds=kinds_in(root),
        team_index_path=root / "team.txt",
        team_topics_dir=root / "topics",
        max_source_bytes=2_000_000,
    )
    return LibrarySearch(library, PassageStore(None), PassageStore(root / "search.sqlite"))


async def preparing(root: Path) -> UpdateReport:
    """Bring the passages up to date."""
    search = search_of(root)
    await search.refresh()
    search.close()
    return UpdateReport()


async def asking(root: Path) -> UpdateReport:
    """Search for some questions, two at a time as they may come."""
    search = search_of(root)
    for number in range(10):
        questions = (f"How do I change option_{number}?", f"Subject {number} fails with its error E{number}")
        await asyncio.gather(*(search.find(question) for question in questions))
    search.close()
    return UpdateReport()


class Blame:
    """Looks, from a thread of its own, what the others do while a heartbeat is late."""

    def __init__(self, heart: Heartbeat) -> None:
        self._heart = heart
        self._seen: dict[float, tuple[float, list[str]]] = {}
        """By the beat that is awaited: how late it was when last looked, and what every thread was at."""

    def watch(self) -> None:
        while True:
            time.sleep(0.001)
            since = self._heart.last
            late = time.perf_counter() - since - 0.001
            if late > LATE_SECONDS:
                self._seen[since] = late, [*self._at_work()]

    def say(self) -> None:
        for late, doing in sorted(self._seen.values(), reverse=True)[:5]:
            print(f"late by {late * 1000:.0f} ms: {'; '.join(doing)}", file=sys.stderr)

    def _at_work(self) -> Iterator[str]:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] (no other way to see threads)
            stack = [f"{Path(step.filename).name}:{step.lineno}" for step in traceback.extract_stack(frame)[-3:]]
            if ident != threading.get_ident() and not stack[-1].startswith("thread.py"):  # which waits for work
                yield f"{names.get(ident)} {' > '.join(stack)}"


async def with_heartbeat(
    work: Callable[[Path], Coroutine[Any, Any, UpdateReport]], root: Path, *, blame: bool
) -> tuple[UpdateReport, float]:
    async with beating() as heart:
        watcher = Blame(heart)
        if blame:
            threading.Thread(target=watcher.watch, daemon=True).start()
        report = await work(root)
    watcher.say()
    return report, heart.worst


def one_run(kind: str, root: Path) -> None:
    """Run, and print the figures as JSON."""
    collect_garbage_less_often()  # as commands.live and commands.init_kb do
    shorten_thread_switches()
    gc.collect()
    gc.freeze()
    work = {"naive": naively, "prepare": preparing, "ask": asking}.get(kind, updated)
    written, cpu, real = bytes_written(), time.process_time(), time.perf_counter()
    if kind in {"beat", "blame", "prepare", "ask"}:
        report, worst = asyncio.run(with_heartbeat(work, root, blame=kind == "blame"))
    else:
        report, worst = asyncio.run(work(root)), 0.0
    cpu, real, written = time.process_time() - cpu, time.perf_counter() - real, bytes_written() - written
    figures = {
        "summaries": report.results[UpdateResult.DESCRIBED],
        "cpu": cpu,
        "real": real,
        "written": written,
        "beat": worst,
    }
    print(json.dumps(figures))


def bytes_written() -> int:
    """By this process, to whatever; from Linux's own counters."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["wchar"])


if __name__ == "__main__":
    one_run(sys.argv[1], Path(sys.argv[2]))
