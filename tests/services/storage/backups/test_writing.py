from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
import stat
import threading
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from services.storage import files
from services.storage.backups import writing
from services.storage.backups.restoring import restore
from services.storage.backups.writing import BackupRefused, BackupResult, CopyOrder, back_up
from services.storage.data_folder import lock
from tests.services.storage.backups.folders import (
    ANY_ORDER,
    CONTENT,
    EXPECTED,
    MADE_AT,
    files_in,
    make_database,
    rows_of,
    write,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "data")


def copied(root: Path, order: CopyOrder = ANY_ORDER) -> BackupResult:
    return back_up(root, root.with_name("backup.zip"), order, MADE_AT)


def brought_back(root: Path) -> Path:
    target = root.with_name("restored")
    with lock(target, "a test"):
        restore(root.with_name("backup.zip"), target)
    return target


def test_what_is_brought_back_is_what_was_there(root: Path) -> None:
    os.utime(root / "knowledge-base" / "index.txt", ns=(1, 1769915456123456789))
    made = copied(root)
    assert (made.left_out, made.damaged, made.manifest.made_at) == ((), (), MADE_AT)
    assert made.size == root.with_name("backup.zip").stat().st_size
    restored = brought_back(root)
    assert files_in(restored) == EXPECTED
    assert (restored / "evidence" / "none").is_dir()
    assert (restored / "knowledge-base" / "index.txt").stat().st_mtime_ns == 1769915456123456789
    everything = [path for path in restored.rglob("*") if not path.name.startswith(".")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in everything} == {0o600, 0o700}


def test_a_backup_is_for_its_owner_alone_also_where_others_could_read_the_last_one(root: Path) -> None:
    """Pitfall 68."""
    file = root.with_name("backup.zip")
    copied(root)
    file.chmod(0o644)
    before = os.umask(0)
    try:
        copied(root)
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == ["backup.zip", "data"]


def test_files_are_copied_in_the_order_that_is_asked_for_and_each_once(root: Path) -> None:
    order = CopyOrder(
        first=[root / "state" / "posts.jsonl", root / "state", root / "missing", root.with_name("elsewhere")],
        last=[root / "team-knowledge", root / "state" / "seen.json"],
        excluded=[root / "evidence"],
    )
    assert [each.path.split("/")[-1] for each in copied(root, order).manifest.files] == [
        "posts.jsonl",
        "index.txt",
        "\u3000s\u00e9t up.md",
        "2026-W05.txt",
        "seen.json",
    ]


def test_what_is_no_plain_file_is_named_and_not_copied(root: Path) -> None:
    (root / "outside").symlink_to(root.parent)
    (root / "knowledge-base" / "gone.md").symlink_to("nowhere")
    (root / "inside.txt").symlink_to(root / "knowledge-base" / "index.txt")
    os.mkfifo(root / "pipe")
    (root / "a\\b").write_text("")
    (root / "line\nfeed").mkdir()
    (root / os.fsdecode(b"\xff")).write_text("")
    (root / "lost+found").mkdir()
    made = copied(root)
    assert sorted(made.left_out) == [
        "a\\b (a name that not every system takes)",
        "knowledge-base/gone.md (a link to elsewhere)",
        "line\nfeed (a name that not every system takes)",
        "outside (a link to elsewhere)",
        "pipe (no ordinary file)",
        "\udcff (a name that not every system takes)",
    ]
    assert files_in(brought_back(root)) == EXPECTED | {"inside.txt": b""}


def test_a_database_is_copied_as_it_was_at_one_moment_with_what_is_only_in_its_log(root: Path) -> None:
    path = root / "evidence" / "case_1.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("INSERT INTO chunks VALUES ('in the log')")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO chunks VALUES ('not committed')")
        assert copied(root).damaged == ()
        writer.execute("ROLLBACK")
    assert rows_of(brought_back(root) / "evidence" / "case_1.sqlite") == 4


