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
from dataclasses import dataclass
from pathlib import Path

from benchmarks.evaluation import data
from benchmarks.evaluation.conversations import Figures
from benchmarks.evaluation.replaying import configured, content_of, judged, replayed, replayed_apart
from benchmarks.evaluation.sweep import sweep
from benchmarks.verdicts import verdict


@dataclass(frozen=True, slots=True)
class Wanted:
    """The least that each figure may be; 0: shown, and not judged."""

    replies: float = 0.96
    precision: float = 0.0
    recall: float = 0.0
    held: float = 0.0


WANTED = {"stripe-0": Wanted(precision=0.88, recall=0.42, held=0.78)}
"""By recording. Of one that is not named, only the replies are judged: how much of a conversation can be captured
at all depends on how much of it staff have written.
"""


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
    return max(evaluated(path) for path in files)


def evaluated(recording: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
        folder = Path(made)
        config = configured(recording, folder)
        codes = replayed(recording, config, folder / "one"), replayed_apart(recording, config, folder / "two")
        same = content_of(folder / "one") == content_of(folder / "two")
        found = judged(recording, folder / "one")
    print(f"{recording.name}: {found.captured_count} captured conversations with annotated messages")
    wanted = WANTED.get(recording.stem, Wanted())
    return verdict(
        *requirements(found, wanted),
        (codes == (0, 0), f"both runs end well (exit codes {codes[0]} and {codes[1]})"),
        (same, f"all files byte-identical over two runs: {'yes' if same else 'no'}"),
    )


def requirements(found: Figures, wanted: Wanted) -> list[tuple[bool, str]]:
    """Those of the figures that are judged; the others are only printed."""
    judged_ones: list[tuple[bool, str]] = []
    for what, share, least in (
        (f"staff's {found.reply_count} replies in one pair with what they answer", found.replies, wanted.replies),
        ("precision of captured conversations", found.precision, wanted.precision),
        ("their recall", found.recall, wanted.recall),
        (f"held of the {found.mixed_count} messages between users and staff", found.held, wanted.held),
    ):
        text = f"{what}: {float(share):.3f}"
        if least:
            judged_ones.append((share >= least, f"{text}, at least {least:.2f} wanted"))
        else:
            print(f"      {text}")
    return judged_ones


if __name__ == "__main__":
    sys.exit(main())
