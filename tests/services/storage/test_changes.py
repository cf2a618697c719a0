"""Folders whose changes are handed to a journal first."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from services.storage import FileChange, files


class Taken:
    """A journal in memory."""

    def __init__(self) -> None:
        self.changes: list[FileChange] = []
        self.error: Exception | None = None

    def commit(self, change: FileChange) -> None:
        if self.error is not None:
            raise self.error
        self.changes.append(change)


def change_all(root: Path) -> None:
    files.replace(root / "state" / "a.json", b"one")
    files.replace_derived(root / "index.txt", b"two")
    files.append(root / "lines.jsonl", b"{}\n")
    files.append(root / "lines.jsonl", b"[]")
    files.append(root / "lines.jsonl", b"x\n", own_line=True)
    files.truncate(root / "lines.jsonl", 5)
    files.move_aside(root / "index.txt", ".old")
    files.remove(root / "state" / "a.json")
    files.remove(root / "never.txt")
    files.replace(root / "folder" / "b" / "c", b"three")
    files.remove_folder(root / "folder")


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_journaled_folder_ends_as_a_plain_one(tmp_path: Path) -> None:
    journal = Taken()
    change_all(tmp_path / "plain")
    with files.use_journal(tmp_path / "kept", journal):
        change_all(tmp_path / "kept")
    assert contents(tmp_path / "kept") == contents(tmp_path / "plain")
    assert journal.changes == [
        FileChange("replace", "state/a.json", b"one"),
        FileChange("replace", "index.txt", b"two"),
        FileChange("append", "lines.jsonl", b"{}\n"),
        FileChange("append", "lines.jsonl", b"[]", 3),
        FileChange("append", "lines.jsonl", b"\nx\n", 5),
        FileChange("truncate", "lines.jsonl", length=5),
        FileChange("replace", "index.txt.old", b"two"),
        FileChange("remove", "index.txt"),
        FileChange("remove", "state/a.json"),
        FileChange("replace", "folder/b/c", b"three"),
        FileChange("remove", "folder/b/c"),
    ]


def test_what_the_changes_say_is_what_the_disk_has(tmp_path: Path) -> None:
    journal, made = Taken(), dict[str, bytearray]()
    with files.use_journal(tmp_path, journal):
        change_all(tmp_path)
    for change in journal.changes:
        change.apply(content := made.setdefault(change.path, bytearray()))
        if change.kind == "remove":
            assert not content
            del made[change.path]
    assert contents(tmp_path) == made


def test_a_change_of_another_content_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a: 2 bytes, where 3 were changed"):
        FileChange("append", "a", b"x", 3).apply(bytearray(b"ab"))


@pytest.mark.parametrize("verb", ["replace", "replace_derived", "append", "truncate", "remove", "move_aside"])
def test_what_the_journal_refuses_does_not_happen(tmp_path: Path, verb: str) -> None:
    file, journal = tmp_path / "a", Taken()
    file.write_bytes(b"before")
    journal.error = OSError(5, "the other disk is gone")
    data = {"truncate": 2, "move_aside": ".old"}.get(verb, b"after")
    with files.use_journal(tmp_path, journal), pytest.raises(OSError, match="the other disk is gone") as raised:
        getattr(files, verb)(file, *(() if verb == "remove" else (data,)))
    assert contents(tmp_path) == {"a": b"before"}
    assert str(raised.value.filename).startswith(str(file))


def test_other_errors_of_the_journal_pass_through(tmp_path: Path) -> None:
    journal = Taken()
    journal.error = KeyError("taken over")
    with files.use_journal(tmp_path, journal), pytest.raises(KeyError, match="taken over"):
        files.replace(tmp_path / "a", b"late")
    assert contents(tmp_path) == {}


def test_other_folders_and_later_changes_are_not_told(tmp_path: Path) -> None:
    journal = Taken()
    with files.use_journal(tmp_path / "one", journal):
        files.replace(tmp_path / "one-more" / "a", b"x")
        files.replace(tmp_path / "one" / ".." / "b", b"x")
    files.replace(tmp_path / "one" / "a", b"x")
    assert journal.changes == []


def test_several_folders_have_journals_of_their_own(tmp_path: Path) -> None:
    one, other = Taken(), Taken()
    with files.use_journal(tmp_path / "one", one), files.use_journal(tmp_path / "two", other):
        files.replace(tmp_path / "two" / "a", b"2")
        files.replace(tmp_path / "one" / "a", b"1")
    assert (one.changes, other.changes) == ([FileChange("replace", "a", b"1")], [FileChange("replace", "a", b"2")])


def test_the_disk_has_the_order_of_the_journal(tmp_path: Path) -> None:
    """Whoever is slow on the disk must not be overtaken by a later change."""
    journal = Taken()

    def write(number: int) -> None:
        for count in range(50):
            files.replace(tmp_path / "a", f"{number} {count}".encode())

    with files.use_journal(tmp_path, journal):
        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (tmp_path / "a").read_bytes() == journal.changes[-1].data
    assert len(journal.changes) == 200


def test_nothing_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flush(_: int) -> None:
        raise AssertionError("the journal has it")

    (tmp_path / "lines").write_bytes(b"")
    monkeypatch.setattr("os.fsync", flush)
    with files.use_journal(tmp_path, Taken()):
        files.append(tmp_path / "lines", b"one\n")
        files.truncate(tmp_path / "lines", 2)
        files.replace(tmp_path / "index", b"x")
        files.replace_derived(tmp_path / "index", b"y")
        files.move_aside(tmp_path / "index", ".old")
