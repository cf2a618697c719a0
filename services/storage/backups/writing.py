"""Writes a backup: selects the files and their order, copies SQLite databases with SQLite itself, and packs all into a
temporary file that is renamed at the end.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import sqlite3
import stat
import time
import zipfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from services.storage import confined, data_folder, files
from services.storage.backups import manifest
from services.storage.backups.manifest import NAME, PREFIX, CopiedFile, Manifest
from services.storage.files import LEFTOVER_PREFIX

SQLITE_HEADER = b"SQLite format 3\0"
SQLITE_SUFFIX = ".sqlite"
_COMPANIONS = ("-wal", "-shm", "-journal")
_TRIES = 5
_BUSY_SECONDS = 30.0
_SETTLED_NS = 1_000_000_000
"""How old a file's last change is at least, so that another one cannot have the same time."""


class DamagedDatabase(Exception):
    """An SQLite file cannot be copied whole: the message says what SQLite says."""


def is_database(path: Path, head: bytes) -> bool:
    """True if a file is a database; `head`: its first bytes. A database that was just made may have none."""
    return head.startswith(SQLITE_HEADER) or (path.suffix == SQLITE_SUFFIX and not head)


def is_database_companion(path: Path) -> bool:
    """True if a file is one that SQLite keeps beside a database (`-wal`, `-shm`, `-journal`): a copy of the database
    contains it already.
    """
    base = next((path.name.removesuffix(tail) for tail in _COMPANIONS if path.name.endswith(tail)), None)
    if not base:
        return False
    try:
        with path.with_name(base).open("rb") as file:
            return is_database(path.with_name(base), file.read(len(SQLITE_HEADER)))
    except OSError:
        return False  # there is none, or it is a folder


def copy_database(source: Path, target: Path) -> None:
    """Copy the database `source`, as it is at one moment, to `target`, which must not exist; the copy is checked.

    Nothing is written beside `source`, unless a process has it open or was killed with it open.

    Raises:
        FileNotFoundError: it is gone.
        DamagedDatabase: SQLite cannot read it.
        OSError: as the system reports it.
    """
    for _ in range(_TRIES):
        before = source.stat()
        # With nothing in a log, the file is all there is. SQLite then reads it as it stands; else it would make a log
        # of its own, and leave it there.
        alone = not any(_companion_has_content(source, tail) for tail in _COMPANIONS if tail != "-shm")
        alone = alone and time.time_ns() - before.st_mtime_ns > _SETTLED_NS
        try:
            _copy_once(source, target, "immutable=1" if alone else "mode=ro")
        except sqlite3.Error as error:
            problem = error
        else:
            problem = None
        # Deleted and made anew meanwhile; or written, where SQLite was told that nobody would.
        changed = not _same_file(source, before) or (alone and _signature(source) != confined.signature(before))
        if not changed and problem is None:
            return
        target.unlink(missing_ok=True)
        if not changed:
            raise DamagedDatabase(str(problem))
    raise DamagedDatabase("it changes too often to be copied")


def _copy_once(source: Path, target: Path, how: str) -> None:
    with _connected(source, how) as held, _connected(target, "mode=rwc") as made:
        made.execute("PRAGMA journal_mode = OFF")
        made.execute("PRAGMA synchronous = OFF")  # whoever copies it on does that
        held.backup(made)
    with _connected(target, "immutable=1") as made:
        ((found, *_), *_) = made.execute("PRAGMA quick_check(1)").fetchall()
        if found != "ok":
            raise sqlite3.DatabaseError(str(found))


@contextlib.contextmanager
def _connected(path: Path, how: str) -> Generator[sqlite3.Connection]:
    with contextlib.closing(
        sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
    ) as connection:
        yield connection


def _companion_has_content(path: Path, tail: str) -> bool:
    try:
        return path.with_name(path.name + tail).stat().st_size > 0
    except FileNotFoundError:
        return False


