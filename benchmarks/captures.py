"""What it costs to take in what the team teaches: from a capture to its topic, with a model that answers at once.

    python -m benchmarks.captures [--captures N …] [--folder DIR]

Each capture is stored, classified into one of 20 topics, integrated, filed and its topic described anew, one after
another as in a running bot. CPU is that of the whole process, threads and system calls included. The folder lies in
memory where there is such a place, since what a disk makes of the eleven flushes of a capture is not our doing; on the
disk, captures that come together are compared with those that come one at a time, each of which is flushed for itself
and waited for. How long an append takes is measured on the disk.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from assembly.running import shorten_thread_switches
from benchmarks.capture_run import AtOnce, Run, capture
from benchmarks.heartbeat import Heartbeat, beating, not_held
from benchmarks.verdicts import verdict
from benchmarks.yardstick import limit_of_cpu, limit_of_wall
from model.outcomes import OutcomeKind
from services.storage import files
from streams.curation import CurationQueue, CurationRules, curation

COUNTS = (500, 5_000)
MAX_CPU_MS = 1.6
MAX_GROWTH = 1.5
EDGE = 50
"""Captures at the beginning and at the end that are compared."""
WAITING = 100
MAX_TOGETHER = 1 / 3
"""Of the CPU of captures that come one at a time, on the disk."""
MAX_APPEND_MS = 50.0
APPENDS = 20
IN_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder of its own is made there)


@dataclass
class Figures:
    each_ms: list[float]
    """CPU of each capture."""
    full_at: int | None
    """The first capture after all topics had reached `max_topic_chars`."""
    opened_when_idle: int

    @property
    def once_full(self) -> float | None:
        """The mean of the first of those; None where there are too few."""
        at = self.full_at
        return (
            None if at is None or at + 2 * EDGE > len(self.each_ms) else statistics.mean(self.each_ms[at : at + EDGE])
        )


async def measured(folder: Path, count: int) -> Figures:
    run = Run(folder)
    run.begin()
    await asyncio.sleep(0.05)
    each: list[float] = []
    full_at: int | None = None
    gc.collect()
    for number in range(count):
        if full_at is None and run.full:
            full_at = number
        before = time.process_time()
        await run.take_in(number)
        each.append((time.process_time() - before) * 1000)
    opened = await opened_by_a_tick(run)
    run.captures.on_completed()
    await asyncio.sleep(0.05)
    return Figures(each, full_at, opened)


async def waited(folder: Path, count: int) -> float:
    """Milliseconds of CPU for each of so many that were stored before the sorting began, as after an import."""
    run = Run(folder)
    gc.collect()
    before = time.process_time()
    for number in range(count):
        await run.raw.keep(capture(number))
    done = asyncio.Event()
    curation(run.captures, run.parts, CurationRules(finish_all=True)).subscribe(on_completed=done.set)
    run.captures.on_completed()
    await done.wait()
    assert run.library.oldest_undecided() is None
    return (time.process_time() - before) * 1000 / count


async def watched(folder: Path, count: int) -> Heartbeat:
    """As `together`, and whether the event loop comes round meanwhile."""
    gc.collect()
    async with beating() as heart:
        await together(folder, count)
    return heart


async def together(folder: Path, count: int) -> float:
    """Milliseconds of CPU for each of so many that come at once, until all are stored, filed and described."""
    run, done = Run(folder), asyncio.Event()
    curation(run.captures, run.parts, CurationRules(finish_all=True)).subscribe(on_completed=done.set)
    await asyncio.sleep(0.05)

    async def kept(number: int) -> None:
        outcome = await run.raw.keep(capture(number))
        assert outcome.result is OutcomeKind.CAPTURED
        run.captures.on_next(outcome)

    before = time.process_time()
    await asyncio.gather(*(kept(number) for number in range(count)))
    run.captures.on_completed()
    await done.wait()
    assert run.library.oldest_undecided() is None
    return (time.process_time() - before) * 1000 / count


_watched: str | None = None
_opened: list[str] = []


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and _watched is not None and str(arguments[0]).startswith(_watched):
        _opened.append(str(arguments[0]))


async def opened_by_a_tick(run: Run) -> int:
    """How many files of the archive are opened by a tick that finds nothing to do."""
    global _watched  # noqa: PLW0603 (an audit hook stays for ever, so that it has to be told when to look)
    _opened.clear()
    work = CurationQueue(run.parts, CurationRules())
    _watched = str(run.places.raw)
    try:
        assert await work.next() is None
    finally:
        _watched = None
    return len(_opened)


async def appended_while_others_wait(folder: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of an append, of the archive and of nothing but the file, beside a curator that takes its time."""
    run = Run(folder, AtOnce(seconds=60.0))
    for number in range(WAITING):
        await run.raw.keep(capture(number))
    run.begin()
    await asyncio.sleep(0.2)
    ours: list[float] = []
    bare: list[float] = []
    for number in range(WAITING, WAITING + APPENDS):
        began = time.perf_counter()
        outcome = await run.raw.keep(capture(number))
        ours.append((time.perf_counter() - began) * 1000)
        run.captures.on_next(outcome)
        began = time.perf_counter()
        files.append(folder / "bare.txt", b"x" * 700)
        bare.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(0.01)
    assert run.library.oldest_undecided() is not None
    run.captures.on_completed()
    return ours, bare


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--captures", type=int, nargs="+", default=COUNTS, metavar="N", help="how many, one run each")
    cli.add_argument("--folder", type=Path, help="where to work (in memory)")
    options = cli.parse_args()
    shorten_thread_switches()  # as the bot does
    counts: Sequence[int] = options.captures
    place: Path | None = options.folder or (IN_MEMORY if IN_MEMORY.is_dir() else None)
    sys.addaudithook(_audit)
    requirements: list[tuple[bool, str]] = []
    print(
        f"{'captures':>8} {'CPU ms each':>12} {'first 50':>9} {'once full':>10} {'last 50':>8} {'opened when idle':>17}"
    )
    for count in counts:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            found = asyncio.run(measured(Path(folder), count))
        requirements += judged(count, found)
    with tempfile.TemporaryDirectory() as folder:
        on_disk = asyncio.run(measured(Path(folder), min(counts)))
    show(f"{min(counts)} on disk", on_disk)
    with tempfile.TemporaryDirectory() as folder:
        at_once = asyncio.run(together(Path(folder), min(counts)))
    print(f"{min(counts)} together".rjust(18), f"{at_once:>12.2f}")
    hearts: list[Heartbeat] = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as folder:
            hearts.append(asyncio.run(watched(Path(folder), min(counts))))
    requirements.append(not_held(f"{min(counts)} captures that come together", *hearts))
    share = at_once / statistics.mean(on_disk.each_ms)
    what = f"{min(counts)} on disk: those that come together cost {share:.2f} of those that come one at a time"
    requirements.append((share <= MAX_TOGETHER, f"{what}, wanted at most {MAX_TOGETHER:.2f}"))
    with tempfile.TemporaryDirectory(dir=place) as folder:
        print(f"{min(counts)} that waited".rjust(18), f"{asyncio.run(waited(Path(folder), min(counts))):>12.2f}")
    with tempfile.TemporaryDirectory() as folder, suppress(asyncio.CancelledError):
        ours, bare = asyncio.run(appended_while_others_wait(Path(folder)))
        told = (
            f"median {statistics.median(ours):.1f} ms, a bare append {statistics.median(bare):.1f} to {max(bare):.1f}"
        )
        most = limit_of_wall(MAX_APPEND_MS)
        what = f"raw append while {WAITING} pairs wait for a slow model: {max(ours):.1f} ms, at most {most:.1f}"
        requirements.append((max(ours) <= most, f"{what} ({told})"))
    return verdict(*requirements)


