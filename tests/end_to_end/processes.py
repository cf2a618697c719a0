"""The bot as a process of its own: for what only a process shows."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.loopback.discord_server import DiscordServer
from tests.loopback.listener import API

ROOT = Path(__file__).parents[2]
STARTING = 30.0
"""Seconds that the imports of a process may take on a busy machine."""


class Process:
    """Started with `start`; to be ended with `end` or `kill`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(
        cls,
        server: DiscordServer,
        config: Path,
        *arguments: str,
        token: str | None = None,
        umask: int = -1,
        launcher: str = "launcher",
    ) -> Process:
        """`umask`: -1 to leave it as it is; `launcher`: the module beside this one that is run."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            f"tests.end_to_end.{launcher}",
            server.origin + API,
            server.gateway.url,
            "--config",
            str(config),
            *arguments,
            cwd=ROOT,
            env={**os.environ, "APP__DISCORD__TOKEN": token or server.token},
            stderr=asyncio.subprocess.PIPE,
            umask=umask,
        )
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def over(self) -> bool:
        return self._process.returncode is not None

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    async def end(self, within: float = 20.0) -> tuple[int, str]:
        """Wait for its end; gives the exit code and what it wrote to stderr."""
        async with asyncio.timeout(within):
            _, said = await self._process.communicate()
        assert self._process.returncode is not None
        return self._process.returncode, said.decode()

    @property
    def stderr(self) -> asyncio.StreamReader:
        """For who reads it while it runs, and then waits with `wait` in the place of `end`."""
        assert self._process.stderr is not None
        return self._process.stderr

    async def wait(self, within: float) -> int:
        """Wait for its end; gives the exit code."""
        async with asyncio.timeout(within):
            return await self._process.wait()

    async def kill(self) -> None:
        """As a power cut would."""
        if not self.over:
            self._process.kill()
        await self._process.communicate()


def write_config(data: Path, **sections: dict[str, Any]) -> Path:
    """A config.yaml beside a data folder."""
    quick: dict[str, dict[str, Any]] = {
        "app": {"data_dir": str(data)},
        "discord": {"message_batch_wait_seconds": 0.15},
        "search": {"embeddings": "none"},
    }
    path = data.with_name("config.yaml")
    path.write_text(
        yaml.safe_dump({name: quick.get(name, {}) | sections.get(name, {}) for name in {*quick, *sections}})
    )
    return path