def _signature(path: Path) -> confined.Signature:
    return confined.signature(path.stat())


def _same_file(path: Path, before: os.stat_result) -> bool:
    """Raises FileNotFoundError: there is none any more."""
    return os.path.samestat(path.stat(), before)


_SKIPPED = {".lock", data_folder.RESTORING, data_folder.RESTORED, "lost+found"}
"""At the top of the folder: of no use in another one."""


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """The order in which files are copied: the reverse of the order in which the program writes.

    It writes what counts, and after that what relies on it: an answer's record, then the mark that its question is
    done; a capture, then the decision about it, then the topic. Copied the other way round, whatever relies on
    something was copied before it. So the copy of that something is at least as new, and has it. Copied in the order
    of writing, a mark could be newer than the records, and vouch for a capture that the backup does not hold.

    So the copies, together, are what a crash between two writes could have left, and every start heals that.

    Attributes:
        first, last: files and folders; all that is not named comes between them.
        without: files and folders that are left out.
    """

    first: Sequence[Path] = ()
    last: Sequence[Path] = ()
    without: Sequence[Path] = ()


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """A file to be copied, and its name in the backup."""

    path: Path
    name: str


@dataclass(slots=True)
class Selection:
    """Walks a folder in the order of the copy.

    Attributes:
        folders: those that hold nothing, by their names in the backup.
        left: lines for the operator about what is not copied, each with its reason.
    """

    root: Path
    order: CopyOrder
    folders: set[str] = field(default_factory=set[str], init=False)
    left: list[str] = field(default_factory=list[str], init=False)
    _done: set[Path] = field(default_factory=set[Path], init=False)

    def __iter__(self) -> Iterator[SelectedFile]:
        """Yield each file once, as it is when its turn comes. Raises OSError: a folder cannot be read."""
        held_back = set(self.order.last)
        self._done = {*self.order.without, *held_back}
        for place in self.order.first:
            yield from self._turn_of(place)
        yield from self._below(self.root)
        self._done -= held_back
        for place in self.order.last:
            yield from self._turn_of(place)

    def _turn_of(self, place: Path) -> Iterator[SelectedFile]:
        if place.is_relative_to(self.root) and place not in self._done:
            yield from self._found(place)
            self._done.add(place)

    def _below(self, folder: Path) -> Iterator[SelectedFile]:
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 (names only)
        except FileNotFoundError:
            return  # it was there a moment ago
        if not names and folder != self.root:
            self.folders.add(folder.relative_to(self.root).as_posix())
        for name in names:
            path = folder / name
            passed_over = folder == self.root and name in _SKIPPED
            if path in self._done or passed_over or name.startswith(LEFTOVER_PREFIX):
                continue
            yield from self._found(path)

    def _found(self, path: Path) -> Iterator[SelectedFile]:
        name = path.relative_to(self.root).as_posix()
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
        if not manifest.is_sound(name):
            self.left.append(f"{name} (a name that not every system takes)")
            return
        if stat.S_ISLNK(mode):
            target = Path(os.path.realpath(path))
            if not (target.is_file() and target.is_relative_to(os.path.realpath(self.root))):
                self.left.append(f"{name} (a link to elsewhere)")
                return
        elif stat.S_ISDIR(mode):
            yield from self._below(path)
            return
        elif not stat.S_ISREG(mode):
            self.left.append(f"{name} (no ordinary file)")
            return
        if not is_database_companion(path):
            yield SelectedFile(path, name)


_CHUNK_BYTES = 1024 * 1024
_NAME_BYTES = 255
_COPY_PREFIX = ".database-for-"
"""Of the copy of a database, beside a backup that is being written: no backup is ever written under such a name."""
_ZIP, _ZIP_NAME = b"PK\x03\x04", 30
"""How an archive begins, and where the name of its first file stands."""
_FILE_MODE = stat.S_IFREG | 0o600


class BackupRefused(Exception):
    """A backup cannot be written to this file. The message is half a line that follows the file's name."""


