"""Memory of a live bot that has nothing to do: on a loopback Discord, in a process of its own, without a model and
before the first vector. `python -m benchmarks.idle`, in the project's folder.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.verdicts import verdict
from tests.end_to_end.processes import Process, write_config
from tests.loopback.discord_server import DiscordServer

MAX_MB = 110.0
CONNECTING = 120.0
SETTLING = 10.0
"""Seconds until what follows a connection (commands, the first look at the knowledge base) is over."""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        resident = asyncio.run(measure(Path(folder)))
    return verdict((resident < MAX_MB, f"idle: {resident:.0f} MB resident, less than {MAX_MB:.0f} MB wanted"))


async def measure(folder: Path) -> float:
    """Resident memory in MB. There is no knowledge base, so nothing is embedded."""
    async with DiscordServer() as server:
        server.add_channel("help")
        bot = await Process.start(server, write_config(folder / "data", search={"embeddings": "packaged"}))
        try:
            await server.until(lambda: server.gateway.sessions, CONNECTING)
            await asyncio.sleep(SETTLING)
            return resident_mb(bot.pid)
        finally:
            await bot.kill()


def resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS:")).split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
