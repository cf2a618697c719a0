"""What it costs to take in what the team teaches: from a capture to its topic, with a model that answers at once.

    python -m benchmarks.captures [--captures N …] [--folder DIR]

Each capture is stored, classified into one of 20 topics, integrated, filed and its topic described anew, one after
another as in a running bot. CPU is that of the whole process, threads and system calls included. The folder lies in
memory where there is such a place, since what a disk makes of the eleven flushes of a capture is not our doing; one run
on the disk is shown beside. How long an append takes is measured on the disk.
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
from dataclasses import dataclass, field
from pathlib import Path

from reactivex.subject import Subject

from benchmarks.verdicts import verdict
from model.batches import Part
from model.conversations import Conversation
from model.messages import DISCORD_EPOCH_MS, Author, AuthorType, Message, Place, PlaceKind
from model.outcomes import OutcomeKind
from services.assistant.curator import ClassificationResult, ImageSummaryResult, IntegrationResult
from services.knowledge.index_file import IndexEntry
from services.llm.usage import Usage
from services.storage import files
from services.team.archive import Pair, PairTurn, Speaker
from services.team.captures import Capture, Captures, Said
from services.team.decisions import By
from services.team.library import TeamLibrary
from services.team.opening import open_library
from sinks.archive import RawArchive
from streams.curation import CurationParts, CurationRules, Decided, Described, Work, curation
from tests.services.team.pairs import places_in

COUNTS = (500, 5_000)
TOPICS = 20
MOST_CPU_MS = 1.6
MOST_GROWTH = 1.5
EDGE = 50
"""Captures at the beginning and at the end that are compared."""
WAITING = 100
MOST_APPEND_MS = 50.0
APPENDS = 20
IN_MEMORY = Path("/dev/shm")  # noqa: S108 (a folder of its own is made there)
DAY = 1_767_225_600
"""2026-01-01, in seconds since 1970."""

PLACE = Place(1, PlaceKind.CHANNEL)
ANSWER = (
    "That is option {0} of the agent. Set it in agent.toml, below [vault], and restart the agent afterwards:\n\n"
    "    marlstow-agent restart --vault {0}\n\nIf the vault is still locked then, look for E{0} in its log. "
)


def capture(number: int) -> Capture:
    """A question and its answer, about 500 characters."""
    first = (DAY * 1000 + number * 60_000 - DISCORD_EPOCH_MS) << 22
    asked = Said(
        first, 10 + number, PairTurn(Speaker.USER, f"How do I tell the agent about vault {number}? {'Hm. ' * 20}")
    )
    answered = Said(first + 1, 5, PairTurn(Speaker.TEAM, ANSWER.format(number)))
    message = Message(first + 1, 1, Author(5, "sue"), answered.turn.text, DAY + number * 60)
    part = Part(number, (message,), AuthorType.TEAM_MEMBER, PLACE, message.at)
    return Capture(part, f"reply_{first}", (asked, answered))


@dataclass
class AtOnce:
    """Thinks for `seconds`, and files one after another under each of the topics."""

    seconds: float = 0.0
    by: By = By.LLM

    async def classify(self, pair: Pair, index: Sequence[IndexEntry], usage: Usage) -> ClassificationResult:
        await asyncio.sleep(self.seconds)
        usage.add("classify", prompt_tokens=900, completion_tokens=10)
        return ClassificationResult(skip=False, topic_name=f"topic {(pair.author_ids[0] - 10) % TOPICS}")

    async def integrate(self, pair: Pair, topic: str, held: Sequence[Pair], usage: Usage) -> IntegrationResult:
        await asyncio.sleep(self.seconds)
        usage.add("integrate", prompt_tokens=9000, completion_tokens=10)
        return IntegrationResult(skip=False, remove_ids=[])

    async def summarise_images(
        self, conversation: Conversation, message_ids: Sequence[int], usage: Usage
    ) -> ImageSummaryResult:
        return ImageSummaryResult(summaries=[])


class Describing:
    key = "benchmark"

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        return f"How the agent is told about vaults, and what to do when one stays locked: {len(text)}."


@dataclass
class Run:
    """One bot's team knowledge, in a folder."""

    folder: Path
    curator: AtOnce = field(default_factory=AtOnce)
    captures: Subject[object] = field(default_factory=Subject[object])
    described: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.places = places_in(self.folder)
        self.library: TeamLibrary = open_library(self.places, describer_key=Describing.key, time=time.time)
        self.raw = RawArchive(self.places.raw, Captures(), on_stored=self.library.stored)
        self.parts = CurationParts(self.library, self.curator, Describing())

    def begin(self) -> None:
        curation(self.captures, self.parts, CurationRules(), self._see).subscribe()

    async def take_in(self, number: int) -> None:
        """Store a capture, and see it through."""
        self.described.clear()
        outcome = await self.raw.keep(capture(number))
        assert outcome.result is OutcomeKind.CAPTURED
        self.captures.on_next(outcome)
        await self.described.wait()

    def _see(self, each: Decided) -> None:
        if isinstance(each, Described):
            self.described.set()

    @property
    def full(self) -> bool:
        """Whether each topic has gone on in a second file."""
        return len(self.library.topics) >= 2 * TOPICS


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
    curation(run.captures, run.parts, CurationRules(to_the_end=True)).subscribe(on_completed=done.set)
    run.captures.on_completed()
    await done.wait()
    assert run.library.undecided() is None
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
    work = Work(run.parts, CurationRules())
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
    assert run.library.undecided() is not None
    run.captures.on_completed()
    return ours, bare


