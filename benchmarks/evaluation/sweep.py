"""The figures of one recording for other settings than the defaults."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from benchmarks.evaluation.replaying import configured, judged, pairs_in, replayed

WAITS = (30, 60, 120)
WINDOWS = (60, 300, 900)
LINE = "{:>5} {:>7} {:>8} {:>10} {:>8} {:>6} {:>6} {:>7}"


def sweep(recording: Path) -> int:
    """Print a line for each setting; the defaults are marked. Gives the exit code."""
    print(f"{recording.name}: message_batch_wait_seconds, message_grouping_window_seconds")
    print(LINE.format("wait", "window", "replies", "precision", "recall", "held", "convs", "blocks"))
    failed = False
    for wait, window in itertools.product(WAITS, WINDOWS):
        keys = {"message_batch_wait_seconds": wait, "message_grouping_window_seconds": window}
        with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
            folder = Path(made)
            failed = bool(replayed(recording, configured(recording, folder, keys), folder / "run")) or failed
            found = judged(recording, folder / "run").figures
            pairs = pairs_in(folder / "run")
        shares = (f"{float(each):.3f}" for each in (found.replies, found.precision, found.recall, found.held))
        conversations = len({pair.conversation_id for pair in pairs})
        mark = "  the defaults" if (wait, window) == (60, 300) else ""
        line = LINE.format(wait, window, *shares, conversations, len(pairs))
        print(line + mark, flush=True)
    return 1 if failed else 0
