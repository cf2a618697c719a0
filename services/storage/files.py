"""Writes files so that after a power cut the old or the new content is there, whole: replace, append, truncate, remove,
repair of a truncated tail; and the journal that records changes of a folder first.

`replace` and `replace_derived` swap a whole file, `append` adds to its end, `truncate` cuts some off, `remove` deletes
it, `move_aside` gives it another name, `remove_folder` deletes all that is in it. All of them block;
`clock.run_blocking` keeps them off the event loop. All raise OSError as the system reported it, with the path of the
file that was to be written.
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
        data: the whole content after `replace`; what `append` adds.
        length: of the file before `append`; of what `truncate` leaves. Whatever lies behind it goes with either.
    """

    kind: ChangeKind
    path: str
    data: bytes = b""
    length: int = 0

    def apply(self, content: bytearray) -> None:
        """Apply the change to the content of the file; `remove` leaves nothing.

        Raises:
            ValueError: it is not the content that was changed.
        """
        if len(content) < self.length:
            raise ValueError(f"{self.path}: {len(content)} bytes, where {self.length} were changed")
        del content[self.length :]
        content += self.data


class Journal(Protocol):
    """A durable log of the changes to a folder. What it has accepted counts, whether or not the disk has it."""

    def commit(self, change: FileChange) -> None:
        """Record a change durably, before it is made on the disk. Called from any thread, one change after another.

        Raises:
            Exception: the change does not happen. An OSError is reported like one of the disk.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Journaled:
    root: str
    journal: Journal
    turn: threading.Lock


_folders: tuple[_Journaled, ...] = ()


@contextlib.contextmanager
def journaled(root: Path, journal: Journal) -> Generator[None]:
    """Hand each change below `root` to `journal` first, for as long as the block runs.

    What `services.storage.files` writes there is not flushed to the disk: after a crash the folder is made again from
    the journal.
    """
    global _folders  # noqa: PLW0603 (writers know their paths only)
    folder = _Journaled(os.path.abspath(root), journal, threading.Lock())  # noqa: PTH100 (`absolute` leaves `..` in)
    _folders = (*_folders, folder)
    try:
        yield
    finally:
        _folders = tuple(each for each in _folders if each is not folder)


@contextlib.contextmanager
def committed(kind: ChangeKind, path: Path, data: bytes = b"", length: int = 0) -> Generator[bool]:
    """Make a change on the disk inside the block, after the journal has accepted it and in the journal's order. Yields
    whether there is a journal.
    """
    folder = None if not _folders else _journaled_folder(path)
    if folder is None:
        yield False
        return
    found, name = folder
    with found.turn:
        found.journal.commit(FileChange(kind, name, data, length))
        yield True


def is_journaled(path: Path) -> bool:
    return bool(_folders) and _journaled_folder(path) is not None


def _journaled_folder(path: Path) -> tuple[_Journaled, str] | None:
    full = os.path.abspath(path)  # noqa: PTH100 (as above)
    for folder in _folders:
        if full.startswith(f"{folder.root}{os.sep}"):
            return folder, full[len(folder.root) + 1 :]
    return None


P = ParamSpec("P")
T = TypeVar("T")

LEFTOVER_PREFIX = ".unfinished-"
"""Begins the names of temporary files: hidden, so that none is taken for a source or a topic."""

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make the file and its folder readable and writable"),
    **dict.fromkeys((errno.EISDIR, errno.ENOTDIR, errno.EEXIST), "something else has its name: move that away"),
}

_numbers = itertools.count()
_being_written: set[str] = set()
"""The names of temporary files; each is given once in a process, whatever the folder."""


def remedy(error: OSError) -> str:
    """Return advice for the operator about a failed file operation."""
    return _REMEDIES.get(error.errno or 0, "look after the disk and its mount")


def why(error: OSError) -> str:
    """Return one line that names the file, the error and the remedy."""
    return f"{error.filename}: {error.strerror}; {remedy(error)}"


def clear_leftovers(folder: Path) -> None:
    """Delete temporary files that crashes have left in `folder`, and none that this process is writing. For the holder
    of the data folder's lock only.
    """
    for path in folder.glob(f"{LEFTOVER_PREFIX}*"):
        if path.name not in _being_written:
            path.unlink(missing_ok=True)


def replace(path: Path, data: bytes) -> None:
    """Make `data` the whole content of `path`, atomically and durably.

    Missing folders are made; what is made is for its owner alone. A file behind a symlink is replaced there, and
    permissions are kept.
    """
    with _naming_file(path), committed("replace", path, data) as copied:
        folder = _replace_atomically(path, data, flush=not copied)
        if not copied:
            sync_folder(folder)


def replace_derived(path: Path, data: bytes, *, flush: bool = True) -> None:
    """Replace a file atomically, but durably only after a while: a power cut may bring back the old content, whole. For
    files that are derived from others and compared with them at every start. Without `flush` a power cut may leave
    anything: for copies.
    """
    with _naming_file(path), committed("replace", path, data) as copied:
        _replace_atomically(path, data, flush=flush and not copied)


def append(path: Path, data: bytes, *, own_line: bool = False) -> int:
    """Add `data` to the end of `path`, durably; returns the length of the file before. A missing file is made, with its
    folders. `own_line`: begin a new line if a crash has left a line without its end.

    If the data cannot be written whole (a full disk), the file is cut back to its old length. Appends to one file from
    several threads or processes wait for each other, so that none cuts off another's data.
    """
    with _naming_file(path):
        _make_folder(path.parent)
        descriptor = _locked(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            old_length = os.fstat(descriptor).st_size
            torn = own_line and old_length > 0 and os.pread(descriptor, 1, old_length - 1) != b"\n"
            added = b"\n" + data if torn else data
            try:
                with committed("append", path, added, old_length) as copied:
                    write_all(descriptor, added)
                    if not copied:
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
    """Keep `append` away from `path` while the block reads and replaces it. A missing file needs no lock."""
    with _naming_file(path):
        try:
            descriptor = _locked(path, os.O_RDONLY)
        except FileNotFoundError:
            descriptor = None
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def truncate(path: Path, length: int) -> None:
    """Cut a file back to `length` bytes, durably."""
    with _naming_file(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            with committed("truncate", path, length=length) as copied:
                os.ftruncate(descriptor, length)
                if not copied:
                    os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Delete a file, durably, if it is there."""
    if is_journaled(path) and not os.path.lexists(path):
        return
    with _naming_file(path), contextlib.suppress(FileNotFoundError), committed("remove", path) as copied:
        os.unlink(path)  # noqa: PTH108 (as above)
        if not copied:
            sync_folder(path.parent)


