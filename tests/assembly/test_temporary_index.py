from __future__ import annotations

import logging
from pathlib import Path

import pytest

from app import main
from assembly.sources import temporary_index
from services.knowledge.source_kinds import stored_name
from settings import Settings, load

MODEL = "llm: {base_url: 'http://127.0.0.1:9/v1', api_key: none, model: mill}"


def settings_of(root: Path, text: str = "{}") -> Settings:
    (root / "config.yaml").write_text(f"{text}\n")
    return load(root / "config.yaml")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "data" / "knowledge-base"
    (folder / "sources").mkdir(parents=True)
    (folder / "sources" / "mill.md").write_text("# The mill\n\nIt turns with the river.\n")
    return folder


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_there_is_an_index_of_what_lies_there_for_a_while(
    base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (base / "sources" / "binary.md").write_bytes(b"\0\0")
    (base / "links.txt").write_text("https://mill.example/a\nhttps://mill.example/never-fetched\n")
    (base / "web-cache").mkdir()
    (base / "web-cache" / stored_name("https://mill.example/a")).write_text("# Wages\n\nThey are paid in flour.\n")
    before = sorted(base.rglob("*"))
    configured = settings_of(tmp_path)
    with temporary_index(configured) as settings:
        ids = [line for line in settings.kb.index_path.read_text().splitlines() if line.startswith("kb:")]
    assert ids == ["kb:mill.md", "kb:https://mill.example/a"]
    assert not settings.kb.index_path.exists()
    assert sorted(base.rglob("*")) == before
    missing = configured.kb.index_path
    assert warnings(caplog) == [
        f"{missing} is not there: a makeshift index, which finds less, is used; --init-kb builds it"
    ]


@pytest.mark.parametrize("text", [f"kb: {{{MODEL}}}", f"ai_response: {{{MODEL}}}"])
def test_where_descriptions_would_cost_there_is_none(
    base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    _ = base
    configured = settings_of(tmp_path, text)
    with temporary_index(configured) as settings:
        assert settings is configured
    assert warnings(caplog) == []


def test_an_index_that_is_there_is_used_and_an_empty_folder_gives_none(
    base: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    configured = settings_of(tmp_path)
    (base / "index.txt").write_text("")
    with temporary_index(configured) as settings:
        assert settings is configured
    (base / "index.txt").unlink()
    (base / "sources" / "mill.md").unlink()
    (base / "links.txt").mkdir()
    with temporary_index(configured) as settings:
        assert settings is configured
    assert warnings(caplog) == []


def test_a_question_is_answered_before_any_index_was_built(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _ = base
    settings_of(tmp_path)
    assert main(["--config", str(tmp_path / "config.yaml"), "--ask", "What does the mill turn with?"]) == 0
    assert "river" in capsys.readouterr().out
    assert not (base / "index.txt").exists()
