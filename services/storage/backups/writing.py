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
from pathlib import Path, PurePosixPath
from typing import BinaryIO
from urllib.parse import quote

from services.storage import confined, data_folder, files
from services.storage.backups import manifest
from services.storage.backups.manifest import DATA_PREFIX, MANIFEST_NAME, RESERVED_NAMES, CopiedFile, Manifest
from services.storage.files import LEFTOVER_PREFIX

SQLITE_HEADER = b"SQLite format 3\0"
SQLITE_SUFFIX = ".sqlite"
_COMPANION_SUFFIXES = ("-wal", "-shm", "-journal")
_TRIES = 5
_BUSY_SECONDS = 30.0
_UNCHANGED_NS = 1_000_000_000
"""The least age of a file's last change, so that another change cannot have the same time."""


class DamagedDatabase(Exception):
    """An SQLite file cannot be copied whole. The message is SQLite's."""


def is_database(path: Path, head: bytes) -> bool:
    """Return True if a file is a database. `head`: its first bytes, of which a new database may have none."""
    return head.startswith(SQLITE_HEADER) or (path.suffix == SQLITE_SUFFIX and not head)


def is_database_companion(path: Path) -> bool:
    """Return True if SQLite keeps a file beside a database (`-wal`, …), whose copy contains it already."""
    base = next((path.name.removesuffix(suffix) for suffix in _COMPANION_SUFFIXES if path.name.endswith(suffix)), None)
    if not base:
        return False
    try:
        with path.with_name(base).open("rb") as file:
            return is_database(path.with_name(base), file.read(len(SQLITE_HEADER)))
    except OSError:
        return False  # the database does not exist, or is a folder


def copy_database(source: Path, target: Path) -> None:
    """Copy the database `source`, as it is at one moment, to `target`, which must not exist; the copy is checked.

    Nothing is written beside `source`, unless a process has it open or was killed with it open.

    Raises:
        FileNotFoundError: the database was deleted.
        DamagedDatabase: SQLite cannot read it.
        OSError: as the system reports it.
    """
    for _ in range(_TRIES):
        before = source.stat()
        # With empty logs the file is complete. SQLite is told that it is immutable; else it would make another log, and
        # leave that there.
        is_complete = not any(_has_companion(source, suffix) for suffix in _COMPANION_SUFFIXES if suffix != "-shm")
        is_complete = is_complete and time.time_ns() - before.st_mtime_ns > _UNCHANGED_NS
        try:
            _copy_once(source, target, "immutable=1" if is_complete else "mode=ro")
        except sqlite3.Error as error:
            problem = error
        else:
            problem = None
        # Deleted and made anew meanwhile; or written, although SQLite was told that it is immutable.
        after = source.stat()
        written = is_complete and confined.signature_of(after) != confined.signature_of(before)
        changed = written or not os.path.samestat(after, before)
        if not changed and problem is None:
            return
        target.unlink(missing_ok=True)
        if not changed:
            raise DamagedDatabase(str(problem))
    raise DamagedDatabase("it changes too often to be copied")


def _copy_once(source: Path, target: Path, mode: str) -> None:
    with _connect(source, mode) as original, _connect(target, "mode=rwc") as copy:
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")  # the copy is only packed into the backup
        original.backup(copy)
    with _connect(target, "immutable=1") as copy:
        ((result, *_), *_) = copy.execute("PRAGMA quick_check(1)").fetchall()
        if result != "ok":
            raise sqlite3.DatabaseError(str(result))


def _connect(path: Path, mode: str) -> contextlib.closing[sqlite3.Connection]:
    address = f"file:{quote(str(path))}?{mode}"
    return contextlib.closing(sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS, isolation_level=None))


def _has_companion(path: Path, suffix: str) -> bool:
    try:
        return path.with_name(path.name + suffix).stat().st_size > 0
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """The order in which files are copied: the reverse of the order in which the program writes them.

    The program writes a file before the files that rely on it: the record of an answer before the watermark of its
    question; a capture before the decision about it, and that before the topic. In the reverse order, a file is copied
    before the file on which it relies. So the copy of the latter is at least as new, and has the data. In the order of
    writing, the copied watermark could be newer than the records, and rely on a capture that the backup lacks.

    Together, the copies are what a crash between two writes could have left, which every start repairs.

    Attributes:
        first, last: files and folders; all others come between them.
        excluded: files and folders that are not copied.
    """

    first: Sequence[Path] = ()
    last: Sequence[Path] = ()
    excluded: Sequence[Path] = ()