@dataclass(slots=True)
class CopyProgress:
    """The progress of a backup or restore; read by other threads.

    Attributes:
        files, size: what was copied, in bytes before packing.
        total: how many files there are; None while that is unknown.
    """

    files: int = 0
    size: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class BackupResult:
    """The result of a backup.

    Attributes:
        size: of the backup, in bytes.
        left: names of what is not in it, each with its reason in brackets.
        damaged: databases that could not be copied, likewise.
    """

    manifest: Manifest
    size: int
    left: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


def back_up(root: Path, file: Path, order: CopyOrder, made_at: str, count: CopyProgress | None = None) -> BackupResult:
    """Copy the data folder `root` into `file`. An existing `file` is replaced if it is a backup. Needs no lock.

    Writers of the folder do not wait, except for an append to a file whose length is being read.

    Raises:
        BackupRefused: `file` must not, or cannot, be written; nothing was done.
        OSError: something cannot be read, or the disk is full. Nothing is left of the backup then.
    """
    file = Path(os.path.realpath(file))
    if len(os.fsencode(f"{_COPY_PREFIX}{file.name}-journal")) > _NAME_BYTES:
        raise BackupRefused("has too long a name; choose a shorter one")
    if file.is_relative_to(os.path.realpath(root)):
        raise BackupRefused("lies in the data folder, and would be lost with it; name a file elsewhere")
    if (root / data_folder.RESTORED).is_dir():
        raise BackupRefused(
            "cannot be made: a restore of the data folder was cut off; start the bot, which finishes it"
        )
    _check_replaceable(file)
    clear_leftovers(file.parent)
    with temporary_backup(file) as descriptor:
        copying = BackupWriter(Selection(root, order), file, count or CopyProgress())
        made = copying.write(_Output(file, descriptor), made_at)
        size = os.fstat(descriptor).st_size
    return BackupResult(made, size, tuple(copying.selection.left), tuple(copying.damaged))


def _check_replaceable(file: Path) -> None:
    if not file.parent.is_dir():
        raise BackupRefused(f"cannot be made: there is no folder {file.parent}; make it, or name another")
    if file.is_dir():
        raise BackupRefused("is a folder; name a file in it")
    if not os.path.lexists(file):
        return
    try:
        with zipfile.ZipFile(file) as there:
            there.getinfo(NAME)
    except (OSError, zipfile.BadZipFile, KeyError):
        raise BackupRefused("is there already, and is no backup; move it away, or name another file") from None


def clear_leftovers(folder: Path) -> None:
    """Delete what killed backups have left in `folder`: hidden files that contain what people wrote."""
    for path in folder.glob(f"{files.LEFTOVER_PREFIX}*"):
        with contextlib.suppress(OSError, BackupRefused):  # gone, or somebody else's
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                lock_temporary(descriptor, path)
                head = os.pread(descriptor, _ZIP_NAME + len(PREFIX), 0)
                if head.startswith(_ZIP) and head[_ZIP_NAME:] == PREFIX.encode():
                    path.unlink()
            finally:
                os.close(descriptor)
    for path in folder.glob(f"{_COPY_PREFIX}*"):
        target = re.sub("-(journal|wal|shm)$", "", path.name.removeprefix(_COPY_PREFIX))
        if not path.with_name(f"{files.LEFTOVER_PREFIX}{target}").exists():  # else it is being written
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def temporary_backup(file: Path) -> Generator[int]:
    """Open a temporary file that becomes `file` when the block ends, and is deleted when it raises. Yields its
    descriptor.

    Its name is always the same, so that what a killed process left is used again. A lock keeps other processes from it.
    """
    temporary = file.with_name(f"{files.LEFTOVER_PREFIX}{file.name}")
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise BackupRefused(f"cannot be made: {error.strerror}; {files.remedy(error)}") from None
    try:
        lock_temporary(descriptor, temporary)
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        try:
            yield descriptor
            os.fsync(descriptor)
            os.rename(temporary, file)  # noqa: PTH104 (the crash tests cut at the system calls)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 (as above)
            raise
        files.sync_folder(file.parent)
    finally:
        os.close(descriptor)