def show(name: str, found: Figures) -> None:
    each = found.each_ms
    mean, first, last = statistics.mean(each), statistics.mean(each[:EDGE]), statistics.mean(each[-EDGE:])
    full = "-" if found.once_full is None else f"{found.once_full:.2f}"
    print(f"{name:>18} {mean:>12.2f} {first:>9.2f} {full:>10} {last:>8.2f} {found.opened_when_idle:>17}", flush=True)


def judged(count: int, found: Figures) -> list[tuple[bool, str]]:
    show(str(count), found)
    mean, last, once_full = statistics.mean(found.each_ms), statistics.mean(found.each_ms[-EDGE:]), found.once_full
    most = limit_of_cpu(MAX_CPU_MS)
    requirements = [
        (mean <= most, f"{count} captures: {mean:.2f} ms CPU each, at most {most:.2f}"),
        (not found.opened_when_idle, f"{count} captures: an idle tick opens {found.opened_when_idle} archive files"),
    ]
    if once_full is not None:
        growth = f"{last / once_full:.2f} times the first {EDGE} once topics were full"
        what = f"{count} captures: the last {EDGE} cost {growth}"
        requirements.append((last <= MAX_GROWTH * once_full, f"{what}, at most {MAX_GROWTH}"))
    return requirements


if __name__ == "__main__":
    sys.exit(main())
