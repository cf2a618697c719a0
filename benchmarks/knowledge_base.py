"""What an update of the knowledge base costs, beside one that rewrites cache and index after each summary.

    python -m benchmarks.knowledge_base

Each line is a process of its own: CPU seconds of the whole process beyond its start and imports, bytes handed to
write calls, and the longest time for which the event loop did not come round. That one is also shown for a loop that
does nothing at the same time in another process: on a busy machine the difference is ours.
"""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from multiprocessing.synchronize import Event as Sign
from pathlib import Path
from typing import Any

from operators.fetch import Rechecks
from operators.sources import Event, How, Places, Report
from services import files, index_file, kb_cache
from services.ledger import Ledger
from services.library import IndexEntry
from services.web import Fetched, FetchFailed
from sinks.knowledge import CacheAndIndex
from streams.knowledge import KnowledgeParts, KnowledgeRules, update

FILES = 2_000
LINE = "{:<42} {:>9} {:>8} {:>9} {:>9} {:>9}"


class AtOnce:
    """Describes without waiting, in about as many words as a model would."""

    key = "benchmark"

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = source_id, timeout_seconds
        return f"Explains {text[2:60].splitlines()[0]}, its settings, its error messages and what to do about them."


class NoWeb:
    async def fetch(self, url: str, *, etag: str | None, last_modified: str | None) -> Fetched:
        raise FetchFailed(f"{url} {etag} {last_modified}")


def fill(root: Path, count: int) -> None:
    """So many files of 2 kB, in folders of fifty."""
    for number in range(count):
        path = root / "sources" / f"part-{number // 50:03}" / f"subject-{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        sentence = f"Subject {number} has a setting called option_{number % 97}, and it can fail with E{number}. "
        path.write_text(f"# Subject {number}\n\n{sentence * 40}"[:2000] + "\n")


def wired(root: Path) -> tuple[KnowledgeParts, KnowledgeRules]:
    ledger = Ledger(root / "index-cache.json")
    places = Places(root / "sources", root / "links.txt", root / "web-cache", 2_000_000)
    parts = KnowledgeParts(ledger, AtOnce(), NoWeb(), CacheAndIndex(ledger, root / "index.txt"))
    return parts, KnowledgeRules(places, Rechecks(1, 1), 3, 5, 60)


async def updated(root: Path) -> Report:
    finished: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
    parts, rules = wired(root)

    def see(event: Event | Report) -> None:
        if isinstance(event, Report):
            finished.set_result(event)

    update(parts, rules).subscribe(see, finished.set_exception)
    return await finished


async def naively(root: Path) -> Report:
    """The baseline: read all, and after each summary write both files whole."""
    records: dict[str, kb_cache.Record] = {}
    describer, report = AtOnce(), Report()
    for path in sorted((root / "sources").rglob("*.md")):
        name, text, status = path.relative_to(root / "sources").as_posix(), path.read_text(), path.stat()
        summary = await describer.summarize_for_kb_index(name, text, 60)
        file = kb_cache.FileFacts(name, status.st_size, status.st_mtime_ns)
        at = "2026-01-01T00:00:00.000Z"
        records[name] = kb_cache.Record(
            "file", kb_cache.hash_text(text), summary, "k", at, summary_pending=False, file=file
        )
        report.settled[How.DESCRIBED] += 1
        rendered = kb_cache.render((kb_cache.line(record) for record in records.values()), at)
        files.replace(root / "index-cache.json", rendered)
        entries = (IndexEntry(f"kb:{each}", record.summary_text) for each, record in records.items())
        files.replace(root / "index.txt", index_file.render(entries).encode())
    return report


async def with_heartbeat(work: Callable[[Path], Coroutine[Any, Any, Report]], root: Path) -> tuple[Report, float]:
    worst = 0.0

    async def beat() -> None:
        nonlocal worst
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            moment = time.perf_counter()
            worst, last = max(worst, moment - last - 0.001), moment

    beating = asyncio.create_task(beat())
    report = await work(root)
    beating.cancel()
    return report, worst