def lock_temporary(descriptor: int, temporary: Path) -> None:
    busy = BackupRefused("is being written by another process; wait for it, or name another file")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise busy from None
    try:
        if os.path.samestat(os.fstat(descriptor), temporary.stat()):
            return
    except FileNotFoundError:
        pass
    raise busy  # it was finished between the two steps: what is open here is a whole backup


@dataclass(slots=True)
class _Output:
    """The file that the archive is written to, front to back, without seeking. Errors name the file that was asked
    for.
    """

    file: Path
    descriptor: int

    def write(self, data: bytes | bytearray | memoryview) -> int:
        try:
            files.write_all(self.descriptor, bytes(data))
        except OSError as error:
            error.filename = str(self.file)
            raise
        return len(data)

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Whoever opened it closes it."""


@dataclass(slots=True)
class BackupWriter:
    selection: Selection
    file: Path
    count: CopyProgress
    copied: list[CopiedFile] = field(default_factory=list[CopiedFile], init=False)
    damaged: list[str] = field(default_factory=list[str], init=False)

    def write(self, output: _Output, made_at: str) -> Manifest:
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for found in self.selection:
                # Where it is gone, it was removed since it was listed.
                with contextlib.suppress(FileNotFoundError):
                    self.copy(archive, found)
            parents = {parent for each in self.copied for parent in _folders_of(each.path)}
            folders = tuple(sorted(self.selection.folders - parents))
            made = Manifest(made_at, tuple(self.copied), folders)
            archive.writestr(_entry(NAME), manifest.render(made))
        return made

    def copy(self, archive: zipfile.ZipFile, found: SelectedFile) -> None:
        with found.path.open("rb") as file:
            # Appends are made under this lock: the length is that of whole ones. What stands before it never changes,
            # and whoever replaces the file makes another one.
            size = size_under_lock(file)
            if not is_database(found.path, file.read(len(SQLITE_HEADER))):
                file.seek(0)
                self._add(archive, found.name, file, size)
                return
        copy = self.file.with_name(f"{_COPY_PREFIX}{self.file.name}")
        copy.unlink(missing_ok=True)
        try:
            copy_database(found.path, copy)
            with copy.open("rb") as file:
                self._add(archive, found.name, file, os.fstat(file.fileno()).st_size)
        except DamagedDatabase as error:
            self.damaged.append(f"{found.name} ({error})")
        finally:
            for tail in ("", "-journal", "-wal", "-shm"):
                copy.with_name(copy.name + tail).unlink(missing_ok=True)

    def _add(self, archive: zipfile.ZipFile, name: str, file: BinaryIO, size: int) -> None:
        entry = _entry(PREFIX + name)
        entry.file_size = size  # tells whether its header needs room for a large number
        changed = os.fstat(file.fileno()).st_mtime_ns
        hashed, left = hashlib.sha256(), size
        with archive.open(entry, "w") as packed:
            while left:
                data = file.read(min(left, _CHUNK_BYTES))
                if not data:
                    raise OSError(errno.EAGAIN, "became shorter while it was copied", file.name)
                packed.write(data)
                hashed.update(data)
                left -= len(data)
                self.count.size += len(data)
        self.copied.append(CopiedFile(name, size, changed, hashed.hexdigest()))
        self.count.files += 1


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # of 1980: the manifest has the real times
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = _FILE_MODE << 16
    return entry


def size_under_lock(file: BinaryIO) -> int:
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_SH)
    try:
        return os.fstat(file.fileno()).st_size
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)


def _folders_of(path: str) -> list[str]:
    steps = path.split("/")[:-1]
    return ["/".join(steps[: n + 1]) for n in range(len(steps))]
