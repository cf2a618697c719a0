"""`python -m benchmarks.one_run ours|baseline RECORDING`: one replay, its figures as JSON on the last line."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from benchmarks.day import team_ids
from benchmarks.measuring import say


def main(bot: str, path: Path) -> None:
    logging.basicConfig(level=logging.WARNING)
    if bot == "ours":
        from benchmarks.ours import ours as run  # noqa: PLC0415 (the other one's modules cost memory)
    else:
        from benchmarks.baseline.run import baseline as run  # noqa: PLC0415 (as above)
    say(run(path, team_ids()))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
