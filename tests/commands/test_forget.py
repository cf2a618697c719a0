from __future__ import annotations

from pathlib import Path

import pytest

import app
from services.storage import files
from services.team import archive
from tests.services.team.test_archive import a_pair


def test_the_operator_reads_what_was_touched_and_what_is_out_of_reach(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pitfall 49."""
    raw = tmp_path / "data" / "team-knowledge" / "raw" / "2026-W05.txt"
    files.append(raw, archive.render(a_pair("What is it?", "This.")).encode())
    (raw.parent / "2026-W04.txt.torn").write_text("User: half")
    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "1 text replaced by [removed]" in out
    assert "2026-W04.txt.torn" in out
    assert "backups" in out
    assert [turn.text for turn in archive.parse(raw.read_text())[0].turns] == ["What is it?", "[removed]"]

    assert app.main(["--config", str(config), "--forget", "1"]) == 0
    assert "Nothing of theirs was found." in capsys.readouterr().out


def test_a_folder_that_does_not_exist_is_a_mistake_and_not_made(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("app: {data_dir: nowhere}\n")
    assert app.main(["--config", str(config), "--forget", "1"]) == 2
    assert "is this the right --config?" in capsys.readouterr().err
    assert not (tmp_path / "nowhere").exists()
