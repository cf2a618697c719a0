"""What is captured of real support chats, against what people say belongs together.

    python -m benchmarks.evaluation.captures [FILE…]             the figures, beside what is wanted
    python -m benchmarks.evaluation.captures --sweep [FILE…]     the figures for other settings

FILE is a recording with `<name>.gold.json` beside it. Only its list of the staff is read before the run.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.evaluation import data
from benchmarks.evaluation.conversations import Result, requirements
from benchmarks.evaluation.replaying import (
    configured,
    content_of,
    filed_in,
    judged,
    last_captures,
    replayed,
    replayed_apart,
)
from benchmarks.evaluation.sweep import sweep
from benchmarks.verdicts import verdict
from services.team import exchanges_of

MAX_FILED = 1.05
"""Classifications a captured conversation: a growing one is filed when it is quiet."""


def main(arguments: Sequence[str] | None = None) -> int:
    cli = argparse.ArgumentParser(prog="benchmarks.evaluation.captures", description="Figures of captured chats.")
    cli.add_argument("--sweep", action="store_true", help="the figures for other settings")
    cli.add_argument("files", nargs="*", type=Path, metavar="FILE", help="recordings with a .gold.json beside them")
    options = cli.parse_args(arguments)
    files: list[Path] = options.files or data.recordings()
    if data.unusable(files, "captures"):
        return 2
    if not files:
        print(f"skipped: no annotated recordings; set {data.VARIABLE} to a folder that holds recordings/*.gold.json")
        return 0
    # An empty library is no news here.
    logging.basicConfig(level=logging.ERROR)
    if options.sweep:
        return max(sweep(path) for path in files)
    found: dict[str, Result] = {}
    ends: list[tuple[bool, str]] = []
    for path in files:
        found[path.stem], ended = evaluated(path)
        ends += ended
    return verdict(*requirements(found), *ends)


def evaluated(recording: Path) -> tuple[Result, list[tuple[bool, str]]]:
    """What is captured; how often it is filed; and whether two runs end well and alike."""
    with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
        folder = Path(made)
        config = configured(recording, folder)
        codes = replayed(recording, config, folder / "one"), replayed_apart(recording, config, folder / "two")
        same = content_of(folder / "one") == content_of(folder / "two")
        found = judged(recording, folder / "one")
        filed = filed_in(folder / "one")
        exchanges = [each for pair in last_captures(folder / "one").values() for each in exchanges_of(pair)]
    quotable = sum(each.quotable for each in exchanges)
    print(f"{recording.stem}: of {len(exchanges)} exchanges in captured conversations, {quotable} can be quoted")
    calls = filed / max(found.captured, 1)
    return found, [
        (calls <= MAX_FILED, f"{recording.stem}: {calls:.3f} classifications a conversation, at most {MAX_FILED}"),
        (codes == (0, 0), f"{recording.stem}: both runs end well (exit codes {codes[0]} and {codes[1]})"),
        (same, f"{recording.stem}: all files byte-identical over two runs: {'yes' if same else 'no'}"),
    ]


if __name__ == "__main__":
    sys.exit(main())
