"""`python -m benchmarks.one_run ours|probed|baseline RECORDING`: one replay, its figures as JSON on the last line.

`probed` is ours with the longest callback measured, which costs CPU.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks.day import team_ids
from benchmarks.heartbeat import longest_callback
from benchmarks.measuring import say


def main(bot: str, path: Path) -> None:
    logging.basicConfig(level=logging.WARNING)
    if bot != "baseline":
        from benchmarks.ours import ours as run  # noqa: PLC0415 (the other one's modules cost memory)
    else:
        from benchmarks.baseline.run import baseline as run  # noqa: PLC0415 (as above)
    if bot != "probed":
        say(run(path, team_ids()))
        return
    with longest_callback() as longest:
        figures = run(path, team_ids())
    say(replace(figures, longest_seconds=longest.seconds))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