def one_run(root: Path, kind: str) -> None:
    """In the child: run, and print the figures as JSON."""
    gc.collect()
    gc.freeze()
    work = naively if kind == "naive" else updated
    written, cpu, real = bytes_written(), time.process_time(), time.perf_counter()
    if kind == "beat":
        report, worst = asyncio.run(with_heartbeat(work, root))
    else:
        report, worst = asyncio.run(work(root)), 0.0
    cpu, real, written = time.process_time() - cpu, time.perf_counter() - real, bytes_written() - written
    figures = {"summaries": report.settled[How.DESCRIBED], "cpu": cpu, "real": real, "written": written, "beat": worst}
    print(json.dumps(figures))


def bytes_written() -> int:
    """By this process, to whatever; from Linux's own counters."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["wchar"])


def idle(results: multiprocessing.Queue[float], stop: Sign) -> None:
    """The longest pause of a loop with nothing to do, while `stop` is not set."""
    worst, last = 0.0, time.perf_counter()
    while not stop.is_set():
        time.sleep(0.001)
        moment = time.perf_counter()
        worst, last = max(worst, moment - last - 0.001), moment
    results.put(worst)


def measured(name: str, root: Path, kind: str = "plain") -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.knowledge_base", kind, str(root)]
    idled = 0.0
    if kind == "beat":
        results: multiprocessing.Queue[float] = multiprocessing.Queue()
        stop = multiprocessing.Event()
        other = multiprocessing.Process(target=idle, args=(results, stop))
        other.start()
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (this module)
        stop.set()
        idled = results.get()
        other.join()
    else:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 (this module)
    figures: dict[str, float] = json.loads(done.stdout)
    beat = f"{figures['beat'] * 1000:.0f}/{idled * 1000:.0f}" if kind == "beat" else "-"
    print(
        LINE.format(
            name,
            f"{figures['summaries']:.0f}",
            f"{figures['cpu']:.3f}",
            f"{figures['real']:.2f}",
            f"{figures['written'] / 1e6:.2f}",
            beat,
        ),
        flush=True,
    )
    return figures


def main() -> None:
    print(LINE.format("run", "summaries", "CPU s", "real s", "MB", "beat ms"))
    with tempfile.TemporaryDirectory() as made:
        root = Path(made) / "kb"
        fill(root, FILES)
        first = measured(f"first run, {FILES} files", root)
        best = min((measured("unchanged", root) for _ in range(3)), key=lambda figures: figures["cpu"])
        page = root / "sources" / "part-003" / "subject-00150.md"
        page.write_text(page.read_text() + "More.\n")
        changed = measured("one file changed", root)
        page.rename(page.with_name("renamed.md"))
        renamed = measured("one file renamed", root)
        shutil.rmtree(root)
        fill(root, FILES)
        measured("first run with a heartbeat (ours/idle)", root, "beat")
        measured("unchanged with a heartbeat (ours/idle)", root, "beat")
        shutil.rmtree(root)
        fill(root, 10 * FILES)
        tenfold = measured(f"first run, {10 * FILES} files", root)
        measured("unchanged", root)
        shutil.rmtree(root)
        fill(root, FILES)
        naive = measured(f"rewriting after each summary, {FILES} files", root, "naive")
    verdicts = {
        "exactly 2,000 summaries": first["summaries"] == FILES,
        "at most 6 MB written": first["written"] <= 6e6,  # noqa: PLR2004 (as the text says)
        "at most 2.0 s CPU": first["cpu"] <= 2.0,  # noqa: PLR2004
        "unchanged: no summary, nothing written": not best["summaries"] and best["written"] < 1000,  # noqa: PLR2004
        "unchanged: at most 0.05 s CPU": best["cpu"] <= 0.05,  # noqa: PLR2004
        "one changed file, one summary": changed["summaries"] == 1,
        "a renamed file, none": not renamed["summaries"],
        f"ten times as many files: {tenfold['cpu'] / first['cpu']:.1f} times the CPU, at most 12": tenfold["cpu"]
        <= 12 * first["cpu"],
    }
    for text, holds in verdicts.items():
        print(f"{'yes' if holds else 'NO ':<4} {text}")
    print(f"     the baseline writes {naive['written'] / first['written']:.0f} times as much")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one_run(Path(sys.argv[2]), sys.argv[1])
    else:
        main()
