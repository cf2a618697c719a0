"""`--init-kb` when somebody unplugs something: one readable line, the right exit code, and nothing lost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app import main
from services.knowledge import cache
from services.knowledge.cache import Record
from tests.commands.kb_run import WAITING
from tests.shelves import RECORDS

FILES, DONE = 40, 25


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sources = tmp_path / "data" / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    for number in range(FILES):
        (sources / f"{number:02}.md").write_text(f"Subject {number}\n")
    (tmp_path / "config.yaml").write_text("{}\n")
    return tmp_path


def base(root: Path) -> Path:
    return root / "data" / "knowledge-base"


def run(root: Path) -> int:
    return main(["--config", str(root / "config.yaml"), "--init-kb"])


def begun(root: Path) -> subprocess.Popen[str]:
    """A run of its own that has `DONE` descriptions behind it, and waits for the next ones."""
    running = subprocess.Popen(kb_run(root, str(DONE)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    if running.stdout.readline() != f"{WAITING}\n":
        running.kill()
        pytest.fail(str(running.communicate()))
    return running


def kb_run(root: Path, *more: str) -> list[str]:
    """Descriptions take next to no time."""
    command = [sys.executable, "-m", "tests.commands.kb_run", str(root / "config.yaml"), "0"]
    return [*command, str(described_log(root)), *more]


def described_log(root: Path) -> Path:
    return root / "described.txt"


def described(root: Path) -> list[str]:
    return described_log(root).read_text().split() if described_log(root).exists() else []


def records(root: Path) -> dict[str, Record]:
    return cache.parse((base(root) / "index-cache.json").read_bytes(), RECORDS)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_stop_it_keeps_what_it_has(root: Path, number: int) -> None:
    """Pitfall 8, and pitfall 42 in between."""
    running = begun(root)
    with running:
        second = subprocess.run(
            [sys.executable, "app.py", "--config", str(root / "config.yaml"), "--init-kb"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 2
        assert f"in use by app.py --init-kb (process {running.pid}" in second.stderr
        assert second.stderr.count("\n") == 1
        running.send_signal(number)
        out, err = running.communicate(timeout=10)
    assert (running.returncode, out) == (1, "")
    kept = f"app.py: interrupted: done and kept are {DONE} of {FILES} sources; the same command goes on from there\n"
    assert err == kept
    done = {name for name, record in records(root).items() if record.is_described}
    # All but those under way are on disk, and in the index.
    assert len(done) == DONE
    assert (base(root) / "index.txt").read_text().count("kb:") == DONE
    described_log(root).unlink()
    assert subprocess.run(kb_run(root), capture_output=True, check=False).returncode == 0
    assert len(described(root)) == FILES - DONE
    assert not done & set(described(root))


def test_on_a_full_disk_the_old_files_stay_whole(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root) == 0
    before = {path: path.read_bytes() for path in base(root).glob("index*")}
    for number in range(FILES, 2 * FILES):
        (base(root) / "sources" / f"{number:02}.md").write_text(f"Subject {number}\n")
    capsys.readouterr()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        code = run(root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    out, err = capsys.readouterr()
    assert code == 1
    assert err.count("\n") == 1
    assert f"write: {base(root) / 'index-cache.json'}: File too large" in err
    assert f"the index has {FILES} entries" in out
    assert {path: path.read_bytes() for path in base(root).glob("index*")} == before
    assert not list(base(root).glob(".unfinished*"))
    assert run(root) == 0
    assert len(records(root)) == 2 * FILES


@pytest.mark.parametrize("key", ["index_path", "index_cache_path", "web_fetch_cache_dir"])
def test_where_nothing_can_be_written_nothing_is_described(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    """Root may write anywhere, so the system's answer is given for it."""
    (root / "config.yaml").write_text(f"kb: {{{key}: locked/below/there}}\n")
    (root / "locked").mkdir()

    def access(path: Path, _mode: int) -> bool:
        return path != root / "locked"

    monkeypatch.setattr(os, "access", access)
    assert run(root) == 2
    err = capsys.readouterr().err
    assert err == f"app.py: kb.{key}: {root / 'locked'}: nothing can be written there; let this program do so\n"
    assert not (base(root) / "index-cache.json").exists()


def test_a_folder_that_may_not_be_read_is_exit_code_2(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 11."""

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("commands.init_kb.os.scandir", refuse)
    assert run(root) == 2
    assert "let this program read it" in capsys.readouterr().err


def test_a_list_of_garbage_costs_some_lines_and_nothing_else(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (base(root) / "links.txt").write_bytes(b"\xff\xfe\x00 \x80garbage\n" * 500)
    assert run(root) == 0
    out, err = capsys.readouterr()
    assert f"{FILES} files, 0 pages: {FILES} described" in out
    assert len(err.splitlines()) == 21
    assert "480 more are left out" in err