def remove_folder(folder: Path) -> None:
    """Delete a folder and what is in it, as far as that can be done, if it is there. A crash may leave some of it."""
    if is_journaled(folder):
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            remove(path)
    shutil.rmtree(folder, ignore_errors=True)


def move_aside(path: Path, ending: str) -> Path:
    """Add `ending` to the name of a file, and a number where that name is taken; durably. Gives the new path."""
    with _naming_file(path):
        names = itertools.chain([ending], (f"{ending}-{number}" for number in itertools.count(2)))
        aside = next(each for name in names if not os.path.lexists(each := path.with_name(f"{path.name}{name}")))
        if is_journaled(path):  # which knows no other names: a crash between the two leaves both
            replace(aside, path.read_bytes())
            remove(path)
        else:
            os.rename(path, aside)  # noqa: PTH104 (as above)
            sync_folder(path.parent)
        return aside


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run long blocking work off the event loop; a virtual clock does not move meanwhile. (Single writes go through
    `clock.run_blocking`.) Cancelling ends the wait, not the work.
    """
    return await asyncio.to_thread(work, *args, **kwargs)


def _replace_atomically(path: Path, data: bytes, *, flush: bool) -> Path:
    """Gives the folder in which a name now leads to new content."""
    target, mode = path, None
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            target = Path(os.path.realpath(path))
            mode = target.stat().st_mode
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


def _locked(path: Path, flags: int) -> int:
    """A descriptor that holds the lock of the file which has this name now."""
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
        os.close(descriptor)  # it was replaced while we waited, so writes to it would be lost


def _open_temporary(folder: Path) -> tuple[int, Path]:
    while True:
        # In containers the process id is the same at every start, so a leftover may have the name.
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
    """Raises OSError, also where the system takes nothing: the disk is full."""
    rest = memoryview(data)
    while rest:
        written = os.write(descriptor, rest)
        if written == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        rest = rest[written:]


def _make_folder(folder: Path) -> None:
    """Make a folder and those that lead to it, durably and for their owner alone, unless they are there."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: the file system cannot do it
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _naming_file(path: Path) -> Generator[None]:
    """Put the file's path into errors: a call on a descriptor fails without a name, one on a temporary file with the
    wrong one.
    """
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


log = logging.getLogger(__name__)

TAIL_BYTES = 1 << 16
"""Read from the end of a file at first; a last record that is longer costs further, longer reads."""


def repair_tail(path: Path, sound_length: Callable[[bytes], int], what: str) -> None:
    """Move a truncated last record to `<file>.torn`, and log it; `what` names the record, such as `line`.

    `sound_length` tells how many of the given bytes, the end of the file, are whole. A missing file is sound.

    What is appended next then begins where a whole record ends. Blocking. Raises OSError as the system reported it.
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
    # First there, then away from here: a crash between the two leaves it twice, never lost.
    append(aside, truncated + b"\n")
    truncate(path, size - len(truncated))
    size = len(truncated)
    log.warning("%s: a truncated last %s (%d bytes, left by a crash) was moved to %s", path, what, size, aside.name)


def read_tail(path: Path, length: int) -> bytes:
    """Return the last `length` bytes of a file."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - length))
        return file.read()
