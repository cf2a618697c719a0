"""For how long the work of the bot holds the event loop, kind by kind.

    python -m benchmarks.held [--runs 2]

Each kind runs beside a heartbeat, in a process of its own; the best of the runs counts. Reading what people attach and
what websites send is shown and not judged: it runs in a thread, and while one regular expression or one call of a
parser works, Python lets nobody else.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from assembly.running import collect_garbage_less_often, shorten_thread_switches
from benchmarks.capture_run import capture
from benchmarks.heartbeat import Heartbeat, beating, not_held
from benchmarks.kb_update import asking, fill, preparing, updated
from benchmarks.taking_in import configuration, log
from benchmarks.verdicts import verdict
from commands.regen import rebuild
from services.documents.limits import FileLimits
from services.documents.reading.preparing import prepare
from services.knowledge.web.contents import read
from services.storage import in_thread
from services.team.captures import RecentCaptures
from settings import Settings
from sinks.team import RawArchive
from tests.services.team.pairs import places_in

FILES, PAIRS = 2_000, 500
Work = Callable[[Path], Coroutine[Any, Any, object]]


def page() -> bytes:
    """Two megabytes of HTML."""
    part = "<h2>Part {0}</h2><p>Set <code>option_{0}</code> in <a href='part-{0}.html'>its file</a>. {1}</p>\n"
    return "".join(part.format(number, "It can fail. " * 20) for number in range(5_300)).encode()


async def read_a_log(root: Path) -> None:
    await in_thread(lambda: prepare("a.log", (root / "a.log").read_bytes(), limits=FileLimits()))


async def read_a_configuration(root: Path) -> None:
    await in_thread(lambda: prepare("a.json", (root / "a.json").read_bytes(), limits=FileLimits()))


async def read_a_page(root: Path) -> None:
    await in_thread(lambda: read((root / "a.html").read_bytes(), "text/html; charset=utf-8", 2_000_000))


async def idle(_root: Path) -> None:
    """What the machine does to a loop with nothing to do."""
    await asyncio.sleep(2)


async def regenerate(root: Path) -> None:
    """Without a model: nothing but our own work."""
    settings = Settings.model_validate({"app": {"data_dir": "data"}, "search": {"embeddings": "none"}}).resolve_paths(
        root
    )
    await rebuild(settings, restart=True)


def with_data(root: Path) -> None:
    (root / "a.log").write_bytes(log(85_000))
    (root / "a.json").write_bytes(configuration(10_000))
    (root / "a.html").write_bytes(page())


def with_files(root: Path) -> None:
    fill(root, FILES)


def with_an_index(root: Path) -> None:
    fill(root, FILES)
    asyncio.run(updated(root))
    asyncio.run(preparing(root))


def with_an_archive(root: Path) -> None:
    raw = RawArchive(places_in(root / "data").raw, RecentCaptures())
    raw.write([capture(number) for number in range(PAIRS)], 1_767_225_600.0)


KINDS: dict[str, tuple[str, Callable[[Path], None], Work, bool]] = {
    "refresh": (f"first refresh of {FILES} files", with_files, updated, True),
    "prepare": (f"{FILES} files made searchable", with_an_index, preparing, True),
    "ask": (f"20 questions over {FILES} files", with_an_index, asking, True),
    "regen": (f"--regen of {PAIRS} pairs", with_an_archive, regenerate, True),
    "idle": ("nothing at all", with_data, idle, False),
    "log": ("a log of 10 MiB", with_data, read_a_log, False),
    "configuration": ("a configuration of 10,000 values", with_data, read_a_configuration, False),
    "page": ("a page of 2 MB", with_data, read_a_page, False),
}
"""What it is, what has to be there, the work, and whether it is judged."""


def one_run(kind: str) -> None:
    """Run, and print the figures as JSON."""
    collect_garbage_less_often()  # as the bot does
    shorten_thread_switches()
    _, before, work, _ = KINDS[kind]

    async def watched(root: Path) -> Heartbeat:
        async with beating() as heart:
            await work(root)
        return heart

    with tempfile.TemporaryDirectory() as folder:
        before(Path(folder))
        if kind == "prepare":
            (Path(folder) / "search.sqlite").unlink()
        gc.collect()
        gc.freeze()
        heart = asyncio.run(watched(Path(folder)))
    print(json.dumps([heart.worst, heart.own]))


def measured(kind: str) -> Heartbeat:
    command = [sys.executable, "-m", "benchmarks.held", "--kind", kind]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 (our own)
    heart = Heartbeat()
    heart.worst, heart.own = json.loads(done.stdout.splitlines()[-1])
    return heart


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--kind", choices=KINDS, help="one run of one kind; its figures as JSON")
    options = parser.parse_args()
    if options.kind is not None:
        one_run(options.kind)
        return 0
    judged: list[tuple[bool, str]] = []
    for kind, (what, _, _, is_judged) in KINDS.items():
        found = not_held(what, *(measured(kind) for _ in range(options.runs)))
        if is_judged:
            judged.append(found)
        else:
            print(f"shown {found[1].partition(', wanted')[0]}", flush=True)
    return verdict(*judged)


if __name__ == "__main__":
    sys.exit(main())
