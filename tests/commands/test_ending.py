"""A result is there, and the process ends, whatever its threads do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.loopback.served import serving
from tests.loopback.web_server import hang, page
from tests.root_logger import logging_restored

__all__ = ["logging_restored"]

REPOSITORY = Path(__file__).parents[2]

HANGING = """
import asyncio, socket, sys, threading
import discord.http
import clock.threads

for_ever = threading.Event()
clock.threads.PATIENCE_SECONDS = 0.2
discord.http.Route.BASE = "http://hangs.invalid/api/v10"
before = socket.getaddrinfo

def getaddrinfo(host, *rest, **more):
    if host == "hangs.invalid":
        for_ever.wait()
    return before(host, *rest, **more)

socket.getaddrinfo = getaddrinfo
import services.discord.live
sys.modules["services.discord.live.identity"].PROBE_SECONDS = 0.2

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

READERS_STAND_STILL = """
import signal
from clock import Processes

started = Processes._start_process

async def standing(processes):
    process = await started(processes)
    process.send_signal(signal.SIGSTOP)
    return process

Processes._start_process = standing

import runpy
runpy.run_path("app.py", run_name="__main__")
"""


@pytest.mark.slow
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
        "made = replay.with_bounded_shutdown\n"
        "def hung(loop):\n"
        "    made(loop)._default_executor.submit(for_ever.wait)\n"
        "    return loop\n"
        "replay.with_bounded_shutdown = hung\n"
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "path", "why"),
    [
        (["app.py"], "/hangs", "no whole answer within 0.5 s"),
        (["-c", READERS_STAND_STILL], "/page", "longer than 0.5 s"),
    ],
    ids=["server", "extraction"],
)
def test_an_update_with_its_result_ends_while_a_web_server_or_the_reading_of_a_page_hangs(
    config: Path, program: list[str], path: str, why: str
) -> None:
    """Pitfall 65."""
    kb = "{web_fetch_private_hosts: [127.0.0.1], web_fetch_timeout_seconds: 0.5}"
    config.write_text(f"{config.read_text()}search: {{embeddings: none}}\nkb: {kb}\n")
    with serving() as server:
        server.paths |= {"/hangs": hang, "/page": page("<html><body><p>Of millstones.</p></body></html>")}
        url = f"{server.origin}{path}"
        (config.parent / "data" / "knowledge-base" / "links.txt").write_text(f"{url}\n")
        done = subprocess.run(
            [sys.executable, *program, "--config", str(config), "--init-kb"],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert [asked for asked, _ in server.seen] == [path]
    assert "1 file" in done.stdout, done.stderr
    [line] = [each for each in (done.stdout + done.stderr).splitlines() if why in each]
    assert url in line
    assert done.returncode == 1