@dataclass(slots=True)
class Selection:
    """Iterates over the files of a folder in the order of the copy. Afterwards: the names of the empty `folders`, and
    of files that are not copied, each with its reason in brackets.
    """

    root: Path
    order: CopyOrder
    folders: set[str] = field(default_factory=set[str], init=False)
    left_out: list[str] = field(default_factory=list[str], init=False)
    _done: set[Path] = field(default_factory=set[Path], init=False)

    def name_of(self, path: Path) -> str:
        """Return the name of a file in the backup."""
        return path.relative_to(self.root).as_posix()

    def __iter__(self) -> Iterator[Path]:
        """Yield each file once, as it is at that moment. Raises OSError: a folder cannot be read."""
        last = set(self.order.last)
        self._done = {*self.order.excluded, *last}
        for path in self.order.first:
            yield from self._walk_once(path)
        yield from self._walk_folder(self.root)
        self._done -= last
        for path in self.order.last:
            yield from self._walk_once(path)

    def _walk_once(self, path: Path) -> Iterator[Path]:
        if path.is_relative_to(self.root) and path not in self._done:
            yield from self._walk(path)
            self._done.add(path)

    def _walk_folder(self, folder: Path) -> Iterator[Path]:
        try:
            names = sorted(os.listdir(folder))  # noqa: PTH208 (names only)
        except FileNotFoundError:
            return  # it was deleted meanwhile
        if not names and folder != self.root:
            self.folders.add(self.name_of(folder))
        for name in names:
            path = folder / name
            is_skipped = folder == self.root and name in RESERVED_NAMES
            if path in self._done or is_skipped or name.startswith(LEFTOVER_PREFIX):
                continue
            yield from self._walk(path)

    def _walk(self, path: Path) -> Iterator[Path]:
        name = self.name_of(path)
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
        if not manifest.is_safe_path(name):
            self.left_out.append(f"{name} (a name that not every system takes)")
            return
        if stat.S_ISLNK(mode):
            target = Path(os.path.realpath(path))
            if not (target.is_file() and target.is_relative_to(os.path.realpath(self.root))):
                self.left_out.append(f"{name} (a link to elsewhere)")
                return
        elif stat.S_ISDIR(mode):
            yield from self._walk_folder(path)
            return
        elif not stat.S_ISREG(mode):
            self.left_out.append(f"{name} (no ordinary file)")
            return
        if not is_database_companion(path):
            yield path


_READ_BYTES = 1024 * 1024
_MAX_NAME_BYTES = 255
_COPY_PREFIX = ".database-for-"
"""The beginning of the name of a copied database, beside the unfinished backup. No backup has such a name."""
_ZIP_HEAD, _ZIP_NAME_OFFSET = b"PK\x03\x04", 30
"""The first bytes of an archive, and the offset of the name of its first file."""
_FILE_MODE = stat.S_IFREG | 0o600


class BackupRefused(Exception):
    """A backup cannot be written to this file. The message is a reason that can follow the file's name."""


@dataclass(slots=True)
class CopyProgress:
    """The progress of a backup or restore; read by other threads: the number of copied files, their size in bytes
    before packing, and the number of all files; None: it is unknown.
    """

    files: int = 0
    size: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class BackupResult:
    """The result of a backup: its size in bytes; the names of files that are not in it, and of databases that could not
    be copied, each with its reason in brackets.
    """

    manifest: Manifest
    size: int
    left_out: tuple[str, ...] = ()
    damaged: tuple[str, ...] = ()


def back_up(
    root: Path, file: Path, order: CopyOrder, made_at: str, progress: CopyProgress | None = None
) -> BackupResult:
    """Copy the data folder `root` into `file`. An existing `file` is replaced if it is a backup. Needs no lock.

    Writers of the folder do not wait, except for an append to a file whose length is being read.

    Raises:
        BackupRefused: `file` must not, or cannot, be written; nothing was done.
        OSError: something cannot be read, or the disk is full. The unfinished backup is deleted.
    """
    file = Path(os.path.realpath(file))
    if len(os.fsencode(f"{_COPY_PREFIX}{file.name}-journal")) > _MAX_NAME_BYTES:
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
        writer = BackupWriter(Selection(root, order), file, progress or CopyProgress())
        written = writer.write(_Output(file, descriptor), made_at)
        size = os.fstat(descriptor).st_size
    return BackupResult(written, size, tuple(writer.selection.left_out), tuple(writer.damaged))


