"""`--mcp` over a real server of NATS: what all processes answer from."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import app
from tests.commands.mcp_server.assistant import call, data, words
from tests.commands.mcp_server.conftest import traces_in, with_sections
from tests.commands.mcp_server.processes import ROOT, ended, started
from tests.loopback.nats_server import NatsServer, binary
from transport.connection import Address, connect, streams_of
from transport.fenced_log import FencedLog
from transport.folder_log import FolderPublisher
from transport.streams import TEAM

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif(binary() is None, reason="nats-server is not here"),
]
WITHIN_SECONDS = 20.0
TAUGHT = "team-knowledge/topics/taught.txt"
TAUGHT_TEXT = """\
--- QA ---
id: qa_20260202_031057.000000
timestamp: 2026-02-02T03:10:57.000000Z
said_at: 2026-02-02T03:09:41.120000Z
User: How do I polish the zirconium chandelier?
Team: With a microfibre cloth.
"""
INDEXED = "\nteam:taught.txt\nHow to polish the zirconium chandelier.\n"


@pytest.fixture
def server(tmp_path: Path) -> Generator[NatsServer]:
    with NatsServer(tmp_path) as server:
        yield server


@pytest.fixture
def adopted(knowing: Path, server: NatsServer) -> Path:
    """A configuration whose data NATS holds, and the data folder no more."""
    with_sections(knowing, transport=server.url)
    folder = knowing.parent / "data"
    assert app.main(["--config", str(knowing), "--adopt", str(folder)]) == 0
    folder.rename(folder.with_name("before"))
    return knowing


async def teach(url: str, folder: Path) -> None:
    """As the process that keeps the archive hands a topic on."""
    (folder / TAUGHT).write_text(TAUGHT_TEXT)
    index = folder / "team-knowledge" / "index-team.txt"
    index.write_text(index.read_text() + INDEXED)
    client = await connect(Address((url,)), "test")
    fenced = FencedLog(streams_of(client), TEAM)
    await fenced.open("test", 0.0)
    await FolderPublisher(fenced, folder, ["team-knowledge"]).publish()
    await client.close()


@pytest.mark.slow
async def test_an_assistant_is_answered_from_what_nats_holds_and_from_what_is_taught_since(
    adopted: Path, server: NatsServer, tmp_path: Path
) -> None:
    command = ["app.py", "--config", str(adopted), "--mcp"]
    parameters = StdioServerParameters(command=sys.executable, args=command, cwd=ROOT)
    with (tmp_path / "stderr.txt").open("w+") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            found = data(await call(client, "search", query="install Lanternfish"))
            assert found["passages"][0]["source_id"] == "kb:install.md"
            assert "lanternfish setup" in words(await call(client, "ask", question="How do I install Lanternfish?"))
            await teach(server.url, adopted.parent / "before")
            async with asyncio.timeout(WITHIN_SECONDS):
                while "team:taught.txt" not in words(await call(client, "search", query="zirconium chandelier")):  # noqa: ASYNC110 (another process is asked)
                    await asyncio.sleep(0.1)
        errors.seek(0)
        assert errors.read() == ""
    data_folder = adopted.parent / "data"
    assert not data_folder.exists() or not any(name.endswith(".txt") for name in traces_in(data_folder))


def test_files_of_threads_are_said_to_be_left_out(adopted: Path) -> None:
    with_sections(adopted, mcp={"channels": [1]}, documents={"enabled": True})
    code, _, err = ended(started(adopted))
    assert code == 0
    assert "mcp.channels: files of threads are not served over NATS" in err


def test_servers_that_hold_nothing_are_one_line(knowing: Path, server: NatsServer) -> None:
    with_sections(knowing, transport=server.url)
    code, _, err = ended(started(knowing))
    assert (code, err.count("\n")) == (2, 1)
    assert "nothing is kept there" in err
