"""A server of Chroma on loopback: one that is named, or one of our own where `make test-chroma` has installed it."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from services.documents.store.chroma import chroma_store
from services.documents.store.document_store import DocumentStore

ADDRESS = "MILLRACE_CHROMA"
"""An environment variable: `http://127.0.0.1:8000`."""

PYTHON = Path(__file__).parents[4] / ".venv-chroma" / "bin" / "python"
"""Of an environment with the package of the server, and nothing that the package needs as a library."""

START = "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"
READY_SECONDS = 60.0


class Server:
    """Started with `start`; after `kill` it can be started again on what it has kept, at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        command = [PYTHON, "-c", START, "run", "--path", self.folder, "--host", "127.0.0.1", "--port", str(self._port)]
        environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        listening, said = threading.Event(), list[bytes]()
        threading.Thread(target=_read, args=(self._process, listening, said), daemon=True).start()
        assert listening.wait(READY_SECONDS), f"no server of Chroma came up: {b''.join(said).decode()}"
        # It says so a moment before it does.
        while self._process.poll() is None and not self._answers():
            threading.Event().wait(0.01)
        assert self._process.poll() is None, f"the server of Chroma has ended: {b''.join(said).decode()}"

    def _answers(self) -> bool:
        with socket.socket() as asking:
            return asking.connect_ex(("127.0.0.1", self._port)) == 0

    def kill(self) -> None:
        """As a power cut: nothing is finished."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def skip_where_there_is_none() -> None:
    if importlib.util.find_spec("chromadb") is None:
        pytest.skip("the extra `chroma` is not installed")
    if not os.environ.get(ADDRESS) and not PYTHON.exists():
        pytest.skip(f"no server of Chroma: `make test-chroma` installs one, or set {ADDRESS} to the address of yours")


def skip_where_none_can_be_started() -> None:
    skip_where_there_is_none()
    if not PYTHON.exists():
        pytest.skip("the server is not ours to stop: `make test-chroma` installs one that is")


def new_store(folder: Path, address: str) -> DocumentStore:
    return chroma_store(address, folder)


def _read(process: subprocess.Popen[bytes], listening: threading.Event, said: list[bytes]) -> None:
    """All that it says, so that it never waits for a reader; until it listens, what that was."""
    assert process.stdout is not None
    with process.stdout as lines:
        for line in lines:
            if not listening.is_set():
                said.append(line)
            if b"listening on address" in line:
                listening.set()
    listening.set()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
