from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.storage import confined
from services.storage.confined import OutsideFolder


def in_folder(tmp_path: Path) -> tuple[Path, Path]:
    folder = tmp_path / "a" / "b" / "sources"
    (folder / "guides").mkdir(parents=True)
    file = folder / "guides" / "setup.md"
    file.write_text("# Setup\n")
    return folder, file


def test_no_folder_above_is_asked_for_where_no_symlink_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question to the system may cost a turn of Python's lock, and there are thousands of files."""
    folder, file = in_folder(tmp_path)
    asked: list[str] = []
    real = os.lstat

    def lstat(path: str) -> os.stat_result:
        asked.append(path)
        return real(path)

    monkeypatch.setattr(os, "lstat", lstat)
    assert confined.read(folder, file, 100)[0] == "# Setup\n"
    assert asked == [str(folder / "guides"), str(file)]


@pytest.mark.parametrize("made", ["folder", "file", "inside"])
def test_symlinks_are_followed_inside_of_the_folder_only(tmp_path: Path, made: str) -> None:
    folder, file = in_folder(tmp_path)
    outside = tmp_path / "secrets"
    outside.mkdir()
    (outside / "setup.md").write_text("secret")
    if made == "inside":
        (folder / "again").symlink_to(folder / "guides")
        assert confined.read(folder, folder / "again" / "setup.md", 100)[0] == "# Setup\n"
        return
    link = folder / ("linked" if made == "folder" else "linked.md")
    link.symlink_to(outside if made == "folder" else outside / "setup.md")
    with pytest.raises(OutsideFolder):
        confined.read(folder, link / "setup.md" if made == "folder" else link, 100)
    assert file.exists()


def test_a_folder_that_is_a_symlink_itself_is_read(tmp_path: Path) -> None:
    folder, _ = in_folder(tmp_path)
    (tmp_path / "kb").symlink_to(folder)
    assert confined.read(tmp_path / "kb", tmp_path / "kb" / "guides" / "setup.md", 100)[0] == "# Setup\n"


def test_what_is_longer_is_cut_and_said_to_be(tmp_path: Path) -> None:
    folder, file = in_folder(tmp_path)
    assert confined.read(folder, file, 8)[::2] == ("# Setup\n", False)
    assert confined.read(folder, file, 7)[::2] == ("# Setup", True)
