"""A run of `--init-kb` in a process of its own, with descriptions that take a moment; for tests that kill it.

    python -m tests.commands.kb_run CONFIG SECONDS LOG [QUICK]

Appends the id of each source to LOG when it is described. After the first QUICK ones a description takes a minute;
the first of those is told with a line.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import assembly.knowledge
import streams.knowledge
from app import main as run

MINUTE = 60.0
WAITING = "a description takes a minute"


class SlowDescriber:
    key = "slow"

    def __init__(self, seconds: float, log: Path, quick: int) -> None:
        self._seconds = seconds
        self._log = log
        self._quick = quick

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = timeout_seconds
        with self._log.open("a") as file:
            file.write(f"{source_id}\n")
        self._quick -= 1
        if self._quick == -1:
            print(WAITING, flush=True)  # noqa: T201 (to the test that waits for it)
        await asyncio.sleep(self._seconds if self._quick >= 0 else MINUTE)
        return f"About {text.splitlines()[0]}"


def main(config: str, seconds: str, log: str, quick: str = "1_000_000") -> int:
    describer = SlowDescriber(float(seconds), Path(log), int(quick))

    def describer_of(*_: object) -> SlowDescriber:
        return describer

    # As from a terminal: what a shell puts into the background, with all that it starts, does not hear of Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assembly.knowledge.describer_of = describer_of
    # Writes without a pause, so that there are more moments between two of them to be killed in.
    streams.knowledge.PAUSE_SECONDS = 0.01
    return run(["--config", config, "--init-kb"])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
