from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from services.storage import files
from tests.watched_loop import run_watched

REPOSITORY = Path(__file__).parents[3]
REPLACE_CALLS = ("open", "write", "fsync", "close", "rename")
APPEND_CALLS = ("open", "write", "fsync", "close")


class PowerCut(BaseException):
    """From here on nothing reaches the disk."""


def cut_at(monkeypatch: pytest.MonkeyPatch, call: str, number: int, *, partial: bool = False) -> Callable[[], bool]:
    """Cut the power at the `number`th time that `call` is made; gives whether it came to that."""
    count, dead = 0, False

    def patch(name: str) -> None:
        real = getattr(os, name)

        def call_or_die(*args: object, **kwargs: object) -> object:
            nonlocal count, dead
            if not dead and name == call:
                count += 1
                dead = count == number
                if dead and partial:
                    descriptor, data = cast("tuple[int, memoryview]", args)
                    real(descriptor, data[: len(data) // 2])
            if dead:
                raise PowerCut
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, call_or_die)

    # The dead write nothing: not even the calls that would tidy up.
    for name in ("open", "write", "fsync", "rename", "unlink", "ftruncate", "close", "fchmod"):
        patch(name)
    return lambda: dead


@pytest.mark.parametrize("old", [None, b"the old content"])
@pytest.mark.parametrize("call", REPLACE_CALLS)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("partial", [False, True])
def test_after_a_cut_at_any_system_call_a_replaced_file_is_old_or_new_and_whole(
    old: bytes | None, call: str, number: int, partial: bool, tmp_path: Path
) -> None:
    """Pitfalls 7 and 40."""
    path, new = tmp_path / "state.json", b"the new content"
    if old is not None:
        path.write_bytes(old)
    with pytest.MonkeyPatch.context() as monkeypatch:
        was_cut = cut_at(monkeypatch, call, number, partial=partial and call == "write")
        try:
            files.replace(path, new)
        except PowerCut:
            assert was_cut()
        else:
            assert not was_cut()
    found = path.read_bytes() if path.exists() else None
    assert found in {old, new}
    for other in set(tmp_path.iterdir()) - {path}:
        assert other.name.startswith(files.LEFTOVER_PREFIX)
    # The next start is not disturbed.
    files.clear_leftovers(tmp_path)
    files.replace(path, b"newer")
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("state.json", b"newer")]


@pytest.mark.parametrize("call", APPEND_CALLS)
@pytest.mark.parametrize("number", [1, 2])
def test_after_a_cut_at_any_system_call_what_stood_in_a_file_appended_to_still_stands(
    call: str, number: int, tmp_path: Path
) -> None:
    """Pitfall 7."""
    path = tmp_path / "raw.txt"
    path.write_bytes(b"old\n\n")
    with pytest.MonkeyPatch.context() as monkeypatch:
        cut_at(monkeypatch, call, number, partial=call == "write")
        with contextlib.suppress(PowerCut):
            files.append(path, b"new block\n\n")
    assert path.read_bytes() in {b"old\n\n", b"old\n\nnew ", b"old\n\nnew b", b"old\n\nnew block\n\n"}


def fail(error: OSError) -> Callable[..., int]:
    def call(*args: object) -> int:
        raise error

    return call


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "fchmod"])
def test_a_replacement_that_fails_leaves_the_old_content_and_no_litter(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index.txt"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, call, fail(OSError(errno.EIO, "broken")))
    with pytest.raises(OSError, match=f"broken: '{path}'$") as caught:
        files.replace(path, b"new")
    assert (caught.value.filename, caught.value.filename2) == (str(path), None)
    monkeypatch.undo()
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("index.txt", b"old")]


def test_an_append_to_a_full_disk_gives_the_file_its_old_length_back(tmp_path: Path) -> None:
    path = tmp_path / "raw.txt"
    files.append(path, b"x" * 5000)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    try:
        with pytest.raises(OSError, match=str(path)):
            files.append(path, b"y" * 5000)
        with pytest.raises(OSError, match=str(path)):
            files.replace(path, b"y" * 7000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert path.read_bytes() == b"x" * 5000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("before", "after"), [(b"", b"new\n"), (b"whole\n", b"whole\nnew\n"), (b"to", b"to\nnew\n")])