def _check_replaceable(file: Path) -> None:
    if not file.parent.is_dir():
        raise BackupRefused(f"cannot be made: there is no folder {file.parent}; make it, or name another")
    if file.is_dir():
        raise BackupRefused("is a folder; name a file in it")
    if not os.path.lexists(file):
        return
    try:
        with zipfile.ZipFile(file) as archive:
            archive.getinfo(MANIFEST_NAME)
    except (OSError, zipfile.BadZipFile, KeyError):
        raise BackupRefused("is there already, and is no backup; move it away, or name another file") from None


def clear_leftovers(folder: Path) -> None:
    """Delete the hidden files that killed backups have left in `folder`: they contain messages of people."""
    for path in folder.glob(f"{files.LEFTOVER_PREFIX}*"):
        with contextlib.suppress(OSError, BackupRefused):  # deleted meanwhile, or of another process or user
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                lock_temporary(descriptor, path)
                head = os.pread(descriptor, _ZIP_NAME_OFFSET + len(DATA_PREFIX), 0)
                if head.startswith(_ZIP_HEAD) and head[_ZIP_NAME_OFFSET:] == DATA_PREFIX.encode():
                    path.unlink()
            finally:
                os.close(descriptor)
    for path in folder.glob(f"{_COPY_PREFIX}*"):
        target = re.sub("-(journal|wal|shm)$", "", path.name.removeprefix(_COPY_PREFIX))
        if not path.with_name(f"{files.LEFTOVER_PREFIX}{target}").exists():  # else it is being written
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def temporary_backup(file: Path) -> Generator[int]:
    """Open a temporary file that becomes `file` at the end of the block, or is deleted if the block raises. Yields the
    descriptor. The name is always the same, so that one of a killed process is used again, and locked.
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
    raise busy  # the other process has finished meanwhile, so the open file is its backup


@dataclass(slots=True)
class _Output:
    """The file to which the archive is written without seeking. Its errors name the file of the finished backup."""

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
        """Do nothing: there is no buffer."""

    def close(self) -> None:
        """Do nothing: the opener of the descriptor closes it."""


@dataclass(slots=True)
class BackupWriter:
    selection: Selection
    file: Path
    progress: CopyProgress
    copied: list[CopiedFile] = field(default_factory=list[CopiedFile], init=False)
    damaged: list[str] = field(default_factory=list[str], init=False)

    def write(self, output: _Output, made_at: str) -> Manifest:
        with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
            for path in self.selection:
                with contextlib.suppress(FileNotFoundError):  # deleted since it was selected
                    self.copy(archive, path)
            parents = {str(parent) for each in self.copied for parent in PurePosixPath(each.path).parents}
            folders = tuple(sorted(self.selection.folders - parents))
            written = Manifest(made_at, tuple(self.copied), folders)
            archive.writestr(_make_entry(MANIFEST_NAME), manifest.render(written))
        return written

    def copy(self, archive: zipfile.ZipFile, path: Path) -> None:
        name = self.selection.name_of(path)
        with path.open("rb") as file:
            # Appends are made under this lock, so the length is that of whole appends. The content before it never
            # changes, and a replaced file is another file.
            size = size_under_lock(file)
            if not is_database(path, file.read(len(SQLITE_HEADER))):
                file.seek(0)
                self._add(archive, name, file, size)
                return
        copy = self.file.with_name(f"{_COPY_PREFIX}{self.file.name}")
        copy.unlink(missing_ok=True)
        try:
            copy_database(path, copy)
            with copy.open("rb") as file:
                self._add(archive, name, file, os.fstat(file.fileno()).st_size)
        except DamagedDatabase as error:
            self.damaged.append(f"{name} ({error})")
        finally:
            for suffix in ("", *_COMPANION_SUFFIXES):
                copy.with_name(copy.name + suffix).unlink(missing_ok=True)

    def _add(self, archive: zipfile.ZipFile, name: str, file: BinaryIO, size: int) -> None:
        entry = _make_entry(DATA_PREFIX + name)
        entry.file_size = size  # decides if its header needs room for a large number
        changed = os.fstat(file.fileno()).st_mtime_ns
        hashed, left = hashlib.sha256(), size
        with archive.open(entry, "w") as packed:
            while left:
                data = file.read(min(left, _READ_BYTES))
                if not data:
                    raise OSError(errno.EAGAIN, "became shorter while it was copied", file.name)
                packed.write(data)
                hashed.update(data)
                left -= len(data)
                self.progress.size += len(data)
        self.copied.append(CopiedFile(name, size, changed, hashed.hexdigest()))
        self.progress.files += 1


def _make_entry(name: str) -> zipfile.ZipInfo:
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
