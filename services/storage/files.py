"""Writes files so that a power cut leaves either the old or the new content, whole; hands changes of a folder to its
journal first.

`replace` and `replace_derived` replace a whole file, `append` adds to its end, `truncate` shortens it, `remove` deletes
it, `move_aside` gives it another name, `remove_folder` deletes a folder, and `repair_tail` removes a truncated record.
All of them block; `clock.run_blocking` keeps them off the event loop. All raise OSError as the system reported it, with
the path of the file to be written.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import itertools
import logging
import os
import shutil
import stat
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, ParamSpec, Protocol, TypeVar

ChangeKind = Literal["replace", "append", "truncate", "remove"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change to one file.

    Attributes:
        path: relative to the folder, with `/`.
        data: the whole content after `replace`; the added content of `append`.
        length: of the file before `append`, and after `truncate`. Both drop the content behind it.
    """

    kind: ChangeKind
    path: str
    data: bytes = b""
    length: int = 0

    def apply(self, content: bytearray) -> None:
        """Apply the change to the content of the file; `remove` empties it. Raises ValueError: it was another one."""
        if len(content) < self.length:
            raise ValueError(f"{self.path}: {len(content)} bytes, where {self.length} were changed")
        del content[self.length :]
        content += self.data


class Journal(Protocol):
    """A durable log of the changes to a folder. A change that it has accepted counts, even if the disk lacks it."""

    def commit(self, change: FileChange) -> None:
        """Record a change durably, before it is made on the disk. Called from any thread, one change after another.

        Raises:
            Exception: the change is not made. An OSError is reported like one of the disk.
        """
        ...


@dataclass(frozen=True, slots=True)
class _JournaledFolder:
    root: str
    journal: Journal
    lock: threading.Lock


_folders: tuple[_JournaledFolder, ...] = ()


@contextlib.contextmanager
def use_journal(root: Path, journal: Journal) -> Generator[None]:
    """Hand each change below `root` to `journal` first, while the block runs. Such files are not flushed to the disk:
    after a crash the folder is made again from the journal.
    """
    global _folders  # noqa: PLW0603 (writers know their paths only)
    folder = _JournaledFolder(os.path.abspath(root), journal, threading.Lock())  # noqa: PTH100 (`absolute` leaves `..` in)
    _folders = (*_folders, folder)
    try:
        yield
    finally:
        _folders = tuple(each for each in _folders if each is not folder)


@contextlib.contextmanager
def journal_change(kind: ChangeKind, path: Path, data: bytes = b"", length: int = 0) -> Generator[bool]:
    """Hand a change to the journal, if there is one; the block then makes the change on the disk, in the order of the
    journal. Yields True if there is a journal.
    """
    found = None if not _folders else _find_folder(path)
    if found is None:
        yield False
        return
    folder, name = found
    with folder.lock:
        folder.journal.commit(FileChange(kind, name, data, length))
        yield True


def is_journaled(path: Path) -> bool:
    return bool(_folders) and _find_folder(path) is not None


def _find_folder(path: Path) -> tuple[_JournaledFolder, str] | None:
    full = os.path.abspath(path)  # noqa: PTH100 (as above)
    for folder in _folders:
        if full.startswith(f"{folder.root}{os.sep}"):
            return folder, full[len(folder.root) + 1 :]
    return None


P = ParamSpec("P")
T = TypeVar("T")

LEFTOVER_PREFIX = ".unfinished-"
"""The beginning of the names of temporary files: hidden, so that none is taken for a source or a topic."""

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make the file and its folder readable and writable"),
    **dict.fromkeys((errno.EISDIR, errno.ENOTDIR, errno.EEXIST), "something else has its name: move that away"),
}

_numbers = itertools.count()
_being_written: set[str] = set()
"""The names of temporary files; a process uses each name once, in all folders."""


