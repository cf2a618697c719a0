"""A dashboard that a browser looks at: served by a thread of the test, or by a replay in a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from tests.dashboard.made import Box

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "examples" / "demo.jsonl"
ALONE = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


class Served:
    """`box` at `address`; `tell` runs a function on its loop."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.address = ""
        self._loop = asyncio.new_event_loop()

    def tell(self, fn: Callable[..., Any], *arguments: Any) -> None:
        async def told() -> None:
            fn(*arguments)

        asyncio.run_coroutine_threadsafe(told(), self._loop).result(10)

    @contextmanager
    def running(self) -> Generator[None]:
        application = web.Application()
        self.box.add_to(application)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)

        async def begin() -> None:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.address = f"http://127.0.0.1:{runner.addresses[0][1]}"

        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(begin(), self._loop).result(10)
            yield
        finally:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)
            self._loop.close()


@contextmanager
def served_to_browsers(box: Box) -> Generator[Served]:
    served = Served(box)
    with served.running():
        yield served


def one_question(path: Path) -> None:
    """A recording with one question a minute after it begins, and one a day later, which keeps a replay running."""
    ready, guild, *rest = DEMO.read_text("utf-8").splitlines()
    question = next(line for line in rest if "default password" in line and '"MESSAGE_CREATE"' in line)
    opening = [line.replace("2026-03-11T00:00:00.000Z", "2026-03-11T00:40:00.000Z", 1) for line in (ready, guild)]
    path.write_text("\n".join([*opening, question, rest[-1]]) + "\n", "utf-8")


@contextmanager
def replayed(folder: Path, *, speed: int) -> Generator[str]:
    """Through the real command; gives the address that it prints."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    chosen: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "demo.yaml").read_text("utf-8"))
    for name in ("sources_dir", "links_file_path", "web_fetch_cache_dir"):
        chosen["kb"][name] = str(ROOT / "examples" / chosen["kb"][name])
    chosen |= {"metrics": {"port": port}, "dashboard": {"enabled": True, "show_texts": True}}
    chosen["search"] = {"embeddings": "none"}  # most of the time until it begins, and no matter here
    (folder / "config.yaml").write_text(yaml.safe_dump(chosen), "utf-8")
    one_question(folder / "question.jsonl")
    arguments = ("--config", str(folder / "config.yaml"), "--replay", str(folder / "question.jsonl"))
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "app.py"), *arguments, "--speed", str(speed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            said = process.stdout.readline() + process.stdout.readline()
            found = re.search(r"dashboard at (http://\S+/)", said)
            assert found is not None, said
            yield found[1]
        finally:
            process.terminate()
            process.stdout.read()
