"""A result is there, and the process ends, whatever its threads do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.root_logger import logging_restored

__all__ = ["logging_restored"]

REPOSITORY = Path(__file__).parents[2]

HANGING = """
import asyncio, socket, sys, threading
import discord.http
import clock.threads

for_ever = threading.Event()
clock.threads.ImpatientThreads.__init__.__defaults__ = (0.2,)
clock.threads.leave.__defaults__ = (0.2,)
discord.http.Route.BASE = "http://hangs.invalid/api/v10"
before = socket.getaddrinfo

def getaddrinfo(host, *rest, **more):
    if host == "hangs.invalid":
        for_ever.wait()
    return before(host, *rest, **more)

socket.getaddrinfo = getaddrinfo
import services.discord.live
services.discord.live.identity.__kwdefaults__["timeout_seconds"] = 0.2

import assembly.running
original = assembly.running.run_async

def with_a_thread_that_hangs(work):
    async def both():
        asyncio.get_running_loop().run_in_executor(None, for_ever.wait)
        return await work
    return original(both())

for name in ("ask", "check", "init_kb"):
    module = __import__(f"commands.{name}", fromlist=["x"])
    module.run_async = with_a_thread_that_hangs

import runpy
runpy.run_path("app.py", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--check"], 0, "Discord did not answer within 0.2 s"),
        (["--ask", "How do I install Lanternfish?"], 0, "lanternfish setup"),
        (["--init-kb"], 0, "1 file"),
    ],
)
def test_a_command_with_its_result_ends_while_a_thread_hangs(
    config: Path, arguments: list[str], code: int, says: str
) -> None:
    """Pitfall 65."""
    config.write_text(f"{config.read_text()}search: {{embeddings: none}}\n")
    done = subprocess.run(
        [sys.executable, "-c", HANGING, "--config", str(config), *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert says in done.stdout, done.stderr
    assert done.returncode == code, done.stderr


def test_a_replay_ends_while_a_thread_hangs(config: Path, export: Path) -> None:
    """Pitfall 65."""
    hanging = HANGING.replace(
        "import runpy",
        "import commands.replay as replay\n"
        "made = replay.patient_to_a_point\n"
        "def hung(loop):\n"
        "    made(loop)._default_executor.submit(for_ever.wait)\n"
        "    return loop\n"
        "replay.patient_to_a_point = hung\n"
        "import runpy",
    )
    done = subprocess.run(
        [sys.executable, "-c", hanging, "--config", str(config), "--replay", str(export), "--json"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert '"summary"' in done.stdout, done.stderr
    assert done.returncode == 0
