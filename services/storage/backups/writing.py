"""Writes a backup: into a temporary file beside its place, flushed to the disk, and renamed."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import zipfile
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from services.storage import arrival, files
from services.storage.backups import databases, manifest
from services.storage.backups.databases import DamagedDatabase
from services.storage.backups.manifest import NAME, PREFIX, CopiedFile, Manifest
from services.storage.backups.selection import CopyOrder, SelectedFile, Selection

_AT_ONCE = 1024 * 1024
_NAME_BYTES = 255
_COPY_PREFIX = ".database-for-"
"""Of the copy of a database, beside a backup that is being written: no backup is ever written under such a name."""
_ZIP, _ZIP_NAME = b"PK\x03\x04", 30
"""How an archive begins, and where the name of its first file stands."""
_FILE_MODE = stat.S_IFREG | 0o600


class BackupRefused(Exception):
    """A backup cannot be written to this file. The message is half a line that follows the file's name."""


@dataclass(slots=True)
class CopyCount:
    """The progress of a backup or restore; read by other threads.

    Attributes:
        files, size: what was copied, in bytes before packing.
        total: how many files there are; None while that is unknown.
    """

    files: int = 0
    size: int = 0
    total: int | None = None


@dataclass(frozen=True, slots=True)
class BackedUp:
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


def back_up(root: Path, file: Path, order: CopyOrder, made_at: str, count: CopyCount | None = None) -> BackedUp:
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
    if (root / arrival.RESTORED).is_dir():
        raise BackupRefused(
            "cannot be made: a restore of the data folder was cut off; start the bot, which finishes it"
        )
    _check_replaceable(file)
    clear_leftovers(file.parent)
    with unfinished(file) as descriptor:
        copying = Copying(Selection(root, order), file, count or CopyCount())
        made = copying.write(_Output(file, descriptor), made_at)
        size = os.fstat(descriptor).st_size
    return BackedUp(made, size, tuple(copying.selection.left), tuple(copying.damaged))


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
                hold(descriptor, path)
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
def unfinished(file: Path) -> Generator[int]:
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
        hold(descriptor, temporary)
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


def hold(descriptor: int, temporary: Path) -> None:
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
class Copying:
    selection: Selection
    file: Path
    count: CopyCount
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
            size = settled_size(file)
            if not databases.is_one(found.path, file.read(len(databases.HEADER))):
                file.seek(0)
                self._add(archive, found.name, file, size)
                return
        copy = self.file.with_name(f"{_COPY_PREFIX}{self.file.name}")
        copy.unlink(missing_ok=True)
        try:
            databases.copy(found.path, copy)
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
                data = file.read(min(left, _AT_ONCE))
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


def settled_size(file: BinaryIO) -> int:
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
