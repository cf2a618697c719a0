"""Copies outside of the data folder, and what a killed process leaves of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.storage import drop_left_folders, temporary_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the system."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def left_by_a_killed_process(temporary: Path) -> Path:
    with temporary_folder() as folder:
        left = folder.rename(temporary / f"{folder.name}-left")
        (left / "raw").mkdir()
        (left / "raw" / "2026-W05.txt").write_text("User: what they wrote")
        folder.mkdir()
    return left


def test_a_copy_is_there_while_it_is_used_and_gone_afterwards(temporary: Path) -> None:
    with temporary_folder() as one, temporary_folder() as other:
        for folder in (one, other):
            (folder / "copy").write_text("words")
        drop_left_folders()
        assert {each.parent for each in temporary.rglob("copy")} == {one, other}
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_has_left_goes_with_the_next_folder_that_is_made(temporary: Path) -> None:
    """Pitfall 49."""
    left = left_by_a_killed_process(temporary)
    assert left.exists()
    with temporary_folder() as folder:
        assert list(temporary.iterdir()) == [folder]


def test_what_is_no_folder_of_ours_stays(temporary: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("words")
    (temporary / "millrace-copies-link").symlink_to(elsewhere)
    (temporary / "millrace-copies-file").write_text("words")
    (temporary / "millrace-copies-new").mkdir()
    drop_left_folders()
    assert sorted(each.name.rpartition("-")[2] for each in temporary.iterdir()) == ["file", "link", "new"]
    assert (elsewhere / "mine").exists()
