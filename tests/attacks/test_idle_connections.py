"""More idle connections than the process may have open files: every reply is there all the same (H2)."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.commands.mcp_server.test_http import free_port
from tests.examples.test_demo_files import EXAMPLES

pytestmark = pytest.mark.real_time

DESCRIPTORS, CONNECTIONS, SPEED = 256, 300, 20_000


def replayed(data: Path, *options: str, port: int = 0) -> subprocess.Popen[bytes]:
    demo = ["--config", str(EXAMPLES / "demo.yaml"), "--replay", str(EXAMPLES / "demo.jsonl"), "--data", str(data)]
    out, err = (data.with_suffix(ending) for ending in (".out", ".err"))
    with out.open("wb") as stdout, err.open("wb") as stderr:
        return subprocess.Popen(
            [
                "/bin/sh",
                "-c",
                f'ulimit -n {DESCRIPTORS}; exec "$0" "$@"',
                sys.executable,
                "app.py",
                *demo,
                "--json",
                *options,
            ],
            cwd=EXAMPLES.parent,
            env={"PATH": "", "APP__METRICS__PORT": str(port), "APP__DASHBOARD__ENABLED": "true" if port else "false"},
            stdout=stdout,
            stderr=stderr,
        )


def replies(data: Path) -> list[Any]:
    lines = data.with_suffix(".out").read_text().splitlines()
    return [(line["message_ids"], line["reply_text"]) for line in map(json.loads, lines[:-1])]


def connected(port: int, stack: ExitStack) -> None:
    one = stack.enter_context(socket.socket())
    one.settimeout(5)
    one.connect(("127.0.0.1", port))


def test_idle_connections_cost_no_reply_and_few_lines(tmp_path: Path) -> None:
    alone, besieged, port = tmp_path / "alone", tmp_path / "besieged", free_port()
    assert replayed(alone).wait(300) == 0
    process = replayed(besieged, "--speed", str(SPEED), port=port)
    with ExitStack() as stack:
        stack.callback(process.kill)
        until = time.monotonic() + 120
        while True:
            try:
                connected(port, stack)
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.05)
        for _ in range(CONNECTIONS):
            connected(port, stack)
        assert process.wait(300) == 0
    assert replies(besieged) == replies(alone)
    log = besieged.with_suffix(".err").read_text().splitlines()
    assert any("connections within a minute were closed" in line for line in log)
    assert len(log) < 50
