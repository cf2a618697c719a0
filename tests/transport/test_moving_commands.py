"""`--adopt` and `--export`, typed as an operator does."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import app
from assembly.distributed.roles import warn_of_data_not_in_nats
from services.storage import DataFolder, files, lock
from services.storage.json_state import render_ids
from settings import load
from tests.loopback.nats_server import NatsServer, delete_all_streams
from tests.root_logger import logging_restored
from tests.transport.folders import contents
from transport.connection import Address, connect

__all__ = ["logging_restored"]

pytestmark = pytest.mark.real_time

EXAMPLES = Path(__file__).parents[2] / "examples"
QUESTION = "How do I back up to two vaults?"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def config(tmp_path: Path, nats_server: NatsServer) -> Callable[[str, bool], Path]:
    """A configuration file like the demo's, with this data folder; with NATS or without. The servers hold nothing."""

    async def cleared() -> None:
        client = await connect(Address((nats_server.url,)), "test")
        await delete_all_streams(client)
        await client.close()

    asyncio.run(cleared())

    def write(data: str, with_nats: bool) -> Path:
        demo = (EXAMPLES / "demo.yaml").read_text()
        demo = demo.replace("sources_dir: knowledge-base/sources", f"sources_dir: {EXAMPLES}/knowledge-base/sources")
        demo = re.sub(r"\n  (links_file_path|web_fetch_cache_dir): .*", "", demo)
        transport = nats_server.url if with_nats else "local"
        path = tmp_path / f"{data}-{transport[:5]}.yaml"
        path.write_text(f"{demo}\napp:\n  data_dir: {data}\ntransport: {transport}\n")
        return path

    return write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def typed(config: Path, *words: str) -> tuple[int, str, str]:
        code = app.main(["--config", str(config), *words])
        out, err = capsys.readouterr()
        return code, out, err

    return typed


@pytest.mark.slow
def test_a_learned_day_is_the_same_after_a_move_there_and_back(
    tmp_path: Path, config: Callable[[str, bool], Path], run: Run
) -> None:
    before, after, nats = config("before", False), config("after", False), config("before", True)
    assert run(before, "--init-kb")[0] == 0
    day = ["--replay", str(EXAMPLES / "demo.jsonl"), "--data", str(tmp_path / "before")]
    assert run(config("other", False), *day)[0] == 0
    files.replace(DataFolder(tmp_path / "before").opt_outs, render_ids({7}))

    code, out, err = run(nats, "--adopt", str(tmp_path / "before"))
    assert (code, err) == (0, "")
    assert re.match(r".*before: \d+ files and 1 collection of documents told to nats://127\.0\.0\.1:\d+\.\n", out)
    code, out, err = run(nats, "--export", str(tmp_path / "after"))
    assert (code, err) == (0, "")
    assert f"set transport: local and app.data_dir: {tmp_path / 'after'}" in out

    was, now = kept(tmp_path / "before"), kept(tmp_path / "after")
    # The documents are elsewhere on this disk.
    assert was == {path: data for path, data in now.items() if not path.startswith("knowledge-base/sources/")}
    for words in (["--kb", "list"], ["--report"], ["--usage"], ["--ask", QUESTION]):
        there, here = (run(each, *words) for each in (before, after))
        assert re.sub(r"latency_ms: \d+", "", there[1]) == re.sub(r"latency_ms: \d+", "", here[1]) != ""
        assert there[0] == here[0]


