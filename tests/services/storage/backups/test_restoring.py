"""Archives that are damaged, or were made to do damage; and disks that fail."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import random
import shutil
import stat
import warnings
import zipfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest

from services.storage import files
from services.storage.backups import manifest, restoring
from services.storage.backups.manifest import MANIFEST_NAME, BadBackup, CopiedFile, Manifest
from services.storage.backups.restoring import FolderInUse, restore, series_of
from services.storage.backups.writing import CopyProgress, back_up
from services.storage.data_folder import lock
from tests.services.storage.backups.folders import ANY_ORDER, EXPECTED, MADE_AT, files_in, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A backup."""
    file = tmp_path / "backup.zip"
    back_up(write(tmp_path / "data"), file, ANY_ORDER, MADE_AT)
    return file


def bring_back(file: Path) -> Path:
    target = file.with_name("restored")
    with lock(target, "a test"):
        restore(file, target)
    return target


def refused(file: Path, words: str = "") -> None:
    with pytest.raises(BadBackup, match=words):
        bring_back(file)
    assert [path.name for path in file.with_name("restored").iterdir()] == [".lock"]


def archive(file: Path, *entries: tuple[zipfile.ZipInfo | str, bytes], claimed: Manifest | None = None) -> Path:
    """A backup that holds these entries and claims to hold them, or something else."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for entry, data in entries:
            packed.writestr(entry, data)
        named = [(entry if isinstance(entry, str) else entry.filename, data) for entry, data in entries]
        copied = tuple(CopiedFile(name[5:], len(data), 0, sha256(data).hexdigest()) for name, data in named)
        packed.writestr(MANIFEST_NAME, manifest.render(claimed or Manifest(MADE_AT, copied)))
    file.write_bytes(made.getvalue())
    return file


def linked(name: str, kind: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = (kind | 0o777) << 16
    return entry


@pytest.mark.parametrize("there", ["note.txt", "state", ".hidden"])
def test_a_folder_that_holds_something_stays_as_it_is(file: Path, there: str) -> None:
    target = file.with_name("restored")
    (target / there).mkdir(parents=True)
    (target / "lost+found").mkdir()
    with pytest.raises(FolderInUse, match=there):
        bring_back(file)
    assert sorted(path.name for path in target.iterdir()) == sorted([".lock", "lost+found", there])


def test_how_far_it_is_can_be_told(file: Path) -> None:
    target, count = file.with_name("restored"), CopyProgress()
    with lock(target, "a test"):
        restore(file, target, count)
    packed = back_up(target, file.with_name("again.zip"), ANY_ORDER, MADE_AT, again := CopyProgress())
    assert (count.files, count.size, count.total) == (len(EXPECTED), packed.manifest.total_bytes, len(EXPECTED))
    assert (again.files, again.size, again.total) == (len(EXPECTED), packed.manifest.total_bytes, None)


def test_a_new_disk_counts_as_empty(file: Path) -> None:
    (file.with_name("restored") / "lost+found").mkdir(parents=True)
    assert files_in(bring_back(file)) == EXPECTED


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_backup_is_refused(file: Path, share: float) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    refused(file, "is damaged")


def test_a_backup_with_any_byte_changed_is_refused_or_brought_back_as_it_was(file: Path) -> None:
    data, changes = file.read_bytes(), random.Random(1)  # noqa: S311 (damage, no secrets)
    target = file.with_name("restored")
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(changes.choice([1, 1, 3])):
            damaged[changes.randrange(len(data))] ^= 1 << changes.randrange(8)
        file.write_bytes(damaged)
        try:
            bring_back(file)
        except BadBackup:
            assert [path.name for path in target.iterdir()] == [".lock"]
        else:
            # Such as the time of an entry, which nothing is made of.
            assert files_in(target) == EXPECTED
        shutil.rmtree(target)


@pytest.mark.parametrize("content", [b"", b"discord: {}\n", b"PK\x05\x06" + b"\0" * 18])
def test_what_is_no_backup_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    refused(file, "no backup")


@pytest.mark.parametrize("name", ["data/../../evil", "data//etc/evil", "data/a/../../../evil"])
def test_no_file_is_written_outside(file: Path, name: str) -> None:
    """Pitfall 16."""
    refused(archive(file, (name, b"x")), "a name that no data folder has")
    assert not list(file.parent.rglob("*evil*"))


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFDIR])
def test_links_and_devices_are_refused(file: Path, kind: int) -> None:
    refused(archive(file, (linked("data/a", kind), b"/etc/passwd")), "no plain file")


def test_what_is_encrypted_or_packed_otherwise_is_refused(file: Path) -> None:
    entry = zipfile.ZipInfo("data/a")
    entry.compress_type = zipfile.ZIP_LZMA
    refused(archive(file, (entry, b"x")), "no plain file")


@pytest.mark.parametrize(
    "entries",
    [
        [("data/a", b"x"), ("data/b", b"y")],
        [],
        [("data/a", b"xx")],
        [("a", b"x")],
        [("data/a", b"x"), ("data/a", b"x")],
        [("data/a", b"x"), (MANIFEST_NAME, b"{}")],
    ],
)
def test_entries_that_are_not_what_the_backup_says_are_refused(file: Path, entries: list[tuple[str, bytes]]) -> None:
    claimed = Manifest(MADE_AT, (CopiedFile("a", 1, 0, sha256(b"x").hexdigest()),))
    refused(archive(file, *entries, claimed=claimed), "is damaged: ")


def test_another_content_of_the_same_size_is_refused(file: Path) -> None:
    claimed = Manifest(MADE_AT, (CopiedFile("a", 1, 0, sha256(b"x").hexdigest()),))
    refused(archive(file, ("data/a", b"y"), claimed=claimed), "is damaged: a is not what was copied")


def test_a_bomb_takes_no_more_than_it_says_and_than_there_is_room_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(file, ("data/a", b"\0" * 10_000_000))

    def little(_folder: Path) -> SimpleNamespace:
        return SimpleNamespace(free=20_000_000)

    monkeypatch.setattr(shutil, "disk_usage", little)
    refused(file, "needs 10000000 bytes")


def test_an_entry_that_unpacks_to_more_than_it_says_is_cut_off(file: Path) -> None:
    packed = archive(file, ("data/a", b"\0" * 5000), claimed=Manifest(MADE_AT, (CopiedFile("a", 7, 0, "0" * 64),)))
    data = packed.read_bytes()
    # In the local header and in the directory: it says that it holds seven bytes.
    packed.write_bytes(data.replace((5000).to_bytes(4, "little"), (7).to_bytes(4, "little")))
    refused(file, "is damaged")


def test_a_manifest_that_is_a_bomb_is_not_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "MAX_MANIFEST_BYTES", 10)
    refused(archive(file, ("data/a", b"x")), "is too large")


@pytest.mark.parametrize("call", ["write", "fsync", "mkdir"])
def test_a_disk_that_refuses_leaves_nothing(file: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target = file.with_name("restored")

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with lock(target, "a test"):
        monkeypatch.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space left"):
            restore(file, target)
        monkeypatch.undo()
    assert [path.name for path in target.iterdir()] == [".lock"]
    assert files_in(bring_back(file)) == EXPECTED


def interrupting(real: Callable[..., object], at: int) -> Callable[..., object]:
    calls = 0

    def call(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    return call


def test_an_interruption_leaves_nothing_and_one_that_comes_too_late_changes_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = file.with_name("restored")
    with lock(target, "a test"):
        with monkeypatch.context() as patch:
            patch.setattr(files, "write_all", interrupting(files.write_all, 3))
            with pytest.raises(KeyboardInterrupt):
                restore(file, target)
        assert [path.name for path in target.iterdir()] == [".lock"]
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", interrupting(os.rename, 3))
            restore(file, target)
    assert files_in(target) == EXPECTED


@pytest.mark.parametrize("steps", [33, 1500, 3000])
def test_a_path_of_many_steps_is_refused_and_a_good_backup_restores_after_it(file: Path, steps: int) -> None:
    """H4."""
    path = "/".join("d" * (steps - 1)) + "/f"
    claimed = Manifest(MADE_AT, (CopiedFile(path, 1, 0, hashlib.sha256(b"x").hexdigest()),))
    refused(archive(file, (f"data/{path}", b"x"), claimed=claimed), "a name that no data folder has")
    target = file.with_name("after")
    with lock(target, "a test"):
        restore(archive(file.with_name("good.zip"), ("data/a", b"x")), target)
    assert (target / "a").read_bytes() == b"x"


@pytest.mark.parametrize("steps", [1500, 3000])
def test_a_deep_tree_that_was_left_there_ends_no_command(tmp_path: Path, steps: int) -> None:
    """H4: of an earlier program, which unpacked it."""
    (tmp_path / ".restoring").mkdir()
    folder = os.open(tmp_path / ".restoring", os.O_RDONLY)
    for _ in range(steps):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    with lock(tmp_path, "a test"):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("bot-2026-02-01.zip", "bot-2026-01-31.zip", True),
        ("bot-20260201T031056.zip", "bot-20260202T031056.zip", True),
        ("bot 2026-02-01 03:10.zip", "bot 2026-02-01 04:10.zip", True),
        ("bot-2026-W05.zip", "bot-2026-W06.zip", True),
        ("bot2-01.02.2026.zip", "bot2-02.02.2026.zip", True),
        ("bot-1770000000.zip", "bot-1770000060.zip", True),
        ("1-2026-02-01.zip", "1-2026-02-02.zip", True),
        ("b-1.zip", "b-2.zip", True),
        ("bot1-2026-02-01.zip", "bot2-2026-01-01.zip", False),
        ("server-1-2026-02-01.zip", "server-2-2026-02-01.zip", False),
        ("2026-02-01-bot-1.zip", "2026-02-02-bot-2.zip", False),
        ("staging1-7.zip", "staging2-6.zip", False),
        ("10.0.0.1-20260201.zip", "10.0.0.2-20260201.zip", False),
        ("bot-2026-02-01.zip", "bot-1.zip", False),
        ("bot-1770000000.zip", "bot-1.zip", False),
        ("2026-02-01-1458745245.zip", "2026-02-01-1458745246.zip", False),
        ("2026-02-01-1458745245.zip", "2026-02-02-1458745245.zip", True),
    ],
)
def test_backups_of_a_series_differ_in_the_date_only(one: str, other: str, same: bool) -> None:
    assert (series_of(one) == series_of(other)) is same


@pytest.mark.parametrize("name", ["backup.zip", "bot1.zip"])
def test_a_name_without_date_and_number_of_its_own_is_of_no_series(name: str) -> None:
    assert series_of(name) is None
