"""More idle connections than the process may have open files: every reply is there all the same (H2)."""

from __future__ import annotations

import json
import select
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

DESCRIPTORS, CONNECTIONS, SPEED = 256, 300, 4_000
EVENTS = 40  # of the demo: its first hours


def replayed(data: Path, *options: str, port: int = 0) -> subprocess.Popen[bytes]:
    recording = data.with_suffix(".jsonl")
    recording.write_text("".join((EXAMPLES / "demo.jsonl").read_text().splitlines(keepends=True)[:EVENTS]))
    demo = ["--config", str(EXAMPLES / "demo.yaml"), "--replay", str(recording), "--data", str(data)]
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
            env={
                "PATH": "",
                "APP__METRICS__PORT": str(port),
                "APP__DASHBOARD__ENABLED": "true" if port else "false",
                "APP__SEARCH__EMBEDDINGS": "none",
            },
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


def begun(port: int, stack: ExitStack) -> socket.socket:
    one = stack.enter_context(socket.socket())
    one.setblocking(False)
    one.connect_ex(("127.0.0.1", port))
    return one


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
        # None waits for another: a queue that is full costs each a second, and the replay does not wait.
        waiting = [begun(port, stack) for _ in range(CONNECTIONS)]
        reached = 0
        while process.poll() is None:
            _, writable, _ = select.select([], waiting, [], 0.1)
            reached += sum(not one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for one in writable)
            waiting = [one for one in waiting if one not in writable]
            assert time.monotonic() < until + 180
        assert process.wait() == 0
    assert reached > DESCRIPTORS
    assert replies(besieged) == replies(alone)
    assert sum(reply is not None for _, reply in replies(alone)) > 5
    log = besieged.with_suffix(".err").read_text().splitlines()
    assert any("connections within a minute were closed" in line for line in log)
    assert len(log) < 50