def test_what_was_moved_and_stays_is_named_by_forgetting(
    tmp_path: Path,
    config: Callable[[str, bool], Path],
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pitfall 49."""
    monkeypatch.setenv("APP__SEARCH__EMBEDDINGS", "none")  # most of a replay's time, and no matter here
    nats, data = config("data", True), tmp_path / "data"
    nats.write_text(f"{nats.read_text()}logging: {{file: {{path: {data / 'bot.log'}}}}}\n")
    files.replace(data / "bot.log", b"words")
    day = ["--replay", str(EXAMPLES / "demo.jsonl"), "--data", str(data)]
    assert run(config("other", False), *day)[0] == 0
    files.replace(data / "guilds" / "7" / "team-knowledge" / "raw" / "2026-W07.txt", b"words")
    assert run(nats, "--adopt", str(data))[0] == 0
    for name in ("nats/1/knowledge/index.txt", "nats/1/p03/posts.jsonl", "knowledge-base/mine.txt", "notes/mine.txt"):
        files.replace(data / name, b"words")
    code, out, err = run(nats, "--forget", "1")
    assert (code, err) == (0, "")
    assert not (data / "nats" / "1" / "p03").exists()
    assert (data / "nats" / "1" / "knowledge").exists()
    named = [Path(line.split(": ")[0].strip()) for line in out.splitlines() if "as what counts is in NATS" in line]
    learned = [data / "guilds" / "7" / "team-knowledge", data / "state", data / "team-knowledge"]
    assert {*learned, data / "notes"} <= set(named)
    assert not any(each.is_relative_to(data / home) for each in named for home in ("nats", "knowledge-base"))
    assert data / "bot.log" not in named
    assert f"{data / 'bot.log'}: a log; its lines have their id" in out
    warn_of_data_not_in_nats(load(nats))
    warning = capsys.readouterr().err
    assert "what counts is in NATS, and nobody is forgotten here" in warning
    assert all(str(path) in warning for path in learned)
    assert str(data / "notes") not in warning
    for path in named:
        files.remove_folder(path) if path.is_dir() else files.remove(path)
    warn_of_data_not_in_nats(load(nats))
    assert capsys.readouterr().err == ""
    assert "as what counts is in NATS" not in run(nats, "--forget", "1")[1]


def kept(root: Path) -> dict[str, bytes]:
    """Without databases, whose bytes may differ, and without what says who uses it and where it is from."""
    return {
        path: data
        for path, data in contents(root).items()
        if ".sqlite" not in path and path not in {".lock", ".exported.json"}
    }


def refused(result: tuple[int, str, str], code: int = 2) -> str:
    assert result[:2] == (code, "")
    assert result[2].startswith("app.py: ")
    assert result[2].count("\n") == 1
    return result[2]


def test_what_cannot_be_is_one_line(tmp_path: Path, config: Callable[[str, bool], Path], run: Run) -> None:
    nats, local = config("data", True), config("data", False)
    files.replace(tmp_path / "full" / "a", b"x")
    assert "--export: " in (said := refused(run(nats, "--export", str(tmp_path / "full"))))
    assert "is not an empty folder; name another one" in said
    assert "is no folder; name a data folder" in refused(run(nats, "--adopt", str(tmp_path / "nowhere")))
    assert "--adopt needs the name of a folder" in refused(run(nats, "--adopt", ""))
    assert "--export needs the name of a folder" in refused(run(nats, "--export", ""))
    for option in ("--adopt", "--export"):
        said = refused(run(local, option, str(tmp_path / "full")))
        assert f"{option} needs servers of NATS: set transport to nats://" in said


def test_a_folder_that_is_in_use_is_not_adopted(tmp_path: Path, config: Callable[[str, bool], Path], run: Run) -> None:
    with lock(tmp_path / "data", "app.py"):
        assert "in use by app.py" in refused(run(config("data", True), "--adopt", str(tmp_path / "data")))


@pytest.mark.slow
def test_a_server_that_is_away_is_one_line(
    tmp_path: Path,
    config: Callable[[str, bool], Path],
    run: Run,
    nats_server: NatsServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nats = config("data", True)
    monkeypatch.setattr("transport.connection.CONNECT_SECONDS", 0.2)
    (tmp_path / "data").mkdir()
    nats_server.end()
    try:
        for option in ("--adopt", "--export"):
            assert "nothing listens there (connection refused): check the port" in refused(
                run(nats, option, str(tmp_path / "data"))
            )
    finally:
        nats_server.start()


def test_a_damaged_database_is_named(tmp_path: Path, config: Callable[[str, bool], Path], run: Run) -> None:
    nats, damaged = config("data", True), tmp_path / "data" / "evidence" / "case_1.sqlite"
    damaged.parent.mkdir(parents=True)
    sqlite3.connect(damaged).close()
    damaged.write_bytes(b"SQLite format 3\0 and then something else" * 100)
    said = refused(run(nats, "--adopt", str(tmp_path / "data")), 1)
    assert "evidence/case_1.sqlite" in said
    assert "mend or delete that file and adopt again" in said
