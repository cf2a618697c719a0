"""A run of `--init-kb` in a process of its own, with descriptions that take a moment; for tests that kill it.

    python -m tests.commands.kb_run CONFIG SECONDS LOG

Appends the id of each source to LOG when it is described.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import commands.knowing
import streams.knowledge
from commands.init_kb import init_kb
from settings import load


class SlowDescriber:
    key = "slow"

    def __init__(self, seconds: float, log: Path) -> None:
        self._seconds = seconds
        self._log = log

    async def summarize_for_kb_index(self, source_id: str, text: str, timeout_seconds: float) -> str:
        _ = timeout_seconds
        with self._log.open("a") as file:
            file.write(f"{source_id}\n")
        await asyncio.sleep(self._seconds)
        return f"About {text.splitlines()[0]}"


def main(config: str, seconds: str, log: str) -> int:
    describer = SlowDescriber(float(seconds), Path(log))

    def describer_of(*_: object) -> SlowDescriber:
        return describer

    commands.knowing.describer_of = describer_of
    # Writes without a pause, so that there are more moments between two of them to be killed in.
    streams.knowledge.PAUSE_SECONDS = 0.01
    return init_kb(load(Path(config)), record=None, replay=None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
