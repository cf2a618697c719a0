"""The command as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "app.py"]
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"test","version":"1"}}}\n'
)


def started(
    config: Path, *way: str, stdin: IO[bytes] | int = subprocess.PIPE, **environment: str
) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    env = {**os.environ, **environment}
    command = [*COMMAND, "--config", str(config), "--mcp", *way]
    return subprocess.Popen(command, cwd=ROOT, env=env, stdin=stdin, stdout=pipe, stderr=pipe)


def stream(given: IO[bytes] | None) -> IO[bytes]:
    assert given is not None
    return given


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    """The exit code, and the rest of what it wrote to stdout and stderr."""
    out, err = process.communicate(timeout=30)
    return process.returncode, out.decode(), err.decode()