def main() -> int:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("--captures", type=int, nargs="+", default=COUNTS, metavar="N", help="how many, one run each")
    cli.add_argument("--folder", type=Path, help="where to work (in memory)")
    options = cli.parse_args()
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
    with tempfile.TemporaryDirectory(dir=place) as folder:
        print(f"{min(counts)} that waited".rjust(18), f"{asyncio.run(waited(Path(folder), min(counts))):>12.2f}")
    with tempfile.TemporaryDirectory() as folder, suppress(asyncio.CancelledError):
        ours, bare = asyncio.run(appended_while_others_wait(Path(folder)))
        told = (
            f"median {statistics.median(ours):.1f} ms, a bare append {statistics.median(bare):.1f} to {max(bare):.1f}"
        )
        what = f"raw append while {WAITING} pairs wait for a slow model: {max(ours):.1f} ms, at most {MOST_APPEND_MS:g}"
        requirements.append((max(ours) <= MOST_APPEND_MS, f"{what} ({told})"))
    return verdict(*requirements)


def show(name: str, found: Figures) -> None:
    each = found.each_ms
    mean, first, last = statistics.mean(each), statistics.mean(each[:EDGE]), statistics.mean(each[-EDGE:])
    full = "-" if found.once_full is None else f"{found.once_full:.2f}"
    print(f"{name:>18} {mean:>12.2f} {first:>9.2f} {full:>10} {last:>8.2f} {found.opened_when_idle:>17}", flush=True)


def judged(count: int, found: Figures) -> list[tuple[bool, str]]:
    show(str(count), found)
    mean, last, once_full = statistics.mean(found.each_ms), statistics.mean(found.each_ms[-EDGE:]), found.once_full
    requirements = [
        (mean <= MOST_CPU_MS, f"{count} captures: {mean:.2f} ms CPU each, at most {MOST_CPU_MS}"),
        (not found.opened_when_idle, f"{count} captures: an idle tick opens {found.opened_when_idle} archive files"),
    ]
    if once_full is not None:
        growth = f"{last / once_full:.2f} times the first {EDGE} once topics were full"
        what = f"{count} captures: the last {EDGE} cost {growth}"
        requirements.append((last <= MOST_GROWTH * once_full, f"{what}, at most {MOST_GROWTH}"))
    return requirements


if __name__ == "__main__":
    sys.exit(main())
