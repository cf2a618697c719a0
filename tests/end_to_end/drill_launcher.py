"""As `launcher`, with incidents that begin and end within a second, and a disk as full as a file says.

The file `free_bytes` beside the configuration says how much room there is.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import assembly.bot
import assembly.health
import operators.incidents
import services.llm.resilience
from streams.gateway import Gateway
from tests.disk_room import disk_with
from tests.end_to_end.launcher import main

SAMPLE_SECONDS, SETTLE_SECONDS, PAUSE_SECONDS = 0.1, 1.0, 0.2


def pause(_failures: int) -> float:
    return PAUSE_SECONDS


def hurry(free_bytes: Path) -> None:
    def room(path: object) -> SimpleNamespace:
        return disk_with(total=2e10, free=float(free_bytes.read_text()))(path)

    assembly.health.SAMPLE_SECONDS = SAMPLE_SECONDS
    operators.incidents.SETTLE_SECONDS = SETTLE_SECONDS
    services.llm.resilience.OPEN_SECONDS = PAUSE_SECONDS
    assembly.bot.Gateway = partial(Gateway, pause=pause)
    shutil.disk_usage = room


if __name__ == "__main__":
    hurry(Path(sys.argv[sys.argv.index("--config") + 1]).with_name("free_bytes"))
    sys.exit(main())