def remedy(error: OSError) -> str:
    """Return advice for the operator after a failed file operation."""
    return _REMEDIES.get(error.errno or 0, "look after the disk and its mount")


def describe_error(error: OSError) -> str:
    """Return one line with the file, the error and the remedy."""
    return f"{error.filename}: {error.strerror}; {remedy(error)}"


def clear_leftovers(folder: Path) -> None:
    """Delete the temporary files that crashes have left in `folder`. Only for the holder of the data folder's lock."""
    for path in folder.glob(f"{LEFTOVER_PREFIX}*"):
        if path.name not in _being_written:
            path.unlink(missing_ok=True)


def replace(path: Path, data: bytes) -> None:
    """Make `data` the whole content of `path`, atomically and durably. Missing folders are made. New files are for
    their owner alone; others keep their permissions. A file behind a symlink is replaced there.
    """
    with _name_in_errors(path), journal_change("replace", path, data) as has_journal:
        folder = _replace_atomically(path, data, flush=not has_journal)
        if not has_journal:
            sync_folder(folder)


def replace_derived(path: Path, data: bytes, *, flush: bool = True) -> None:
    """Replace a file that is derived from others, and compared with them at every start: a power cut may bring back the
    old content, whole. Without `flush`, for copies, it may leave anything.
    """
    with _name_in_errors(path), journal_change("replace", path, data) as has_journal:
        _replace_atomically(path, data, flush=flush and not has_journal)


def append(path: Path, data: bytes, *, own_line: bool = False) -> int:
    """Add `data` to the end of `path`, durably. Returns the old length of the file. A missing file is made, with its
    folders. `own_line`: begin a new line if the last line has no end, after a crash.

    If the data cannot be written whole (a full disk), the file is cut back to its old length. Appends to one file by
    several threads or processes wait for each other, so that none cuts off the data of another.
    """
    with _name_in_errors(path):
        _make_folder(path.parent)
        descriptor = _open_locked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            old_length = os.fstat(descriptor).st_size
            is_torn = own_line and old_length > 0 and os.pread(descriptor, 1, old_length - 1) != b"\n"
            added = b"\n" + data if is_torn else data
            try:
                with journal_change("append", path, added, old_length) as has_journal:
                    write_all(descriptor, added)
                    if not has_journal:
                        os.fsync(descriptor)
                        if old_length == 0:  # perhaps new: its name must be durable as well
                            sync_folder(path.parent)
            except BaseException:
                os.ftruncate(descriptor, old_length)
                os.fsync(descriptor)
                raise
        finally:
            os.close(descriptor)
        return old_length


