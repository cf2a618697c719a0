"""The figures of one recording for other settings than the defaults."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from benchmarks.evaluation.replaying import configured, judged, pairs_in, replayed

WAITS = (30, 60, 120)
WINDOWS = (60, 300, 900)
LINE = "{:>5} {:>7} {:>13} {:>8} {:>10} {:>8} {:>6} {:>6} {:>7}"


def sweep(recording: Path) -> int:
    """Print a line for each setting; the defaults are marked. Gives the exit code."""
    print(f"{recording.name}: message_batch_wait_seconds, message_grouping_window_seconds, capture_continuations")
    print(LINE.format("wait", "window", "continuations", "replies", "precision", "recall", "held", "convs", "blocks"))
    failed = False
    for wait, window, goes_on in itertools.product(WAITS, WINDOWS, (False, True)):
        keys = {
            "message_batch_wait_seconds": wait,
            "message_grouping_window_seconds": window,
            "capture_continuations": goes_on,
        }
        with tempfile.TemporaryDirectory(prefix="millrace-eval-") as made:
            folder = Path(made)
            failed = bool(replayed(recording, configured(recording, folder, keys), folder / "run")) or failed
            found = judged(recording, folder / "run")
            pairs = pairs_in(folder / "run")
        shares = (f"{float(each):.3f}" for each in (found.replies, found.precision, found.recall, found.held))
        conversations = len({pair.conversation_id for pair in pairs})
        mark = "  the defaults" if (wait, window, goes_on) == (60, 300, False) else ""
        line = LINE.format(wait, window, "on" if goes_on else "off", *shares, conversations, len(pairs))
        print(line + mark, flush=True)
    return 1 if failed else 0
