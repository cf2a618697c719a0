"""Kills runs of `--init-kb` at random moments, and looks at what they leave.

python -m tests.commands.killing 100
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from services.knowledge import cache, index_file
from services.knowledge.index_file import IndexEntry
from tests.commands import kb_run
from tests.shelves import RECORDS

# What a run imports when it needs it would take longer than the run, and the moments are to fall into the work.
import_module("services.knowledge.web.fetcher")

SOURCES = 60
LONGEST_SECONDS = 0.3
"""About as long as a run takes that is left alone."""


class Victim:
    """A knowledge base that is built by one killed process after another, and from the beginning when it is done."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self._random = random.Random(seed)  # noqa: S311 (moments, no secrets)
        self._data = root / "data" / "knowledge-base"
        self._log = root / "described.txt"
        (self._data / "sources").mkdir(parents=True)
        for number in range(SOURCES):
            (self._data / "sources" / f"{number:02}.md").write_text(f"Subject {number}\n")
        (root / "config.yaml").write_text("{}\n")

    def kill_once(self) -> None:
        """Start a run, kill it, and check what is on disk; then check that another run would finish the work."""
        running = begin(self.root)
        time.sleep(self._random.uniform(0, LONGEST_SECONDS))
        os.kill(running, signal.SIGKILL)
        os.waitpid(running, 0)
        done = self._finished()
        before = self._described()
        twin = self.root.with_name(f"{self.root.name}-next")
        shutil.copytree(self.root, twin)
        try:
            self._check_next(twin, done, before)
        finally:
            shutil.rmtree(twin)
        if len(done) == SOURCES:
            for name in ("index.txt", "index-cache.json"):
                (self._data / name).unlink(missing_ok=True)
            self._log.unlink()

    def _check_next(self, twin: Path, done: set[str], before: list[str]) -> None:
        _, status = os.waitpid(begin(twin, seconds="0"), 0)
        assert os.waitstatus_to_exitcode(status) == 0, "the next run failed"
        log = (twin / "described.txt").read_text().split()[len(before) :]
        assert not done & set(log), f"described again: {done & set(log)}"
        data = twin / "data" / "knowledge-base"
        records = cache.parse((data / "index-cache.json").read_bytes(), RECORDS)
        assert len(records) == SOURCES
        entries = [IndexEntry(f"kb:{name}", record.summary_text) for name, record in sorted(records.items())]
        assert (data / "index.txt").read_text() == index_file.render(entries), "cache and index differ"

    def _finished(self) -> set[str]:
        """The sources whose description is on disk. A cache that is there is whole at any moment."""
        path = self._data / "index-cache.json"
        if not path.exists():
            return set()
        data = path.read_bytes()
        assert data.endswith(b"}\n}\n"), "a torn cache"
        return {name for name, record in cache.parse(data, RECORDS).items() if record.is_described}

    def _described(self) -> list[str]:
        return self._log.read_text().split() if self._log.exists() else []


def begin(root: Path, seconds: str = "0.01") -> int:
    """A run in a child of this process, which has everything imported; gives its process id."""
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        code = kb_run.main(str(root / "config.yaml"), seconds, str(root / "described.txt"))
    finally:
        os._exit(code)


def kill(times: int, seed: int, folder: Path) -> None:
    victim = Victim(folder / "victim", seed)
    for _ in range(times):
        victim.kill_once()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        kill(int(sys.argv[1]), 1, Path(made))
    print(f"killed {sys.argv[1]} times: each time the next run finished the work, and repeated none of it")  # noqa: T201 (a script)
