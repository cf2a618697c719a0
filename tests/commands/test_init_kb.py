from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import assembly.knowledge
from app import main
from commands.init_kb import SourceCount
from services.knowledge.source_files import FileFacts, FileRecord, TextFiles
from services.knowledge.source_kinds import Discovered, Due, LeftOut, Pending, Purged, Trouble, UpdateResult, UpToDate
from services.storage.data_folder import lock
from tests.shelves import FakeDescriber, source_setup


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "config.yaml").write_text("{}\n")
    sources = tmp_path / "data" / "knowledge-base" / "sources"
    sources.mkdir(parents=True)
    (sources / "setup.md").write_text("# Setting up\n\nInstall the frobnicator first.\n\n## Ports\n\nOpen port 80.\n")
    handlers = logging.root.handlers[:]
    yield tmp_path
    logging.root.handlers[:] = handlers


def run(root: Path, *more: str) -> int:
    return main(["--config", str(root / "config.yaml"), "--init-kb", *more])


def base(root: Path) -> Path:
    return root / "data" / "knowledge-base"


def test_it_builds_the_index_without_a_model(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root) == 0
    assert (base(root) / "index.txt").read_text().startswith("kb:setup.md\nSetting up: Install the frobnicator first.")
    assert json.loads((base(root) / "index-cache.json").read_text())["schema_version"] == 1
    assert "1 described" in capsys.readouterr().out
    assert run(root) == 0
    assert "0 described" in capsys.readouterr().out


@pytest.fixture
def describer(monkeypatch: pytest.MonkeyPatch) -> FakeDescriber:
    made = FakeDescriber()

    def describer_of(*_: object) -> FakeDescriber:
        return made

    monkeypatch.setattr(assembly.knowledge, "describer_of", describer_of)
    return made


def test_failures_are_exit_code_1(root: Path, describer: FakeDescriber, capsys: pytest.CaptureFixture[str]) -> None:
    """Pitfall 43."""
    (base(root) / "sources" / "other.md").write_text("Other\n")
    describer.failing["other.md"] = TimeoutError()
    assert run(root) == 1
    assert "other.md: took too long" in capsys.readouterr().err
    assert "kb:setup.md" in (base(root) / "index.txt").read_text()


def test_nothing_summarised_is_never_0(
    root: Path, describer: FakeDescriber, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 43."""
    describer.says = lambda _: " "
    assert run(root) == 1
    (base(root) / "sources" / "setup.md").unlink()
    (base(root) / "index-cache.json").unlink()
    capsys.readouterr()
    assert run(root) == 1
    assert "Nothing to answer from" in capsys.readouterr().out


def test_a_missing_folder_or_list_is_exit_code_2_and_nothing_is_done(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 11."""
    (base(root) / "links.txt").mkdir()
    assert run(root) == 2
    assert "kb.links_file_path" in capsys.readouterr().err
    (base(root) / "links.txt").rmdir()
    (base(root) / "sources").rename(base(root) / "elsewhere")
    assert run(root) == 2
    assert "kb.sources_dir" in capsys.readouterr().err
    assert not (base(root) / "index-cache.json").exists()


def test_a_cache_that_cannot_be_read_ends_the_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (base(root) / "index-cache.json").mkdir()
    assert run(root) == 2
    said = capsys.readouterr().err
    assert said.startswith("app.py: kb.index_cache_path: ")
    assert said.count("\n") == 1


def test_a_busy_data_folder_is_exit_code_2(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pitfall 42."""
    with lock(root / "data", "app.py"):
        assert run(root) == 2
    assert "in use by app.py" in capsys.readouterr().err


def test_a_bug_in_the_update_is_no_endless_wait(
    root: Path, monkeypatch: pytest.MonkeyPatch, describer: FakeDescriber
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("oops")

    _ = describer
    monkeypatch.setattr("services.knowledge.source_kinds.SourceRecords.put", broken)
    assert run(root) == 1


RECORD = FileRecord.new("2026-01-01T00:00:00Z", file=FileFacts("a.md", 1, 1))


def test_progress_counts_each_source_once(tmp_path: Path) -> None:
    kind = TextFiles(source_setup(tmp_path, 1))
    counts: list[str] = []
    sources = SourceCount()
    for event in (
        Discovered({"file": 1, "page": 1}),
        Due(kind, "a.md"),
        Due(kind, "b.md"),
        Due(kind, "https://c.example"),
        Pending(RECORD),
        LeftOut("b.md", "it is empty"),
        Trouble("https://c.example", "fetch", "HTTP 500"),
        UpToDate(RECORD, UpdateResult.DESCRIBED),
        Purged("d.md"),
    ):
        sources.see(event)
        counts.append(str(sources.count).removesuffix(" sources").removesuffix(" source"))
    assert counts == ["0 of 0", "0 of 1", "0 of 2", "0 of 3", "0 of 3", "1 of 3", "2 of 3", "3 of 3", "3 of 3"]


@pytest.mark.slow
def test_killed_at_any_moment_the_next_run_finishes_and_repeats_nothing() -> None:
    """Pitfalls 37 and 40. `python -m tests.commands.killing 100` does it longer."""
    # In a process of its own, which can fork without threads of ours.
    done = subprocess.run(
        [sys.executable, "-m", "tests.commands.killing", "12"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
