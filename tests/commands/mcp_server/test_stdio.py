"""`--mcp` over stdin and stdout: the real process, and the package's own client."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from commands.mcp_server.protocol import MAX_MESSAGE_BYTES
from commands.mcp_server.serving import AT_TERMINAL
from services.storage import lock
from tests.commands.mcp_server.assistant import call, data, words
from tests.commands.mcp_server.conftest import traces_in
from tests.commands.mcp_server.processes import INITIALIZE, ROOT, ended, started, stream


@pytest.mark.real_time
@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.slow)])
async def test_an_assistant_starts_it_and_asks_while_the_bot_runs(knowing: Path, tmp_path: Path, mode: str) -> None:
    """Of an assistant that speaks the newest protocol, and of one that speaks the older ones. Pitfalls 42 and 50."""
    folder = knowing.parent / "data"
    command = ["app.py", "--config", str(knowing), "--mcp"]
    parameters = StdioServerParameters(command=sys.executable, args=command, cwd=ROOT)
    with (tmp_path / "stderr.txt").open("w+") as errors, lock(folder, "app.py"):
        before = traces_in(folder)
        async with Client(stdio_client(parameters, errlog=errors), mode=mode) as client:
            assert {"search", "ask"} <= {tool.name for tool in (await client.list_tools()).tools}
            found = data(await call(client, "search", query="install Lanternfish"))
            assert found["passages"][0]["source_id"] == "kb:install.md"
            answer = await call(client, "ask", question="How do I install Lanternfish?")
            assert "lanternfish setup" in words(answer)
        errors.seek(0)
        assert errors.read() == ""
        assert traces_in(folder) == before


def test_somebody_at_a_terminal_is_told_who_talks_to_it(knowing: Path) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(ours, "wb", buffering=0), os.fdopen(theirs, "rb", buffering=0) as terminal:
        process = started(knowing, stdin=terminal)
        assert stream(process.stderr).readline().decode().strip() == AT_TERMINAL
        process.send_signal(signal.SIGINT)
        assert ended(process) == (0, "", "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_although_its_client_is_still_there(knowing: Path, number: signal.Signals) -> None:
    """Pitfalls 8 and 65."""
    process = started(knowing)
    stream(process.stdin).write(INITIALIZE)
    stream(process.stdin).flush()
    assert b'"result"' in stream(process.stdout).readline()
    process.send_signal(number)
    assert process.wait(timeout=30) == 0
    assert stream(process.stderr).read() == b""
    process.communicate()


def test_a_client_that_goes_ends_it(knowing: Path) -> None:
    """Pitfall 65."""
    process = started(knowing)
    assert ended(process) == (0, "", "")


@pytest.mark.slow
def test_a_client_that_stops_reading_is_no_traceback(knowing: Path) -> None:
    process = started(knowing)
    stream(process.stdout).close()
    stream(process.stdin).write(INITIALIZE)
    stream(process.stdin).close()
    assert process.wait(timeout=30) == 0
    assert stream(process.stderr).read() == b""
    stream(process.stderr).close()


def test_what_is_no_message_is_survived(knowing: Path) -> None:
    """Pitfall 64: also a line that does not end."""
    process = started(knowing)
    stream(process.stdin).write(b"nonsense\n\xff\xfe\n[]\n" + b"x" * 3 * MAX_MESSAGE_BYTES + b"\n" + INITIALIZE)
    stream(process.stdin).flush()
    line = stream(process.stdout).readline()
    while b'"result"' not in line:
        assert line, stream(process.stderr).read().decode()
        line = stream(process.stdout).readline()
    code, _, err = ended(process)
    assert code == 0
    assert "Traceback" not in err
