"""The demo's index, as the program builds it out of a fresh clone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from app import main
from assembly.sources import temporary_index
from settings import load
from tests.examples.test_demo_files import EXAMPLES, file_ids, urls

MAKEFILE = (EXAMPLES.parent / "Makefile").read_text(encoding="utf-8")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The demo's folder before anything was built."""
    copy = tmp_path / "examples"
    shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("data", "*.jsonl*"))
    return copy


@pytest.fixture(autouse=True)
def by_words_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors have no part in the index, and on a busy machine their making is reported."""
    monkeypatch.setenv("APP__SEARCH__EMBEDDINGS", "none")


def described(clone: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["--config", str(clone / "demo.yaml"), "--init-kb"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    [count] = re.findall(r"(\d+) described", out)
    return count


def entries(index: Path) -> list[tuple[str, str]]:
    blocks = index.read_text(encoding="utf-8").rstrip("\n").split("\n\n")
    return [(first, description) for first, _, description in (block.partition("\n") for block in blocks)]


def test_the_first_run_describes_every_source_once_and_the_second_none(
    clone: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = clone / "data" / "knowledge-base"
    data.mkdir(parents=True)
    shutil.copy(clone / "knowledge-base" / "fetched.json", data / "index-cache.json")  # as `make demo` does
    assert described(clone, capsys) == str(len(file_ids()) + len(urls()))
    found = entries(data / "index.txt")
    assert [first for first, _ in found] == [f"kb:{id_}" for id_ in (*file_ids(), *urls())]
    assert all(description and "\n" not in description for _, description in found)
    written = {path: path.stat().st_mtime_ns for path in data.iterdir()}
    assert described(clone, capsys) == "0"
    assert {path: path.stat().st_mtime_ns for path in data.iterdir()} == written

    # Whoever replays without having built it gets the very same.
    with temporary_index(load(clone / "demo.yaml")) as settings:
        assert settings.kb.index_path == data / "index.txt"
    built = (data / "index.txt").read_bytes()
    shutil.rmtree(clone / "data")
    with temporary_index(load(clone / "demo.yaml")) as settings:
        assert settings.kb.index_path.read_bytes() == built
    assert not settings.kb.index_path.exists()
    assert not (clone / "data").exists()


def test_make_demo_builds_the_index_and_then_replays() -> None:
    recipe = MAKEFILE.partition("\ndemo:")[2].partition("\n\n")[0]
    assert recipe.index("--init-kb") < recipe.index("--replay")
    assert "examples/data/" in (EXAMPLES.parent / ".gitignore").read_text(encoding="utf-8")
