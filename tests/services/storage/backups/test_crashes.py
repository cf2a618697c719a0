"""The power is cut at each system call: a backup is the last one or the new one, and a folder is empty or complete."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from services.storage import data_folder
from services.storage.backups.restoring import restore
from services.storage.backups.writing import back_up
from services.storage.data_folder import lock
from tests.services.storage.backups.folders import ANY_ORDER, EXPECTED, MADE_AT, files_in, write
from tests.services.storage.power import CALLS, Machine

LATER = "2026-02-02T03:10:56.000Z"


def brought_back(file: Path, target: Path) -> dict[str, bytes]:
    with lock(target, "a test"):
        restore(file, target)
    try:
        return files_in(target)
    finally:
        shutil.rmtree(target)


@pytest.mark.parametrize("partial", [None, 1])
def test_cut_off_at_any_call_a_backup_is_the_last_one_or_the_new_one(tmp_path: Path, partial: int | None) -> None:
    root, file = write(tmp_path / "data"), tmp_path / "backup.zip"
    (root / "evidence" / "case_1.sqlite").unlink()  # SQLite makes its calls itself
    old = {name: data for name, data in EXPECTED.items() if "sqlite" not in name}
    back_up(root, file, ANY_ORDER, MADE_AT)
    last = file.read_bytes()
    (root / "note").write_text("new")
    seen = set[bool]()
    for cut in range(10_000):
        file.write_bytes(last)
        done = Machine(cut, partial).run(lambda: back_up(root, file, ANY_ORDER, LATER))
        is_new = file.read_bytes() != last
        seen.add(is_new)
        assert brought_back(file, tmp_path / "restored") == (old | {"note": b"new"} if is_new else old)
        if done:
            break
        # What is left does not disturb the next one, which leaves nothing.
        assert {path.name for path in tmp_path.iterdir()} <= {"data", "backup.zip", ".unfinished-backup.zip"}
    assert seen == {False, True}
    assert {path.name for path in tmp_path.iterdir()} == {"data", "backup.zip"}


def test_cut_off_at_any_call_a_restored_folder_is_empty_or_complete(tmp_path: Path) -> None:
    file, target = tmp_path / "backup.zip", tmp_path / "restored"
    back_up(write(tmp_path / "data"), file, ANY_ORDER, MADE_AT)

    def bring_back() -> None:
        with lock(target, "a test"):
            restore(file, target)

    complete = 0
    for cut in range(10_000):
        done = Machine(cut).run(bring_back)
        # Whoever comes next takes the lock.
        with lock(target, "app.py"):
            found = files_in(target)
        assert found in ({}, EXPECTED)
        complete += found == EXPECTED
        assert not list(target.glob(".restor*"))
        if not found:
            bring_back()
            assert files_in(target) == EXPECTED
        shutil.rmtree(target)
        if done:
            break
    assert complete > 5


def calls_of(monkeypatch: pytest.MonkeyPatch, below: Path) -> list[tuple[str, str]]:
    """Renames and flushes as they are made, with the path of what they are about."""
    made = list[tuple[str, str]]()
    fsync, rename = os.fsync, os.rename

    def flushed(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        made.append(("fsync", path.relative_to(below).as_posix()))
        fsync(descriptor)

    def renamed(old: Path, new: Path) -> None:
        made.append(("rename", new.relative_to(below).as_posix()))
        rename(old, new)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "rename", renamed)
    return made


def test_what_gets_its_name_is_on_the_disk_before_and_the_name_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 7: a power cut leaves what was written and not flushed as it likes."""
    file, target = tmp_path / "backup.zip", tmp_path / "restored"
    root = write(tmp_path / "data")
    made = calls_of(monkeypatch, tmp_path)
    back_up(root, file, ANY_ORDER, MADE_AT)
    assert made == [("fsync", ".unfinished-backup.zip"), ("rename", "backup.zip"), ("fsync", ".")]
    made.clear()
    with lock(target, "a test"):
        restore(file, target)
    whole = made.index(("rename", "restored/.restored"))
    flushed = {path for _, path in made[:whole]}
    unpacked = [path.relative_to(target) for path in target.rglob("*") if path.name != ".lock"]
    assert {f"restored/.restoring/{path.as_posix()}" for path in unpacked} | {"restored/.restoring", "."} == flushed
    top = sorted(path.name for path in target.iterdir() if path.name != ".lock")
    moved = [("rename", f"restored/{name}") for name in top]
    assert made[whole + 1 :] == [("fsync", "restored"), *moved, ("fsync", "restored"), ("fsync", "restored")]


def killed(last: int, work: Callable[[], object]) -> bool:
    """Do the work in a process of its own, which is killed at the call after `last`. Gives whether it was done."""
    child = os.fork()
    if not child:
        code = 3
        try:
            calls = itertools.count()
            for name in CALLS:
                setattr(os, name, _counted(getattr(os, name), calls, last))
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    assert ended in {0, -signal.SIGKILL}
    return ended == 0


def _counted(real: Callable[..., object], calls: Iterator[int], last: int) -> Callable[..., object]:
    def call(*args: object, **kwargs: object) -> object:
        if next(calls) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)

    return call


def test_killed_at_each_of_its_calls_it_leaves_what_the_next_one_finishes(tmp_path: Path) -> None:
    """SIGKILL, with a database: both ways, one after the other."""
    root, file, target = write(tmp_path / "data"), tmp_path / "backup.zip", tmp_path / "restored"

    def bring_back() -> None:
        with lock(target, "a test"):
            restore(file, target)

    cut = 0
    while not killed(cut, lambda: back_up(root, file, ANY_ORDER, MADE_AT)):
        if file.exists():
            assert brought_back(file, target) == EXPECTED
            file.unlink()
        cut += 3
    assert {path.name for path in tmp_path.iterdir()} == {"data", "backup.zip"}
    cut = 0
    while not killed(cut, bring_back):
        with lock(target, "app.py"):
            assert files_in(target) in ({}, EXPECTED)
        shutil.rmtree(target)
        cut += 3
    assert files_in(target) == EXPECTED


def test_what_somebody_has_put_where_a_restore_was_cut_off_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / data_folder.RESTORED / "state").mkdir(parents=True)
    (tmp_path / data_folder.RESTORED / "state" / "seen.json").write_text("{}")
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "mine").write_text("")
    with pytest.raises(OSError, match="not empty"), lock(tmp_path, "app.py"):
        pass
    assert (tmp_path / "state" / "mine").exists()
    with contextlib.suppress(OSError), lock(tmp_path, "app.py"):
        pass
    assert (tmp_path / data_folder.RESTORED / "state" / "seen.json").exists()