def test_nothing_is_left_beside_a_database_that_nobody_has_open(root: Path) -> None:
    path = root / "evidence" / "case_1.sqlite"
    os.utime(path, (1, 1))
    before = sorted(root.rglob("*"))
    copied(root)
    assert sorted(root.rglob("*")) == before


def test_a_database_that_is_made_anew_while_it_is_copied_is_copied_anew(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, times = root / "evidence" / "case_1.sqlite", sqlite3.connect, 0

    def connect(database: str, **options: Any) -> sqlite3.Connection:
        nonlocal times
        connection = real(database, **options)
        if "case_1" in database:
            times += 1
            if times == 1:
                path.unlink()
                with monkeypatch.context() as patch:
                    patch.setattr(sqlite3, "connect", real)
                    make_database(path, 7)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect)
    assert copied(root).damaged == ()
    monkeypatch.undo()
    assert rows_of(brought_back(root) / "evidence" / "case_1.sqlite") == 7
    assert times == 2


def test_a_database_that_is_written_while_it_is_read_as_it_stands_is_copied_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody had it open when the copy began: so SQLite does not look out for others."""
    path, real, asked = root / "evidence" / "case_1.sqlite", sqlite3.connect, list[str]()
    os.utime(path, (1, 1))

    def connect(database: str, **options: Any) -> sqlite3.Connection:
        if "case_1" not in database:
            return real(database, **options)
        asked.append(database.partition("?")[2])
        if len(asked) == 1:
            path.write_bytes(b"SQLite format 3\0, half written")
            os.utime(path, (2, 2))
            raise sqlite3.DatabaseError("database disk image is malformed")
        if len(asked) == 2:
            path.unlink()
            with monkeypatch.context() as patch:
                patch.setattr(sqlite3, "connect", real)
                make_database(path, 5)
        return real(database, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    assert copied(root).damaged == ()
    monkeypatch.undo()
    assert rows_of(brought_back(root) / "evidence" / "case_1.sqlite") == 5
    assert asked == ["immutable=1", "immutable=1", "mode=ro"]


def test_a_database_that_never_rests_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = root / "evidence" / "case_1.sqlite", os.path.samestat

    def same(one: os.stat_result, other: os.stat_result) -> bool:
        return one.st_ino != path.stat().st_ino and real(one, other)

    monkeypatch.setattr(os.path, "samestat", same)
    assert copied(root).damaged == ("evidence/case_1.sqlite (it changes too often to be copied)",)


@pytest.mark.parametrize("damage", [b"SQLite format 3\0" + b"x" * 4000, None])
def test_a_damaged_database_is_named_and_the_rest_is_copied(root: Path, damage: bytes | None) -> None:
    path = root / "evidence" / "case_1.sqlite"
    whole = path.read_bytes()
    path.write_bytes(damage or whole[:4096] + b"\xff" * (len(whole) - 4096))
    made = copied(root)
    assert [each.partition(" (")[0] for each in made.damaged] == ["evidence/case_1.sqlite"]
    assert files_in(brought_back(root)) == CONTENT


def test_an_append_under_way_is_waited_for_and_copied_whole(root: Path) -> None:
    path = root / "team-knowledge" / "raw" / "2026-W05.txt"
    done = threading.Event()
    with path.open("ab", buffering=0) as appending:
        fcntl.flock(appending, fcntl.LOCK_EX)
        appending.write(b"--- QA")
        copying = threading.Thread(target=lambda: (copied(root), done.set()))
        copying.start()
        while "->" not in Path("/proc/locks").read_text():
            assert not done.is_set()
        appending.write(b" ---\n")
    copying.join()
    copy = (brought_back(root) / path.relative_to(root)).read_bytes()
    assert copy == path.read_bytes()
    assert copy.endswith(b"--- QA ---\n")


def test_what_is_appended_or_replaced_later_does_not_change_the_copy(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = root / "team-knowledge" / "raw" / "2026-W05.txt", writing.size_under_lock

    def size(file: BinaryIO) -> int:
        found = real(file)
        if file.name == str(path):
            files.append(path, b"appended")
            files.replace(path, b"replaced")
        return found

    monkeypatch.setattr(writing, "size_under_lock", size)
    copied(root)
    assert files_in(brought_back(root)) == EXPECTED


def test_a_file_that_goes_while_the_others_are_copied_is_left_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = writing.BackupWriter.copy

    def copy(copying: writing.BackupWriter, archive: zipfile.ZipFile, path: Path) -> None:
        if path == root / "state" / "posts.jsonl":
            path.unlink()
        real(copying, archive, path)

    monkeypatch.setattr(writing.BackupWriter, "copy", copy)
    copied(root)
    expected = dict(EXPECTED)
    del expected["state/posts.jsonl"]
    assert files_in(brought_back(root)) == expected


def test_a_file_cut_while_it_is_copied_ends_the_backup(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(_file: object) -> int:
        return 10**6

    monkeypatch.setattr(writing, "size_under_lock", too_long)
    with pytest.raises(OSError, match="became shorter"):
        copied(root)
    assert [path.name for path in root.parent.iterdir()] == ["data"]


def test_a_file_that_cannot_be_read_ends_the_backup_and_the_last_one_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(root)
    before = root.with_name("backup.zip").read_bytes()
    real: Any = Path.open

    def refuse(path: Path, *args: Any, **kwargs: Any) -> Any:
        if path.name == "posts.jsonl":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError):
        copied(root)
    assert root.with_name("backup.zip").read_bytes() == before


@pytest.mark.parametrize("room", [0, 50, 4000])
def test_on_a_full_disk_nothing_is_left_and_the_file_is_named(
    root: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    left = room

    def write_some(descriptor: int, data: bytes) -> int:
        nonlocal left
        if len(data) > left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= len(data)
        return real(descriptor, data)

    if room == 4000:
        (root / "noise").write_bytes(os.urandom(5000))
    monkeypatch.setattr(os, "write", write_some)
    with pytest.raises(OSError, match="No space left on device") as caught:
        copied(root)
    assert caught.value.filename == str(root.with_name("backup.zip"))
    assert [path.name for path in root.parent.iterdir()] == ["data"]


@pytest.mark.parametrize("name", ["data/backup.zip", "data/state/new.zip", "data", "other", "nowhere/b.zip", "text"])
def test_a_place_that_must_not_be_written_is_refused_and_nothing_is_done(root: Path, name: str) -> None:
    (root.parent / "other").mkdir()
    (root.parent / "text").write_text("discord: {}\n")
    (root.parent / "link").symlink_to(root)
    before = sorted(root.parent.rglob("*"))
    for place in {name, name.replace("data/", "link/")}:
        with pytest.raises(BackupRefused):
            back_up(root, root.parent / place, ANY_ORDER, MADE_AT)
    assert sorted(root.parent.rglob("*")) == before
    assert (root.parent / "text").read_text() == "discord: {}\n"


def test_a_folder_whose_restore_was_cut_off_is_not_copied_half(root: Path) -> None:
    (root / ".restored").mkdir()
    with pytest.raises(BackupRefused, match="start the bot, which finishes it"):
        copied(root)
    with lock(root, "app.py"):
        assert copied(root).left_out == ()


def test_two_backups_to_one_file_at_once_are_refused(root: Path) -> None:
    file = root.with_name("backup.zip")
    with writing.temporary_backup(file), pytest.raises(BackupRefused, match="another process"):
        copied(root)
    temporary = file.with_name(".unfinished-backup.zip")
    with writing.temporary_backup(file) as descriptor:
        temporary.rename(file)  # as if the other one was finished just then
        with pytest.raises(BackupRefused, match="another process"):
            writing.lock_temporary(descriptor, temporary)
        file.rename(temporary)
