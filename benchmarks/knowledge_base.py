"""What an update of the knowledge base costs, beside one that rewrites cache and index after each summary.

    python -m benchmarks.knowledge_base

Each line is a process of its own: CPU seconds of the whole process beyond its start and imports, bytes handed to
write calls, and the longest time for which the event loop did not come round. That one is also shown for a loop that
does nothing at the same time in another process. What another process on the machine costs comes and goes, what we
cost does not: so runs are repeated, and the best one counts. `python -m benchmarks.kb_update blame FOLDER` tells who
held the loop up.
"""

from __future__ import annotations

import json
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.synchronize import Event as Sign
from operator import itemgetter
from pathlib import Path

from benchmarks.heartbeat import MAX_SECONDS
from benchmarks.kb_update import fill
from benchmarks.verdicts import verdict
from benchmarks.yardstick import limit_of_a_pause, limit_of_cpu

FILES = 2_000
MAX_MB, MAX_CPU, MAX_CPU_UNCHANGED = 6.0, 2.0, 0.05
MAX_TIMES_AS_MUCH = 12.0
"""For ten times as many files."""
CONSOLE_BYTES = 1_000
"""What a run writes to pipes and to its own event loop, and to no file."""
LINE = "{:<42} {:>9} {:>8} {:>9} {:>9} {:>9}"

Figures = dict[str, float]


def idle(results: multiprocessing.Queue[float], stop: Sign) -> None:
    """The longest pause of a loop with nothing to do, while `stop` is not set."""
    worst, last = 0.0, time.perf_counter()
    while not stop.is_set():
        time.sleep(0.001)
        moment = time.perf_counter()
        worst, last = max(worst, moment - last - 0.001), moment
    results.put(worst)


def measured(name: str, root: Path, kind: str = "plain") -> Figures:
    results: multiprocessing.Queue[float] = multiprocessing.Queue()
    stop = multiprocessing.Event()
    other = multiprocessing.Process(target=idle, args=(results, stop))
    beats = kind in {"beat", "prepare", "ask"}
    if beats:
        other.start()
    command = [sys.executable, "-m", "benchmarks.kb_update", kind, str(root)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 (our own)
    figures: Figures = json.loads(done.stdout)
    beat = "-"
    if beats:
        stop.set()
        beat = f"{figures['beat'] * 1000:.0f}/{results.get() * 1000:.0f}"
        other.join()
    cost = f"{figures['cpu']:.3f}", f"{figures['real']:.2f}", f"{figures['written'] / 1e6:.2f}"
    print(LINE.format(name, f"{figures['summaries']:.0f}", *cost, beat), flush=True)
    return figures


def best_of(times: int, by: str, run: Callable[[], Figures]) -> Figures:
    return min((run() for _ in range(times)), key=itemgetter(by))


def from_nothing(name: str, root: Path, kind: str = "plain") -> Figures:
    """A first run: whatever an earlier one has built is gone."""
    for made in root.glob("index*"):
        made.unlink()
    return measured(name, root, kind)


def main() -> int:
    print(LINE.format("run", "summaries", "CPU s", "real s", "MB", "beat ms"))
    with tempfile.TemporaryDirectory() as made:
        root, large = Path(made) / "kb", Path(made) / "large"
        fill(root, FILES)
        fill(large, 10 * FILES)
        beating = best_of(3, "beat", lambda: from_nothing("first run, heartbeat ours/idle", root, "beat"))
        beating_on = best_of(3, "beat", lambda: measured("unchanged, heartbeat ours/idle", root, "beat"))
        first = best_of(3, "cpu", lambda: from_nothing(f"first run, {FILES} files", root))
        tenfold = best_of(3, "cpu", lambda: from_nothing(f"first run, {10 * FILES} files", large))
        measured("20,000 files made searchable, ours/idle", large, "prepare")
        asked = best_of(3, "beat", lambda: measured("20 questions to 20,000 files, ours/idle", large, "ask"))
        unchanged = best_of(5, "cpu", lambda: measured("unchanged", root))
        page = root / "sources" / "part-003" / "subject-00150.md"
        page.write_text(page.read_text() + "More.\n")
        changed = measured("one file changed", root)
        page.rename(page.with_name("renamed.md"))
        renamed = measured("one file renamed", root)
        shutil.rmtree(large)
        naive = from_nothing(f"rewriting after each summary, {FILES} files", root, "naive")
    blocked = max(figures["beat"] for figures in (beating, beating_on, asked))
    most, most_unchanged = limit_of_cpu(MAX_CPU), limit_of_cpu(MAX_CPU_UNCHANGED)
    most_blocked = limit_of_a_pause(MAX_SECONDS)
    times_as_much = tenfold["cpu"] / first["cpu"]
    print(f"the baseline writes {naive['written'] / first['written']:.0f} times as much as the first run")
    return verdict(
        (first["summaries"] == FILES, f"first run: {first['summaries']:.0f} descriptions, {FILES} wanted"),
        (first["written"] <= MAX_MB * 1e6, f"first run: {first['written'] / 1e6:.2f} MB written, at most {MAX_MB:g}"),
        (first["cpu"] <= most, f"first run: {first['cpu']:.2f} s of CPU, at most {most:.2f}"),
        (not unchanged["summaries"], f"unchanged: {unchanged['summaries']:.0f} descriptions, none wanted"),
        (unchanged["written"] < CONSOLE_BYTES, "unchanged: nothing written"),
        (
            unchanged["cpu"] <= most_unchanged,
            f"unchanged: {unchanged['cpu']:.3f} s of CPU, at most {most_unchanged:.3f}",
        ),
        (changed["summaries"] == 1, f"one file changed: {changed['summaries']:.0f} descriptions, 1 wanted"),
        (not renamed["summaries"], f"one file renamed: {renamed['summaries']:.0f} descriptions, none wanted"),
        (
            blocked <= most_blocked,
            f"event loop: blocked for {blocked * 1000:.0f} ms, at most {most_blocked * 1000:.1f}",
        ),
        (
            times_as_much <= MAX_TIMES_AS_MUCH,
            f"ten times the files: {times_as_much:.1f} times the CPU, at most {MAX_TIMES_AS_MUCH:g}",
        ),
        (
            naive["written"] > 100 * first["written"] and naive["cpu"] > first["cpu"],
            "the baseline, which rewrites both files each time, writes a hundred times as much",
        ),
    )


if __name__ == "__main__":
    sys.exit(main())