@contextlib.contextmanager
def locked_for_edit(path: Path) -> Generator[None]:
    """Let calls of `append` to `path` wait while the block reads and replaces it. A missing file needs no lock. Raises
    OSError, also for what is no file, such as a pipe, of which reading never ends.
    """
    with _name_in_errors(path):
        try:
            descriptor = _open_locked(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError:
            descriptor = None
    try:
        if descriptor is not None and not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Not a file", str(path))
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def truncate(path: Path, length: int) -> None:
    """Cut a file back to `length` bytes, durably."""
    with _name_in_errors(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            with journal_change("truncate", path, length=length) as has_journal:
                os.ftruncate(descriptor, length)
                if not has_journal:
                    os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file durably, if it exists."""
    if is_journaled(path) and not os.path.lexists(path):
        return
    with _name_in_errors(path), contextlib.suppress(FileNotFoundError), journal_change("remove", path) as has_journal:
        os.unlink(path)  # noqa: PTH108 (as above)
        if not has_journal:
            sync_folder(path.parent)


def remove_folder(folder: Path) -> None:
    """Delete a folder with its content, if it exists, as far as possible. A crash may leave some of it."""
    if is_journaled(folder):
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            remove(path)
    shutil.rmtree(folder, ignore_errors=True)


def move_aside(path: Path, ending: str) -> Path:
    """Add `ending` to the name of a file, and a number if that name is taken; durably. Returns the new path."""
    with _name_in_errors(path):
        names = itertools.chain([ending], (f"{ending}-{number}" for number in itertools.count(2)))
        aside = next(each for name in names if not os.path.lexists(each := path.with_name(f"{path.name}{name}")))
        if is_journaled(path):  # a journal cannot rename: a crash between the two changes leaves both files
            replace(aside, path.read_bytes())
            remove(path)
        else:
            os.rename(path, aside)  # noqa: PTH104 (as above)
            sync_folder(path.parent)
        return aside


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run long blocking work off the event loop. A virtual clock stops meanwhile. Cancelling ends the wait, not the
    work. For single writes use `clock.run_blocking`.
    """
    return await asyncio.to_thread(work, *args, **kwargs)


def _replace_atomically(path: Path, data: bytes, *, flush: bool) -> Path:
    """Return the folder of the replaced file, symlinks followed."""
    target, mode = path, None
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            target = Path(os.path.realpath(path))
            mode = target.stat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):  # /dev/null, or a pipe: never replaced by a file
            target.write_bytes(data)
            return target.parent
    descriptor, temporary = _open_temporary(target.parent)
    try:
        try:
            if mode is not None:
                os.fchmod(descriptor, stat.S_IMODE(mode))
            write_all(descriptor, data)
            if flush:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, target)  # noqa: PTH104 (the crash tests cut at the system calls)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108 (as above)
        raise
    finally:
        _being_written.discard(temporary.name)
    return target.parent


def _open_locked(path: Path, flags: int) -> int:
    """Open a file and wait for its lock. Returns the descriptor, of the file that has this name then."""
    while True:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the file was replaced during the wait, so writes to it would be lost


def _open_temporary(folder: Path) -> tuple[int, Path]:
    while True:
        # In containers the process id is the same at every start, so a leftover may have this name.
        temporary = folder / f"{LEFTOVER_PREFIX}{os.getpid()}-{next(_numbers)}"
        _being_written.add(temporary.name)
        try:
            return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), temporary
        except OSError as error:
            _being_written.discard(temporary.name)
            if isinstance(error, FileNotFoundError):
                _make_folder(folder)
            elif not isinstance(error, FileExistsError):
                raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`. Raises OSError, even if the system only reports that it wrote nothing: the disk is full."""
    rest = memoryview(data)
    while rest:
        written = os.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rest = rest[written:]


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents, unless they exist: durably, and for their owner alone."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names of the files in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: the file system cannot do it
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _name_in_errors(path: Path) -> Generator[None]:
    """Put the path into errors: calls on descriptors fail without one, those on temporary files with another."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        del error.filename2  # if it were None, the text of the error would end in "-> None"
        raise


log = logging.getLogger(__name__)

TAIL_BYTES = 1 << 16
"""The length that is read from the end of a file at first; a longer last record needs longer reads."""


def repair_tail(path: Path, sound_length: Callable[[bytes], int], what: str) -> None:
    """Move a truncated last record to `<file>.torn`, and log it, so that the next append begins behind a whole record.

    `sound_length`: receives the end of the file, and returns the length of its whole records, in bytes. `what`: the
    noun for a record, such as `line`. A missing file is sound.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return
    length = TAIL_BYTES
    sound = sound_length(data := read_tail(path, length))
    while not sound and length < size:
        length *= 2
        sound = sound_length(data := read_tail(path, length))
    truncated = data[sound:]
    if not truncated:
        return
    aside = path.with_name(f"{path.name}.torn")
    # Appended there before it is removed here: after a crash between the two it exists twice.
    append(aside, truncated + b"\n")
    truncate(path, size - len(truncated))
    size = len(truncated)
    log.warning("%s: a truncated last %s (%d bytes, left by a crash) was moved to %s", path, what, size, aside.name)


def read_tail(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - length))
        return file.read()