def test_a_line_may_begin_behind_one_that_a_crash_cut_off(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(before)
    assert files.append(path, b"new\n", own_line=True) == len(before)
    assert path.read_bytes() == after


def test_a_write_that_takes_nothing_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(descriptor: int, data: memoryview) -> int:
        return 0

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space left") as caught:
        files.append(tmp_path / "raw.txt", b"block")
    assert caught.value.errno == errno.ENOSPC
    assert (tmp_path / "raw.txt").read_bytes() == b""


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write

    def write(descriptor: int, data: memoryview) -> int:
        return real(descriptor, data[:3])

    monkeypatch.setattr(os, "write", write)
    files.append(tmp_path / "raw.txt", b"0123456789")
    files.append(tmp_path / "raw.txt", b"abcdefg")
    files.replace(tmp_path / "state.json", b"0123456789")
    assert (tmp_path / "raw.txt").read_bytes() == b"0123456789abcdefg"
    assert (tmp_path / "state.json").read_bytes() == b"0123456789"


def test_data_name_and_new_folders_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall 7: no fsync anywhere."""
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()).removeprefix(str(tmp_path)))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    files.append(tmp_path / "a" / "b" / "raw.txt", b"1")
    assert synced == ["", "/a", "/a/b/raw.txt", "/a/b"]
    synced.clear()
    files.append(tmp_path / "a" / "b" / "raw.txt", b"2")
    assert synced == ["/a/b/raw.txt"]
    synced.clear()
    files.replace(tmp_path / "state.json", b"1")
    assert synced[0].startswith("/" + files.LEFTOVER_PREFIX)
    assert synced[1:] == [""]
    synced.clear()
    files.replace_derived(tmp_path / "state.json", b"2")
    assert [name.startswith("/" + files.LEFTOVER_PREFIX) for name in synced] == [True]
    assert (tmp_path / "state.json").read_bytes() == b"2"


def test_a_file_system_that_cannot_sync_folders_is_good_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not for folders")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    files.replace(tmp_path / "state.json", b"1")
    assert (tmp_path / "state.json").read_bytes() == b"1"


def test_a_folder_that_fails_to_sync_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", fail(OSError(errno.EIO, "broken")))
    with pytest.raises(OSError, match="broken"):
        files.replace(tmp_path / "a" / "state.json", b"1")


def test_permissions_and_symlinks_outlive_a_replacement(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    files.replace(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_a_deleted_file_is_gone_for_good_and_one_moved_aside_overwrites_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    path = tmp_path / "topic.txt"
    path.write_bytes(b"1")
    files.remove(path)
    files.remove(path)
    assert (path.exists(), len(synced)) == (False, 1)
    for content, name in ((b"2", "topic.txt.rejected"), (b"3", "topic.txt.rejected-2")):
        path.write_bytes(content)
        assert files.move_aside(path, ".rejected") == tmp_path / name
    assert [(each.name, each.read_bytes()) for each in sorted(tmp_path.iterdir())] == [
        ("topic.txt.rejected", b"2"),
        ("topic.txt.rejected-2", b"3"),
    ]
    assert len(synced) == 3


def test_a_leftover_of_the_same_name_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_numbers", iter([7, 8]))
    (tmp_path / f"{files.LEFTOVER_PREFIX}{os.getpid()}-7").write_bytes(b"torn")
    files.replace(tmp_path / "state.json", b"new")
    assert (tmp_path / "state.json").read_bytes() == b"new"
    files.clear_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "state.json"]


@pytest.mark.parametrize("write", [files.replace, files.replace_derived])
def test_a_file_that_is_being_written_is_no_leftover(
    write: Callable[[Path, bytes], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pitfall 40: somebody may be forgotten meanwhile."""
    written = files.write_all

    def slowly(descriptor: int, data: bytes) -> None:
        written(descriptor, data)
        files.clear_leftovers(tmp_path / "new")

    monkeypatch.setattr(files, "write_all", slowly)
    write(tmp_path / "new" / "state.json", b"new")
    assert [(each.name, each.read_bytes()) for each in (tmp_path / "new").iterdir()] == [("state.json", b"new")]


def test_the_longest_file_name_can_be_replaced(tmp_path: Path) -> None:
    files.replace(tmp_path / ("x" * 255), b"new")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"new"


def test_appends_from_many_threads_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "feedback.jsonl"
    blocks = [bytes([65 + number]) * 2000 + b"\n" for number in range(8)]
    threads = [threading.Thread(target=files.append, args=(path, block)) for block in blocks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.read_bytes().splitlines(keepends=True)) == blocks


WRITER = """
import itertools, pathlib, sys
from services.storage import files
from tests.watched_loop import run_watched
folder = pathlib.Path(sys.argv[1])
for number in itertools.count():
    files.replace(folder / "state.json", b"%d." % number * 20000)
    files.append(folder / "raw.txt", b"%d\\n" % number)
    print(flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    """Pitfall 7."""
    for rounds in (1, 3, 6):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            for _ in range(rounds):
                assert process.stdout.readline(), "it goes on"
            process.kill()
        content = (tmp_path / "state.json").read_bytes()
        number = content[: content.index(b".") + 1]
        assert content == number * 20000
        assert (tmp_path / "raw.txt").read_bytes().endswith(b"\n")


async def test_file_work_runs_off_the_loop() -> None:
    """Pitfall 38."""
    assert await files.in_thread(threading.get_ident) != threading.get_ident()
    assert await files.in_thread(int, "11", base=2) == 3


def test_a_virtual_clock_stands_still_during_file_work() -> None:
    async def work(waits: threading.Event) -> float:
        timer = asyncio.get_running_loop().call_later(1, lambda: None)
        assert await files.in_thread(waits.wait, 5)
        timer.cancel()
        return asyncio.get_running_loop().time()

    assert run_watched(work) == 0


def test_an_append_waits_for_whoever_edits_the_file_and_goes_to_what_took_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"one\n")
    with files.locked_for_edit(path):
        later = threading.Thread(target=files.append, args=(path, b"three\n"))
        later.start()
        later.join(0.05)
        assert later.is_alive()
        files.replace(path, path.read_bytes() + b"two\n")
    later.join(5)
    assert path.read_bytes() == b"one\ntwo\nthree\n"


def test_a_file_that_does_not_exist_keeps_nobody_away(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with files.locked_for_edit(path):
        files.append(path, b"one\n")
    assert path.read_bytes() == b"one\n"


def test_a_lock_that_fails_leaves_no_descriptor_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(b"one\n")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(OSError, match="No locks available"), files.locked_for_edit(path):
        pass
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_pipe_is_written_to_and_not_replaced_by_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        files.replace(pipe, b"said")
        assert os.read(reader, 100) == b"said"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
