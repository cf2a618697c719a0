"""Restores a backup: checks it, unpacks it into a folder of its own, compares the files, and moves them into place."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator
from pathlib import Path, PurePosixPath
from typing import IO

from services.storage import data_folder, files
from services.storage.backups import manifest
from services.storage.backups.manifest import MOST_BYTES, NAME, PREFIX, BadBackup, CopiedFile, Manifest
from services.storage.backups.writing import CopyProgress

_AT_ONCE = 1024 * 1024
_IGNORED = {".lock", "lost+found"}
_KINDS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
_ENCRYPTED = 0x1
_MARGIN = 16 * 1024 * 1024
"""What stays free on the disk."""


class FolderInUse(Exception):
    """A folder holds something: the message names what."""


def restore(file: Path, root: Path, count: CopyProgress | None = None) -> Manifest:
    """Make `root` what it was when the backup was made. `root` must be locked by the caller and empty. Returns the
    manifest of the backup.

    All of it is unpacked and compared first. After a crash at any moment `root` is empty or, once its lock is taken
    again, complete. Files and folders are made for their owner alone.

    Raises:
        FolderInUse: something is there.
        BadBackup: `file` is no backup, or damaged, or too large for the disk; nothing has changed.
        OSError: something cannot be read or written; nothing has changed.
    """
    there = sorted(set(os.listdir(root)) - _IGNORED)  # noqa: PTH208 (names only)
    if there:
        raise FolderInUse(there[0])
    with _opened(file) as (archive, held):
        if held.total + _MARGIN > (free := shutil.disk_usage(root).free):
            raise BadBackup(f"needs {held.total} bytes, and {root} has {free}; make room")
        try:
            _unpack(archive, held, root / data_folder.RESTORING, count or CopyProgress())
            data_folder.commit_restored(root)
        except BaseException:
            with contextlib.suppress(OSError):
                data_folder.drop_unfinished_restore(root)
            raise
    try:
        data_folder.finish_restore(root)
    except KeyboardInterrupt:
        data_folder.finish_restore(root)  # too late: it is restored
    return held


@contextlib.contextmanager
def _opened(file: Path) -> Generator[tuple[zipfile.ZipFile, Manifest]]:
    with _reading():
        archive = zipfile.ZipFile(file)
    with archive:
        with _reading():
            held = _manifest_of(archive)
        yield archive, held


@contextlib.contextmanager
def _reading() -> Generator[None]:
    """Turn what `zipfile` raises about a damaged archive into a BadBackup."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, ValueError) as error:
        raise BadBackup(f"is damaged, or no backup ({error}); use another one") from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise BadBackup("is damaged: it leads outside of itself; use another one") from None


def _manifest_of(archive: zipfile.ZipFile) -> Manifest:
    entries = archive.infolist()
    own = [entry for entry in entries if entry.filename == NAME]
    if not own:
        raise BadBackup(f"is no backup of this program: it holds no {NAME}")
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in {0, stat.S_IFREG} or entry.flag_bits & _ENCRYPTED or entry.compress_type not in _KINDS:
            raise BadBackup(f"holds something that is no plain file ({entry.filename[:80]!r}); do not use it")
    if own[0].file_size > MOST_BYTES:
        raise BadBackup(f"is damaged: its {NAME} is too large; use another backup")
    with archive.open(own[0]) as packed:
        held = manifest.parse(packed.read(MOST_BYTES))
    found = sorted((entry.filename, entry.file_size) for entry in entries)
    if found != sorted([(NAME, own[0].file_size), *((PREFIX + each.path, each.size) for each in held.files)]):
        raise BadBackup(f"is damaged: it does not hold what its {NAME} says; use another backup")
    return held


def _unpack(archive: zipfile.ZipFile, held: Manifest, target: Path, count: CopyProgress) -> None:
    """Every file, as the manifest has it, durably. Raises BadBackup, OSError."""
    paths = {*held.folders, *(each.path for each in held.files)}
    parents = {str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."}
    folders = [target, *(target / path for path in sorted({*parents, *held.folders}))]
    for folder in folders:
        os.mkdir(folder, 0o700)  # noqa: PTH102 (the crash tests cut at the system calls)
    count.total = len(held.files)
    for each in held.files:
        _unpack_file(archive, each, target / each.path, count)
        count.files += 1
    for folder in folders:
        files.sync_folder(folder)


def _next(packed: IO[bytes]) -> bytes:
    with _reading():
        return packed.read(_AT_ONCE)


def _unpack_file(archive: zipfile.ZipFile, each: CopiedFile, path: Path, count: CopyProgress) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        hashed, left = hashlib.sha256(), each.size
        with _reading():
            packed = archive.open(PREFIX + each.path)
        with packed:
            while data := _next(packed):
                left -= len(data)
                if left < 0:
                    break
                try:
                    files.write_all(descriptor, data)
                except OSError as error:
                    error.filename = str(path)
                    raise
                hashed.update(data)
                count.size += len(data)
        if left or hashed.hexdigest() != each.sha256:
            raise BadBackup(f"is damaged: {each.path} is not what was copied; use another backup")
        os.utime(descriptor, ns=(each.mtime_ns, each.mtime_ns))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
