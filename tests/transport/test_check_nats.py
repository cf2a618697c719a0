"""`--check` where the transport is NATS, as it is typed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import app
from tests.loopback.nats_server import NatsServer, delete_all_streams, free_port
from transport.connection import Address, connect
from transport.streams import Layout, create_streams

pytestmark = pytest.mark.real_time


def checked(capsys: pytest.CaptureFixture[str], tmp_path: Path, transport: str, more: str = "") -> tuple[int, str]:
    config = tmp_path / "config.yaml"
    config.write_text(f"transport: {transport}\napp: {{data_dir: {tmp_path / 'data'}}}\n{more}")
    return app.main(["--config", str(config), "--check"]), capsys.readouterr().out


def begin_anew(url: str, layout: Layout | None) -> None:
    async def begun() -> None:
        client = await connect(Address((url,)), "test")
        await delete_all_streams(client)
        if layout is not None:
            await create_streams(client, layout)
        await client.close()

    asyncio.run(begun())


def row(out: str, about: str) -> str:
    return next(line for line in out.splitlines() if line.split()[0] == about)


def test_servers_and_streams_have_rows_and_nothing_is_made(
    nats_server: NatsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 70."""
    begin_anew(nats_server.url, None)
    _, out = checked(capsys, tmp_path, nats_server.url)
    assert row(out, "transport").split(maxsplit=2)[1] == "ok"
    assert "and keeps streams (JetStream)" in row(out, "transport")
    assert "nothing is kept there yet" in row(out, "nats.partitions")
    assert row(out, "nats.credentials_env").endswith("skipped  NATS_CREDS is not set: no credentials are shown")
    assert "kb.index_path" not in out, "what others hand on is not on this disk"
    assert not (tmp_path / "data").exists()

    begin_anew(nats_server.url, Layout(partitions=8))
    code, out = checked(capsys, tmp_path, nats_server.url)
    assert code == 2
    assert row(out, "nats.partitions").split(maxsplit=2)[1] == "missing"
    assert "the stream MESSAGES was made as messages.{{partition(8,1)}}" in row(out, "nats.partitions")
    _, out = checked(capsys, tmp_path, nats_server.url, "nats: {partitions: 8}\n")
    assert row(out, "nats.partitions").endswith("ok       8: 5 streams, made as nats.partitions and nats.replicas say")


def test_a_silent_server_is_a_warning_while_another_answers(
    nats_server: NatsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = f"nats://127.0.0.1:{free_port()}"
    _, out = checked(capsys, tmp_path, f"{nobody},{nats_server.url}")
    assert row(out, "transport").split(maxsplit=2)[1] == "warning"
    assert row(out, "transport").endswith("; the others are used")
    code, out = checked(capsys, tmp_path, nobody)
    assert code == 2
    assert row(out, "transport").split(maxsplit=2)[1] == "missing"


def test_a_file_of_credentials_that_is_not_there_is_the_only_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_CREDS", str(tmp_path / "gone.creds"))
    code, out = checked(capsys, tmp_path, "nats://127.0.0.1:9")
    assert code == 2
    assert "missing" in row(out, "nats.credentials_env")
    assert "gone.creds cannot be read (No such file or directory)" in row(out, "nats.credentials_env")
    code = app.main(["--config", str(tmp_path / "config.yaml"), "--role", "worker"])
    assert code == 2
    line = capsys.readouterr().err
    assert line.startswith("app.py: nats.credentials_env: NATS_CREDS: ")
    assert line.count("\n") == 1


def test_what_a_start_refuses_has_a_row(
    nats_server: NatsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 70."""
    begin_anew(nats_server.url, None)
    code, out = checked(capsys, tmp_path, nats_server.url, "documents: {store: 'http://127.0.0.1:9'}\n")
    assert code == 2
    rows = [line for line in out.splitlines() if line.startswith("documents.store")]
    assert any("over NATS files are kept in its buckets" in line for line in rows)
